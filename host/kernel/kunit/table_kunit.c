// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of table.c: the controller's patterns by destination prefix. */
#include <kunit/test.h>
#include <linux/delay.h>

#include "../table.c"

#define HOUR_NS		(3600ULL * NSEC_PER_SEC)
#define ADDRESS(a, b, c, d) \
	htonl((a) << 24 | (b) << 16 | (c) << 8 | (d))

static struct weft_table *new_table(struct kunit *test)
{
	struct weft_table *table = kunit_kzalloc(test, sizeof(*table), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, table);
	KUNIT_ASSERT_EQ(test, weft_table_init(table), 0);
	return table;
}

static int set(struct kunit *test, struct weft_table *table, __be32 prefix,
	       u8 prefix_len, u64 version, u64 ttl_ns)
{
	struct weft_pattern *pattern;
	int err;

	pattern = kzalloc(struct_size(pattern, sequence, 1), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pattern);
	pattern->to.address = prefix;
	pattern->to.length = prefix_len;
	pattern->version = version;
	pattern->ttl_ns = ttl_ns;
	pattern->length = 1;
	err = weft_table_set(table, pattern);
	if (err)
		kfree(pattern);
	return err;
}

static int del(struct weft_table *table, __be32 prefix, u8 prefix_len)
{
	struct weft_prefix to = { .address = prefix, .length = prefix_len };

	return weft_table_del(table, &to);
}

/* The version of the pattern for an address, 0 for none. */
static u64 watch(struct weft_watch *watched, struct weft_table *table, __be32 address,
		 u64 now_ns)
{
	const struct weft_pattern *pattern;
	u64 version;

	weft_watch_begin(watched, table);
	rcu_read_lock();
	pattern = weft_table_find(table, address, now_ns, watched);
	version = pattern ? pattern->version : 0;
	rcu_read_unlock();
	return version;
}

static u64 find(struct weft_table *table, __be32 address, u64 now_ns)
{
	struct weft_watch unused;

	return watch(&unused, table, address, now_ns);
}

static void an_empty_table_has_no_pattern(struct kunit *test)
{
	struct weft_table *table = new_table(test);

	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(10, 1, 1, 1), ktime_get_ns()), 0);
	KUNIT_EXPECT_EQ(test, del(table, ADDRESS(10, 1, 1, 0), 24),
			-ENOENT);
	weft_table_exit(table);
}

static void the_longest_prefix_wins(struct kunit *test)
{
	struct weft_table *table = new_table(test);
	u64 now;

	KUNIT_EXPECT_EQ(test, set(test, table, 0, 0, 1, HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 0, 0, 0), 8, 2, HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 1, 1, 0), 24, 3, HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 1, 1, 7), 32, 4, HOUR_NS), 0);
	now = ktime_get_ns();
	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(10, 1, 1, 7), now), 4);
	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(10, 1, 1, 8), now), 3);
	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(10, 1, 2, 7), now), 2);
	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(192, 168, 0, 1), now), 1);
	weft_table_exit(table);
}

static void the_same_bits_with_another_length_are_another_prefix(struct kunit *test)
{
	struct weft_table *table = new_table(test);

	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 0, 0, 0), 8, 1, HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 0, 0, 0), 24, 2, HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, table->count, 2);
	KUNIT_EXPECT_EQ(test, del(table, ADDRESS(10, 0, 0, 0), 24), 0);
	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(10, 0, 0, 1), ktime_get_ns()), 1);
	weft_table_exit(table);
}

static void a_pattern_replaces_that_of_its_prefix(struct kunit *test)
{
	struct weft_table *table = new_table(test);

	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 1, 1, 0), 24, 1, HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 1, 1, 0), 24, 2, HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, table->count, 1);
	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(10, 1, 1, 1), ktime_get_ns()), 2);
	weft_table_exit(table);
}

