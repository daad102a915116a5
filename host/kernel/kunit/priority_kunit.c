// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of priority.c: what is written into the packets of a subflow. */
#include <linux/delay.h>

#include "connection.h"

#include "../priority.c"
#include "../thresholds.c"
#include "../weft_size.c"

#define DSCP_OF_CLASS_1	0x1b
#define DSCP_OF_CLASS_3	0x13
#define DSCP_OF_CLASS_7	0x03
#define HOUR_NS		(3600ULL * NSEC_PER_SEC)

/* A subflow whose TCP marks its packets as ECN-capable. */
static struct sock *capable_subflow(struct kunit *test, struct mptcp_sock *msk)
{
	struct sock *ssk = mptcp_subflow_tcp_sock(add_subflow(test, msk, 0));

	inet_sk(ssk)->tos = INET_ECN_ECT_0;
	return ssk;
}

/* If nothing is under way, what was written before has been sent. */
static u8 dscp_after(struct mptcp_sock *msk, struct sock *ssk, u64 unsent_bytes)
{
	if (msk->snd_una == msk->snd_nxt) {
		msk->snd_nxt = msk->write_seq;
		msk->snd_una = msk->write_seq;
	}
	msk->write_seq = msk->snd_nxt + unsent_bytes;
	weft_mark_data(msk, ssk);
	return inet_sk(ssk)->tos >> DSCP_SHIFT;
}

static void data_have_the_class_of_what_is_left(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = capable_subflow(test, msk);

	weft_priorities = 8;
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 20000000), DSCP_OF_CLASS_7);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 500000), DSCP_OF_CLASS_3);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 130000), DSCP_OF_CLASS_1);
	KUNIT_EXPECT_EQ(test, ssk->sk_priority, WEFT_CLASSES_MAX + 1);
}

static void the_ecn_bits_stay(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = capable_subflow(test, msk);

	weft_priorities = 8;
	dscp_after(msk, ssk, 100000);
	KUNIT_EXPECT_EQ(test, inet_sk(ssk)->tos & INET_ECN_MASK, INET_ECN_ECT_0);
	weft_mark_urgent(ssk);
	KUNIT_EXPECT_EQ(test, inet_sk(ssk)->tos & INET_ECN_MASK, INET_ECN_ECT_0);
	KUNIT_EXPECT_EQ(test, inet_sk(ssk)->tos >> DSCP_SHIFT, dscp_of_class(0));
}

static void an_end_that_is_unknown_counts_as_what_was_sent(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = capable_subflow(test, msk);

	weft_priorities = 8;
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 10000), DSCP_OF_CLASS_1);
	/* 10 kB at a time, of which the last are not acknowledged */
	msk->snd_nxt += 13000000;
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 10000), DSCP_OF_CLASS_7);
}

static void let_application_wait(struct kunit *test, struct mptcp_sock *msk)
{
	struct socket *socket = kunit_kzalloc(test, sizeof(*socket), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, socket);
	((struct sock *)msk)->sk_socket = socket;
	set_bit(SOCK_NOSPACE, &socket->flags);
}

/* The application sets a DSCP on its socket. */
static void tell(struct mptcp_sock *msk, u8 dscp)
{
	inet_sk((struct sock *)msk)->tos = dscp << DSCP_SHIFT;
}

static void one_that_waits_to_write_more_counts_as_what_it_has_written(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = capable_subflow(test, msk);

	let_application_wait(test, msk);
	weft_priorities = 8;
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 500000), DSCP_OF_CLASS_3);
	msk->snd_nxt += 13000000;
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 500000), DSCP_OF_CLASS_7);
}

