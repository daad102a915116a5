// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of netlink.c and netlink_thresholds.c: whose memory a message takes. */
#include <kunit/test.h>
#include <linux/slab.h>

static gfp_t asked_for;

/* What the kernel charges to a task is what was asked for with __GFP_ACCOUNT. */
#undef kzalloc
#define kzalloc(size, flags)				\
({							\
	asked_for = (flags);				\
	kzalloc_noprof(size, asked_for);		\
})

#include "../netlink.c"
#include "../netlink_thresholds.c"
#include "../netlink_gen.c"

/* Of rb.c, for the dump of flows. */
const struct weft_rb *weft_rb_state(const struct mptcp_sock *msk)
{
	return NULL;
}

/* A message of this host with attributes of at most eight bytes. */
struct message {
	struct netlink_ext_ack	extack;
	struct nlattr		*attrs[WEFT_A_MAX + 1];
	struct genl_info	info;
};

static struct message *new_message(struct kunit *test)
{
	struct message *it = kunit_kzalloc(test, sizeof(*it), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, it);
	it->info.attrs = it->attrs;
	it->info.extack = &it->extack;
	genl_info_net_set(&it->info, &init_net);
	asked_for = 0;
	return it;
}

static void add_attribute(struct kunit *test, struct message *to, int type, const void *data,
			  u16 length)
{
	struct nlattr *attr = kunit_kzalloc(test, nla_total_size(length), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, attr);
	attr->nla_type = type;
	attr->nla_len = nla_attr_size(length);
	memcpy(nla_data(attr), data, length);
	to->attrs[type] = attr;
}

static void a_pattern_is_charged_to_who_sets_it(struct kunit *test)
{
	struct message *set = new_message(test);
	__be32 address = htonl(0x0a010101);
	u8 prefix_len = 24, sequence[] = { 0, 1 };
	u64 number = 1;

	/* refused after the allocation: its last bits are beyond the prefix */
	add_attribute(test, set, WEFT_A_PREFIX, &address, sizeof(address));
	add_attribute(test, set, WEFT_A_PREFIX_LEN, &prefix_len, sizeof(prefix_len));
	add_attribute(test, set, WEFT_A_VERSION, &number, sizeof(number));
	add_attribute(test, set, WEFT_A_TTL_NS, &number, sizeof(number));
	add_attribute(test, set, WEFT_A_PATHS, NULL, 0);
	add_attribute(test, set, WEFT_A_SEQUENCE, sequence, sizeof(sequence));
	KUNIT_EXPECT_EQ(test, weft_nl_pattern_set_doit(NULL, &set->info), -EINVAL);
	KUNIT_EXPECT_TRUE(test, asked_for & __GFP_ACCOUNT);
}

static void thresholds_are_charged_to_who_sets_them(struct kunit *test)
{
	struct message *set = new_message(test);
	u64 number = 1;

	/* refused after the allocation: there are none */
	add_attribute(test, set, WEFT_A_VERSION, &number, sizeof(number));
	add_attribute(test, set, WEFT_A_TTL_NS, &number, sizeof(number));
	add_attribute(test, set, WEFT_A_THRESHOLDS, NULL, 0);
	KUNIT_EXPECT_EQ(test, weft_nl_thresholds_set_doit(NULL, &set->info), -EINVAL);
	KUNIT_EXPECT_TRUE(test, asked_for & __GFP_ACCOUNT);
}

static struct kunit_case netlink_cases[] = {
	KUNIT_CASE(a_pattern_is_charged_to_who_sets_it),
	KUNIT_CASE(thresholds_are_charged_to_who_sets_them),
	{}
};

static struct kunit_suite netlink_suite = {
	.name		= "weft_netlink",
	.test_cases	= netlink_cases,
};
kunit_test_suite(netlink_suite);