static void a_new_pattern_concerns_those_who_use_the_old_one(struct kunit *test)
{
	struct weft_table *table = new_table(test);
	unsigned int i, others = 0, told = 0;
	struct weft_watch *watched;

	watched = kunit_kcalloc(test, 1000, sizeof(*watched), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, watched);
	for (i = 0; i < 1000; i++)
		KUNIT_ASSERT_EQ(test, set(test, table, htonl(i), 32, 1, HOUR_NS), 0);
	for (i = 0; i < 1000; i++)
		watch(&watched[i], table, htonl(i), ktime_get_ns());

	KUNIT_EXPECT_EQ(test, set(test, table, htonl(7), 32, 2, HOUR_NS), 0);
	KUNIT_EXPECT_FALSE(test, weft_watch_is_current(&watched[7], table));
	for (i = 0; i < 1000; i++) {
		others += i != 7;
		told += i != 7 && !weft_watch_is_current(&watched[i], table);
	}
	/* those with the same hash, four in the mean */
	KUNIT_EXPECT_LT(test, told, others / 20);
	KUNIT_EXPECT_EQ(test, watch(&watched[7], table, htonl(7), ktime_get_ns()), 2);
	KUNIT_EXPECT_TRUE(test, weft_watch_is_current(&watched[7], table));
	weft_table_exit(table);
}

static void a_prefix_that_comes_or_goes_concerns_all(struct kunit *test)
{
	struct weft_table *table = new_table(test);
	__be32 address = ADDRESS(10, 1, 1, 1);
	struct weft_watch watched;

	watch(&watched, table, address, ktime_get_ns());
	KUNIT_EXPECT_TRUE(test, weft_watch_is_current(&watched, table));
	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 0, 0, 0), 8, 1, HOUR_NS), 0);
	KUNIT_EXPECT_FALSE(test, weft_watch_is_current(&watched, table));

	watch(&watched, table, address, ktime_get_ns());
	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 1, 1, 0), 24, 2, HOUR_NS), 0);
	KUNIT_EXPECT_FALSE(test, weft_watch_is_current(&watched, table));

	KUNIT_EXPECT_EQ(test, watch(&watched, table, address, ktime_get_ns()), 2);
	KUNIT_EXPECT_EQ(test, del(table, ADDRESS(10, 1, 1, 0), 24), 0);
	KUNIT_EXPECT_FALSE(test, weft_watch_is_current(&watched, table));
	weft_table_exit(table);
}

static void a_pattern_in_place_of_an_expired_one_concerns_all(struct kunit *test)
{
	struct weft_table *table = new_table(test);
	__be32 address = ADDRESS(10, 1, 1, 1);
	struct weft_watch watched;

	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 1, 1, 0), 24, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, watch(&watched, table, address, ktime_get_ns()), 0);
	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 1, 1, 0), 24, 2, HOUR_NS), 0);
	KUNIT_EXPECT_FALSE(test, weft_watch_is_current(&watched, table));
	weft_table_exit(table);
}

static void an_expired_pattern_gives_way_to_a_shorter_prefix(struct kunit *test)
{
	struct weft_table *table = new_table(test);
	u64 now;

	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 0, 0, 0), 8, 1, HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 1, 1, 0), 24, 2,
				  NSEC_PER_SEC), 0);
	now = ktime_get_ns();
	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(10, 1, 1, 1), now), 2);
	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(10, 1, 1, 1), now + NSEC_PER_SEC), 1);
	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(10, 1, 1, 1), now + HOUR_NS), 0);
	weft_table_exit(table);
}

static void a_pattern_that_lives_for_ever_does(struct kunit *test)
{
	struct weft_table *table = new_table(test);

	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 1, 1, 0), 24, 1, U64_MAX), 0);
	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(10, 1, 1, 1), U64_MAX / 2), 1);
	weft_table_exit(table);
}

static void the_lengths_in_use_are_known(struct kunit *test)
{
	struct weft_table *table = new_table(test);

	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 1, 1, 0), 24, 1, HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 1, 2, 0), 24, 2, HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, set(test, table, 0, 0, 3, HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&table->lengths), BIT_ULL(24) | BIT_ULL(0));
	KUNIT_EXPECT_EQ(test, del(table, ADDRESS(10, 1, 1, 0), 24), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&table->lengths), BIT_ULL(24) | BIT_ULL(0));
	KUNIT_EXPECT_EQ(test, del(table, ADDRESS(10, 1, 2, 0), 24), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&table->lengths), BIT_ULL(0));
	weft_table_exit(table);
}

static void clearing_leaves_nothing_and_tells_connections(struct kunit *test)
{
	struct weft_table *table = new_table(test);
	struct weft_watch watched;
	int i;

	for (i = 0; i < 1000; i++)
		KUNIT_ASSERT_EQ(test, set(test, table, ADDRESS(10, 0, i >> 8, i & 255),
					  32, 1, HOUR_NS), 0);
	watch(&watched, table, ADDRESS(10, 0, 0, 1), ktime_get_ns());
	weft_table_clear(table);
	KUNIT_EXPECT_EQ(test, table->count, 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&table->lengths), 0);
	KUNIT_EXPECT_FALSE(test, weft_watch_is_current(&watched, table));
	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(10, 0, 0, 1), ktime_get_ns()), 0);
	weft_table_exit(table);
}