static void one_that_tells_its_class_has_that(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = capable_subflow(test, msk);

	let_application_wait(test, msk);
	weft_priorities = 8;
	tell(msk, DSCP_OF_CLASS_7);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 100000), DSCP_OF_CLASS_7);
	clear_bit(SOCK_NOSPACE, &((struct sock *)msk)->sk_socket->flags);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 100000), DSCP_OF_CLASS_7);
	/* a class that there is not */
	weft_priorities = 4;
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 10000), DSCP_OF_CLASS_1);
	/* a DSCP that is no class */
	tell(msk, IPTOS_LOWDELAY >> DSCP_SHIFT);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 10000), DSCP_OF_CLASS_1);
}

static void what_an_application_tells_of_comes_after_what_it_has_written(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = capable_subflow(test, msk);

	let_application_wait(test, msk);
	weft_priorities = 8;
	tell(msk, DSCP_OF_CLASS_1);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 500000), DSCP_OF_CLASS_3);
	/* more than 250 kB to write, and 600 kB written */
	tell(msk, DSCP_OF_CLASS_3);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 600000), DSCP_OF_CLASS_3);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 13000000), DSCP_OF_CLASS_7);
}

static void what_was_told_holds_until_the_last_write_shows(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = capable_subflow(test, msk);

	weft_priorities = 8;
	tell(msk, DSCP_OF_CLASS_3);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 300000), DSCP_OF_CLASS_3);
	msk->snd_nxt += 200000;
	weft_mark_data(msk, ssk);
	KUNIT_EXPECT_EQ(test, inet_sk(ssk)->tos >> DSCP_SHIFT, DSCP_OF_CLASS_3);
	usleep_range(1100, 1200);
	weft_mark_data(msk, ssk);
	KUNIT_EXPECT_EQ(test, inet_sk(ssk)->tos >> DSCP_SHIFT, DSCP_OF_CLASS_1);
}

static void without_classes_nothing_is_written(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = capable_subflow(test, msk);

	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 100000), 0);
	KUNIT_EXPECT_EQ(test, ssk->sk_priority, 0);
}

static void fewer_classes_have_some_of_the_thresholds(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = capable_subflow(test, msk);

	weft_priorities = 2;
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 1000), DSCP_OF_CLASS_1);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 20000000), DSCP_OF_CLASS_1);
	weft_priorities = 4;
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 250000), DSCP_OF_CLASS_1);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 20000000), DSCP_OF_CLASS_3);
}

/* so long that no test is slow enough to be taken for a pause */
#define RTT_US		100000

/* A subflow of the last class, with so many packets in a queue in which they wait this long. */
static struct sock *waiting_subflow(struct kunit *test, struct mptcp_sock *msk, u32 packets,
				    u32 wait_us)
{
	struct sock *ssk = capable_subflow(test, msk);
	struct tcp_sock *tp = tcp_sk(ssk);

	weft_priorities = 8;
	KUNIT_ASSERT_EQ(test, dscp_after(msk, ssk, 20000000), DSCP_OF_CLASS_7);
	tp->rtt_min.s[0].v = RTT_US;
	tp->srtt_us = (RTT_US + wait_us) << 3;
	tp->packets_out = packets;
	tp->delivered_mstamp = tcp_clock_us();
	tp->snd_cwnd = 10;
	tp->snd_wnd = 10 * PAYLOAD;
	ssk->sk_sndbuf = 10 * PAYLOAD;
	ssk->sk_prot = &tcp_prot;
	sock_net_set(ssk, &init_net);
	return ssk;
}

static void data_wait_for_packets_that_they_would_overtake(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = waiting_subflow(test, msk, 3, 2 * RTT_US);

	KUNIT_EXPECT_FALSE(test, weft_would_overtake(msk, ssk));
	msk->snd_nxt = msk->write_seq - 100000;
	KUNIT_EXPECT_TRUE(test, weft_would_overtake(msk, ssk));
	weft_drain = false;
	KUNIT_EXPECT_FALSE(test, weft_would_overtake(msk, ssk));
	weft_drain = true;
	weft_priorities = 0;
	KUNIT_EXPECT_FALSE(test, weft_would_overtake(msk, ssk));
	weft_priorities = 8;
	/* the receiver has them */
	tcp_sk(ssk)->sacked_out = 3;
	KUNIT_EXPECT_FALSE(test, weft_would_overtake(msk, ssk));
}

