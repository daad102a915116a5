// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of weft_rescue.c: what is sent again, and what only seemed to be lost. */
#include "connection.h"

#include "../weft_rescue.c"

#define BLOCKER_SLOT	0

/* Two subflows with room; the first one carries the data at the left edge. */
struct rescue_test {
	struct mptcp_sock		*msk;
	struct mptcp_subflow_context	*blocker;
	struct mptcp_subflow_context	*other;
	struct weft_rescue		rescue;
};

static void make_room(struct mptcp_subflow_context *subflow)
{
	struct sock *ssk = mptcp_subflow_tcp_sock(subflow);

	ssk->sk_prot = &tcp_prot;
	sock_net_set(ssk, &init_net);
	ssk->sk_sndbuf = 100 * PAYLOAD;
	tcp_sk(ssk)->snd_cwnd = 10;
	tcp_sk(ssk)->snd_wnd = 100 * PAYLOAD;
}

static struct rescue_test *new_rescue(struct kunit *test)
{
	struct rescue_test *it = kunit_kzalloc(test, sizeof(*it), GFP_KERNEL);
	struct weft_usable usable;

	KUNIT_ASSERT_NOT_NULL(test, it);
	it->msk = new_connection(test);
	it->blocker = add_subflow(test, it->msk, BLOCKER_SLOT);
	it->other = add_subflow(test, it->msk, 1);
	make_room(it->blocker);
	make_room(it->other);
	KUNIT_ASSERT_TRUE(test, weft_usable(it->msk, &usable));
	return it;
}

/* The worker asks because the left edge has not moved. */
static int ask(struct rescue_test *it)
{
	it->rescue.is_due = true;
	return weft_rescue_get_retrans(&it->rescue, it->msk, BLOCKER_SLOT);
}

static int begin(struct rescue_test *it)
{
	it->rescue.is_on = true;
	it->rescue.is_new = true;
	return ask(it);
}

static void what_a_subflow_holds_up_goes_to_another(struct kunit *test)
{
	struct rescue_test *it = new_rescue(test);

	KUNIT_EXPECT_EQ(test, begin(it), 0);
	KUNIT_EXPECT_TRUE(test, it->other->scheduled);
	KUNIT_EXPECT_FALSE(test, it->blocker->scheduled);
	KUNIT_EXPECT_EQ(test, ask(it), 0);
	weft_conn_release(it->msk);
}

static void a_rescue_ends_with_an_ack_on_the_subflow(struct kunit *test)
{
	struct rescue_test *it = new_rescue(test);

	KUNIT_EXPECT_EQ(test, begin(it), 0);
	tcp_sk(mptcp_subflow_tcp_sock(it->blocker))->delivered++;
	KUNIT_EXPECT_EQ(test, ask(it), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, it->rescue.is_on);
	weft_conn_release(it->msk);
}

static void a_rescue_ends_when_the_receiver_reports_a_duplicate(struct kunit *test)
{
	struct rescue_test *it = new_rescue(test);

	KUNIT_EXPECT_EQ(test, begin(it), 0);
	tcp_sk(mptcp_subflow_tcp_sock(it->blocker))->dsack_dups++;
	KUNIT_EXPECT_EQ(test, ask(it), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, it->rescue.is_on);
	weft_conn_release(it->msk);
}

static void the_worker_gets_one_answer_for_all_fragments(struct kunit *test)
{
	struct rescue_test *it = new_rescue(test);
	int burst;

	KUNIT_EXPECT_EQ(test, begin(it), 0);
	burst = it->msk->rtx_burst;
	KUNIT_EXPECT_EQ(test, burst, 2 * PAYLOAD);
	it->msk->rtx_burst = 0;
	/* as if the worker's next question came at once */
	it->rescue.sent_jiffies = jiffies + 1;
	KUNIT_EXPECT_EQ(test, weft_rescue_get_retrans(&it->rescue, it->msk, BLOCKER_SLOT),
			-EAGAIN);
	KUNIT_EXPECT_EQ(test, it->msk->rtx_burst, 0);
	weft_conn_release(it->msk);
}