static void renewed_patterns_live_from_then_on(struct kunit *test)
{
	struct weft_table *table = new_table(test);
	u64 set_ns;

	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 1, 1, 0), 24, 1, HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, set(test, table, 0, 0, 2, U64_MAX), 0);
	set_ns = ktime_get_ns();
	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(10, 1, 1, 1), set_ns + HOUR_NS), 2);
	usleep_range(10, 20);
	weft_table_renew(table);
	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(10, 1, 1, 1), set_ns + HOUR_NS), 1);
	KUNIT_EXPECT_EQ(test, find(table, ADDRESS(10, 1, 1, 1), set_ns + 2 * HOUR_NS), 2);
	weft_table_exit(table);
}

static void connections_notice_that_an_expired_pattern_is_renewed(struct kunit *test)
{
	struct weft_table *table = new_table(test);
	__be32 address = ADDRESS(10, 1, 1, 1);
	struct weft_watch watched;

	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 1, 1, 0), 24, 1, HOUR_NS), 0);
	watch(&watched, table, address, ktime_get_ns());
	weft_table_renew(table);
	KUNIT_EXPECT_TRUE(test, weft_watch_is_current(&watched, table));

	/* one that is dead from the beginning */
	KUNIT_EXPECT_EQ(test, set(test, table, ADDRESS(10, 1, 2, 0), 24, 2, 0), 0);
	watch(&watched, table, address, ktime_get_ns());
	weft_table_renew(table);
	KUNIT_EXPECT_FALSE(test, weft_watch_is_current(&watched, table));
	weft_table_exit(table);
}

static void a_full_table_still_replaces(struct kunit *test)
{
	struct weft_table *table = new_table(test);
	u32 i;

	for (i = 0; i < WEFT_PATTERNS_MAX; i++)
		KUNIT_ASSERT_EQ(test, set(test, table, htonl(i), 32, 1, HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, set(test, table, htonl(i), 32, 1, HOUR_NS), -ENOSPC);
	KUNIT_EXPECT_EQ(test, set(test, table, htonl(5), 32, 2, HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, find(table, htonl(5), ktime_get_ns()), 2);
	KUNIT_EXPECT_EQ(test, table->count, WEFT_PATTERNS_MAX);
	KUNIT_EXPECT_EQ(test, del(table, htonl(7), 32), 0);
	KUNIT_EXPECT_EQ(test, set(test, table, htonl(i), 32, 1, HOUR_NS), 0);
	weft_table_exit(table);
}

static void masks_have_the_bits_of_their_length(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, weft_prefix_mask(0), htonl(0));
	KUNIT_EXPECT_EQ(test, weft_prefix_mask(1), htonl(0x80000000));
	KUNIT_EXPECT_EQ(test, weft_prefix_mask(24), htonl(0xffffff00));
	KUNIT_EXPECT_EQ(test, weft_prefix_mask(32), htonl(0xffffffff));
}

static struct kunit_case table_cases[] = {
	KUNIT_CASE(an_empty_table_has_no_pattern),
	KUNIT_CASE(the_longest_prefix_wins),
	KUNIT_CASE(the_same_bits_with_another_length_are_another_prefix),
	KUNIT_CASE(a_pattern_replaces_that_of_its_prefix),
	KUNIT_CASE(a_new_pattern_concerns_those_who_use_the_old_one),
	KUNIT_CASE(a_prefix_that_comes_or_goes_concerns_all),
	KUNIT_CASE(a_pattern_in_place_of_an_expired_one_concerns_all),
	KUNIT_CASE(an_expired_pattern_gives_way_to_a_shorter_prefix),
	KUNIT_CASE(a_pattern_that_lives_for_ever_does),
	KUNIT_CASE(the_lengths_in_use_are_known),
	KUNIT_CASE(clearing_leaves_nothing_and_tells_connections),
	KUNIT_CASE(renewed_patterns_live_from_then_on),
	KUNIT_CASE(connections_notice_that_an_expired_pattern_is_renewed),
	KUNIT_CASE(a_full_table_still_replaces),
	KUNIT_CASE(masks_have_the_bits_of_their_length),
	{}
};

static struct kunit_suite table_suite = {
	.name		= "weft_table",
	.test_cases	= table_cases,
};
kunit_test_suite(table_suite);