static void data_do_not_wait_for_packets_that_are_stuck(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = waiting_subflow(test, msk, 3, 2 * RTT_US);

	msk->snd_nxt = msk->write_seq - 100000;
	tcp_sk(ssk)->delivered_mstamp -= 4 * 3 * RTT_US + 1;
	KUNIT_EXPECT_FALSE(test, weft_would_overtake(msk, ssk));
}

static void data_do_not_wait_where_packets_hardly_do(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = waiting_subflow(test, msk, 3, RTT_US);

	msk->snd_nxt = msk->write_seq - 100000;
	KUNIT_EXPECT_FALSE(test, weft_would_overtake(msk, ssk));
}

static void urgent_packets_are_not_overtaken(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = waiting_subflow(test, msk, 3, 2 * RTT_US);

	weft_mark_urgent(ssk);
	msk->snd_nxt = msk->write_seq - 100000;
	KUNIT_EXPECT_FALSE(test, weft_would_overtake(msk, ssk));
}

static void a_subflow_has_no_room_for_data_that_would_overtake(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = waiting_subflow(test, msk, 3, 2 * RTT_US);
	struct weft_subflow_view view;
	struct weft_usable usable;

	KUNIT_ASSERT_TRUE(test, weft_usable(msk, &usable));
	weft_view_subflows(msk, &usable, &view);
	KUNIT_EXPECT_EQ(test, view.space_bytes, 7 * PAYLOAD);
	msk->snd_nxt = msk->write_seq - 100000;
	weft_view_subflows(msk, &usable, &view);
	KUNIT_EXPECT_EQ(test, view.space_bytes, 0);
	tcp_sk(ssk)->packets_out = 0;
	weft_view_subflows(msk, &usable, &view);
	KUNIT_EXPECT_EQ(test, view.space_bytes, 10 * PAYLOAD);
}

#define SPREAD_PERCENT	85
#define MESSAGES	1000

/* How many messages of @bytes are in each class, where @counts has entries for all classes. */
static void count_classes(struct kunit *test, u64 bytes, unsigned int *counts)
{
	struct mptcp_sock *msk = test->priv;
	unsigned int i;

	for (i = 0; i < MESSAGES; i++) {
		msk->snd_nxt += bytes;
		msk->snd_una = msk->snd_nxt;
		msk->write_seq = msk->snd_nxt + bytes;
		counts[class_of(msk, WEFT_CLASSES_MAX)]++;
	}
}

static void equal_messages_spread_over_two_classes(struct kunit *test)
{
	unsigned int counts[WEFT_CLASSES_MAX] = {}, between[WEFT_CLASSES_MAX] = {};

	/* half as much again as the threshold between two classes, so a sixth goes down */
	weft_spread_percent = SPREAD_PERCENT;
	count_classes(test, 375000, counts);
	KUNIT_EXPECT_EQ(test, counts[2] + counts[3], MESSAGES);
	KUNIT_EXPECT_GT(test, counts[2], MESSAGES / 10);
	KUNIT_EXPECT_GT(test, counts[3], MESSAGES / 2);

	count_classes(test, 250000, between);
	KUNIT_EXPECT_EQ(test, between[2] + between[3], MESSAGES);
	KUNIT_EXPECT_GT(test, between[2], MESSAGES * 2 / 5);
	KUNIT_EXPECT_GT(test, between[3], MESSAGES * 2 / 5);
}