static void mptcps_own_timeout_sends_nothing_while_no_subflow_is_stalled(struct kunit *test)
{
	struct rescue_test *it = new_rescue(test);
	struct sock *ssk = mptcp_subflow_tcp_sock(it->blocker);

	KUNIT_EXPECT_EQ(test, weft_rescue_get_retrans(&it->rescue, it->msk, BLOCKER_SLOT),
			-EAGAIN);
	inet_csk(ssk)->icsk_ca_state = TCP_CA_Loss;
	KUNIT_EXPECT_EQ(test, weft_rescue_get_retrans(&it->rescue, it->msk, BLOCKER_SLOT), 0);
	KUNIT_EXPECT_TRUE(test, it->other->scheduled);
	weft_conn_release(it->msk);
}

static void after_an_idle_time_the_time_begins_again(struct kunit *test)
{
	struct rescue_test *it = new_rescue(test);

	weft_rescue_data_sent(&it->rescue, it->msk, true, SHORT_BYTES);
	KUNIT_EXPECT_TRUE(test, timer_pending(&it->rescue.timer));
	/* the timer of an hour ago still runs */
	it->rescue.una_jiffies = jiffies - 3600 * HZ;
	weft_rescue_data_sent(&it->rescue, it->msk, false, SHORT_BYTES);
	KUNIT_EXPECT_TRUE(test, time_before(it->rescue.una_jiffies, jiffies - HZ));
	weft_rescue_data_sent(&it->rescue, it->msk, true, SHORT_BYTES);
	KUNIT_EXPECT_TRUE(test, time_after(it->rescue.una_jiffies, jiffies - HZ));
	weft_rescue_end(&it->rescue);
	weft_conn_release(it->msk);
}

/* With this RTT of the first subflow; the other one's is unknown. */
static unsigned long timeout_after(struct kunit *test, u32 srtt_us, u64 written_bytes)
{
	struct rescue_test *it = new_rescue(test);
	unsigned long timeout;

	tcp_sk(mptcp_subflow_tcp_sock(it->blocker))->srtt_us = srtt_us << 3;
	weft_rescue_data_sent(&it->rescue, it->msk, true, written_bytes);
	timeout = it->rescue.timeout;
	weft_rescue_end(&it->rescue);
	weft_conn_release(it->msk);
	return timeout;
}

static void a_connection_that_has_written_little_waits_for_less_time(struct kunit *test)
{
	const unsigned long usual = msecs_to_jiffies(weft_rescue_ms);

	KUNIT_EXPECT_EQ(test, timeout_after(test, 100, SHORT_BYTES + 1),
			usual + usecs_to_jiffies(200) + 1);
	KUNIT_EXPECT_EQ(test, timeout_after(test, 100, SHORT_BYTES), usecs_to_jiffies(1000) + 1);
	/* but never for more */
	KUNIT_EXPECT_EQ(test, timeout_after(test, 50000, SHORT_BYTES),
			usual + usecs_to_jiffies(100000) + 1);
}

static struct kunit_case rescue_cases[] = {
	KUNIT_CASE(what_a_subflow_holds_up_goes_to_another),
	KUNIT_CASE(a_rescue_ends_with_an_ack_on_the_subflow),
	KUNIT_CASE(a_rescue_ends_when_the_receiver_reports_a_duplicate),
	KUNIT_CASE(the_worker_gets_one_answer_for_all_fragments),
	KUNIT_CASE(mptcps_own_timeout_sends_nothing_while_no_subflow_is_stalled),
	KUNIT_CASE(after_an_idle_time_the_time_begins_again),
	KUNIT_CASE(a_connection_that_has_written_little_waits_for_less_time),
	{}
};

static struct kunit_suite rescue_suite = {
	.name		= "weft_rescue",
	.test_cases	= rescue_cases,
};
kunit_test_suite(rescue_suite);