static void a_message_has_one_factor_until_its_end(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	u64 of_a_million;
	unsigned int i;

	weft_spread_percent = SPREAD_PERCENT;
	msk->write_seq = msk->snd_nxt + 1000000;
	class_of(msk, WEFT_CLASSES_MAX);
	of_a_million = spread(&weft_conn(msk)->size, 1000000);
	for (i = 0; i < 90; i++) {
		msk->snd_nxt += 10000;
		/* all that was sent is acknowledged now and then, before the end */
		msk->snd_una = msk->snd_nxt - (i % 3) * 1000;
		class_of(msk, WEFT_CLASSES_MAX);
		KUNIT_EXPECT_EQ(test, spread(&weft_conn(msk)->size, 1000000), of_a_million);
	}
}

static void the_factor_has_the_bounds_that_the_parameter_says(struct kunit *test)
{
	/* a doubling and a half */
	KUNIT_EXPECT_EQ(test, weft_spread_left(100000, 0, 150), 37500);
	KUNIT_EXPECT_EQ(test, weft_spread_left(100000, U32_MAX, 150), 300000);
	KUNIT_EXPECT_EQ(test, weft_spread_left(100000, 1U << 31, 150), 100000);
	KUNIT_EXPECT_EQ(test, weft_spread_left(100000, 0, 0), 100000);
	KUNIT_EXPECT_EQ(test, weft_spread_left(100000, U32_MAX, 0), 100000);
	/* more than there can be */
	KUNIT_EXPECT_EQ(test, weft_spread_left(U64_MAX, U32_MAX, UINT_MAX), 1ULL << 50);
}

static int set_thresholds(struct kunit *test, u64 version, u64 ttl_ns, unsigned int count)
{
	struct weft_thresholds *ones = kzalloc(sizeof(*ones), GFP_KERNEL);
	int err;

	KUNIT_ASSERT_NOT_NULL(test, ones);
	ones->version = version;
	ones->ttl_ns = ttl_ns;
	ones->count = count;
	while (count--)
		ones->most_bytes[count] = 1000 * (count + 1);
	err = weft_thresholds_set(&init_net, ones);
	if (err)
		kfree(ones);
	return err;
}

static void all_but_urgent_packets_and_the_last_two_classes_go_first(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = capable_subflow(test, msk);

	KUNIT_EXPECT_FALSE(test, weft_goes_first(ssk));
	weft_priorities = 8;
	KUNIT_EXPECT_FALSE(test, weft_goes_first(ssk));
	/* an application's own priority is no class */
	WRITE_ONCE(ssk->sk_priority, TC_PRIO_INTERACTIVE);
	KUNIT_EXPECT_FALSE(test, weft_goes_first(ssk));
	dscp_after(msk, ssk, 100000);
	KUNIT_EXPECT_TRUE(test, weft_goes_first(ssk));
	mark(ssk, 5);
	KUNIT_EXPECT_TRUE(test, weft_goes_first(ssk));
	mark(ssk, 6);
	KUNIT_EXPECT_FALSE(test, weft_goes_first(ssk));
	mark(ssk, 7);
	KUNIT_EXPECT_FALSE(test, weft_goes_first(ssk));
	weft_mark_urgent(ssk);
	KUNIT_EXPECT_FALSE(test, weft_goes_first(ssk));
	weft_priorities = 2;
	mark(ssk, 1);
	KUNIT_EXPECT_FALSE(test, weft_goes_first(ssk));
}

static void thresholds_of_the_controller_come_before_built_in_ones(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = capable_subflow(test, msk);

	weft_priorities = 8;
	KUNIT_ASSERT_EQ(test, set_thresholds(test, 1, HOUR_NS, 6), 0);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 3000), DSCP_OF_CLASS_3);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 6001), DSCP_OF_CLASS_7);
	weft_thresholds_clear(&init_net);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 3000), DSCP_OF_CLASS_1);
}

static void thresholds_that_have_expired_do_not_hold(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = capable_subflow(test, msk);

	weft_priorities = 8;
	KUNIT_ASSERT_EQ(test, set_thresholds(test, 1, 1, 6), 0);
	usleep_range(10, 100);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 3000), DSCP_OF_CLASS_1);
}

static void thresholds_for_another_number_of_classes_do_not_hold(struct kunit *test)
{
	struct mptcp_sock *msk = test->priv;
	struct sock *ssk = capable_subflow(test, msk);

	weft_priorities = 8;
	KUNIT_ASSERT_EQ(test, set_thresholds(test, 1, HOUR_NS, 2), 0);
	KUNIT_EXPECT_EQ(test, dscp_after(msk, ssk, 3000), DSCP_OF_CLASS_1);
}

static void older_thresholds_replace_newer_ones_only_after_these_expired(struct kunit *test)
{
	struct weft_thresholds last;

	KUNIT_ASSERT_EQ(test, set_thresholds(test, 7, HOUR_NS, 6), 0);
	KUNIT_EXPECT_EQ(test, set_thresholds(test, 6, HOUR_NS, 6), -ESTALE);
	KUNIT_EXPECT_EQ(test, set_thresholds(test, 7, 1, 6), 0);
	usleep_range(10, 100);
	KUNIT_EXPECT_EQ(test, set_thresholds(test, 6, HOUR_NS, 6), 0);
	KUNIT_ASSERT_TRUE(test, weft_thresholds_copy(&init_net, &last));
	KUNIT_EXPECT_EQ(test, last.version, 6);
}

static struct kunit_case priority_cases[] = {
	KUNIT_CASE(data_have_the_class_of_what_is_left),
	KUNIT_CASE(the_ecn_bits_stay),
	KUNIT_CASE(an_end_that_is_unknown_counts_as_what_was_sent),
	KUNIT_CASE(one_that_waits_to_write_more_counts_as_what_it_has_written),
	KUNIT_CASE(one_that_tells_its_class_has_that),
	KUNIT_CASE(what_an_application_tells_of_comes_after_what_it_has_written),
	KUNIT_CASE(what_was_told_holds_until_the_last_write_shows),
	KUNIT_CASE(without_classes_nothing_is_written),
	KUNIT_CASE(fewer_classes_have_some_of_the_thresholds),
	KUNIT_CASE(data_wait_for_packets_that_they_would_overtake),
	KUNIT_CASE(data_do_not_wait_for_packets_that_are_stuck),
	KUNIT_CASE(data_do_not_wait_where_packets_hardly_do),
	KUNIT_CASE(urgent_packets_are_not_overtaken),
	KUNIT_CASE(a_subflow_has_no_room_for_data_that_would_overtake),
	KUNIT_CASE(equal_messages_spread_over_two_classes),
	KUNIT_CASE(a_message_has_one_factor_until_its_end),
	KUNIT_CASE(the_factor_has_the_bounds_that_the_parameter_says),
	KUNIT_CASE(all_but_urgent_packets_and_the_last_two_classes_go_first),
	KUNIT_CASE(thresholds_of_the_controller_come_before_built_in_ones),
	KUNIT_CASE(thresholds_that_have_expired_do_not_hold),
	KUNIT_CASE(thresholds_for_another_number_of_classes_do_not_hold),
	KUNIT_CASE(older_thresholds_replace_newer_ones_only_after_these_expired),
	{}
};

static int new_connection_of_test(struct kunit *test)
{
	test->priv = new_connection(test);
	weft_spread_percent = 0;
	weft_drain = true;
	return 0;
}

static void no_classes_after_test(struct kunit *test)
{
	weft_priorities = 0;
	weft_thresholds_clear(&init_net);
	weft_conn_release(test->priv);
}

static int room_for_thresholds(struct kunit_suite *suite)
{
	return weft_thresholds_register();
}

static void no_room_after_suite(struct kunit_suite *suite)
{
	weft_thresholds_unregister();
}

static struct kunit_suite priority_suite = {
	.name		= "weft_priority",
	.suite_init	= room_for_thresholds,
	.suite_exit	= no_room_after_suite,
	.init		= new_connection_of_test,
	.exit		= no_classes_after_test,
	.test_cases	= priority_cases,
};
kunit_test_suite(priority_suite);
