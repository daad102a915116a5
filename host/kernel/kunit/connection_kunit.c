// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of connection.c and view.c: slots of subflows, usable subflows, what is seen
 * of them, and the accounting of decisions; and of the accounting of redundant.c. The
 * connection is a real struct mptcp_sock with subflows in its list, filled in as the core
 * does it.
 */
#include <linux/export.h>

#include "connection.h"

/* weft.ko is loaded too, and exports the same symbols */
#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(symbol)

#include "../connection.c"
#include "../view.c"
#include "../reinject.c"
#include "../redundant.c"

static void in_loss_recovery(struct mptcp_subflow_context *subflow)
{
	inet_csk(mptcp_subflow_tcp_sock(subflow))->icsk_ca_state = TCP_CA_Loss;
}

static void a_subflow_keeps_its_slot(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct mptcp_subflow_context *first = add_subflow(test, msk, 0);
	struct mptcp_subflow_context *second = add_subflow(test, msk, 5);

	KUNIT_EXPECT_EQ(test, weft_slot(weft_conn(msk), first), -ENOENT);
	KUNIT_EXPECT_EQ(test, slot_of(msk, weft_conn(msk), first), 0);
	KUNIT_EXPECT_EQ(test, slot_of(msk, weft_conn(msk), second), 1);
	list_move(&second->node, &msk->conn_list);
	KUNIT_EXPECT_EQ(test, slot_of(msk, weft_conn(msk), first), 0);
	KUNIT_EXPECT_EQ(test, weft_slot(weft_conn(msk), second), 1);
	weft_conn_release(msk);
}

static void a_ninth_subflow_waits_for_a_slot(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct mptcp_subflow_context *subflow[WEFT_PATHS_MAX + 1];
	int i;

	for (i = 0; i <= WEFT_PATHS_MAX; i++)
		subflow[i] = add_subflow(test, msk, i);
	for (i = 0; i < WEFT_PATHS_MAX; i++)
		KUNIT_EXPECT_EQ(test, slot_of(msk, weft_conn(msk), subflow[i]), i);
	KUNIT_EXPECT_EQ(test, slot_of(msk, weft_conn(msk), subflow[i]), -ENOSPC);

	weft_conn(msk)->subflow[3].bytes = 77;
	list_del(&subflow[3]->node);
	KUNIT_EXPECT_EQ(test, slot_of(msk, weft_conn(msk), subflow[i]), 3);
	KUNIT_EXPECT_EQ(test, weft_conn(msk)->subflow[3].bytes, 0);
	weft_conn_release(msk);
}

static void a_newcomer_does_not_inherit_a_burst(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct mptcp_subflow_context *first = add_subflow(test, msk, 0);
	int slot = slot_of(msk, weft_conn(msk), first);

	weft_grant(msk, first, slot, 5 * PAYLOAD);
	msk->snd_burst -= 2 * PAYLOAD;
	list_del(&first->node);
	KUNIT_EXPECT_EQ(test, slot_of(msk, weft_conn(msk), add_subflow(test, msk, 1)),
			slot);
	KUNIT_EXPECT_FALSE(test, weft_account(msk));
	KUNIT_EXPECT_EQ(test, weft_conn(msk)->subflow[slot].bytes, 0);
	weft_conn_release(msk);
}

static void a_decision_is_over_when_its_burst_is_used_up(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct mptcp_subflow_context *subflow = add_subflow(test, msk, 0);
	struct weft_conn *conn = weft_conn(msk);
	int slot = slot_of(msk, conn, subflow);

	KUNIT_EXPECT_EQ(test, weft_grant(msk, subflow, slot, 3 * PAYLOAD), 0);
	KUNIT_EXPECT_TRUE(test, subflow->scheduled);
	KUNIT_EXPECT_EQ(test, msk->snd_burst, 3 * PAYLOAD);
	KUNIT_EXPECT_FALSE(test, weft_account(msk));

	msk->snd_burst -= PAYLOAD;
	KUNIT_EXPECT_FALSE(test, weft_account(msk));
	KUNIT_EXPECT_EQ(test, conn->subflow[slot].bytes, PAYLOAD);
	KUNIT_EXPECT_EQ(test, conn->subflow[slot].packets, 0);

	msk->snd_burst -= 2 * PAYLOAD;
	KUNIT_EXPECT_TRUE(test, weft_account(msk));
	KUNIT_EXPECT_EQ(test, conn->subflow[slot].bytes, 3 * PAYLOAD);
	KUNIT_EXPECT_EQ(test, conn->subflow[slot].packets, 3);
	KUNIT_EXPECT_FALSE(test, weft_account(msk));
	weft_conn_release(msk);
}

static void slot_totals_do_not_end_a_decision(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct mptcp_subflow_context *first = add_subflow(test, msk, 0);
	struct mptcp_subflow_context *second = add_subflow(test, msk, 1);
	struct weft_conn *conn = weft_conn(msk);
	int slots[] = { slot_of(msk, conn, first), slot_of(msk, conn, second) };

	weft_grant(msk, first, slots[0], 3 * PAYLOAD);
	msk->snd_burst -= PAYLOAD;
	KUNIT_EXPECT_EQ(test, weft_slot_totals(msk, slots[0]).bytes, PAYLOAD);
	KUNIT_EXPECT_EQ(test, weft_slot_totals(msk, slots[0]).packets, 0);

	msk->snd_burst -= 2 * PAYLOAD;
	KUNIT_EXPECT_EQ(test, weft_slot_totals(msk, slots[0]).bytes, 3 * PAYLOAD);
	KUNIT_EXPECT_EQ(test, weft_slot_totals(msk, slots[0]).packets, 3);
	KUNIT_EXPECT_EQ(test, weft_slot_totals(msk, slots[1]).bytes, 0);
	KUNIT_EXPECT_EQ(test, conn->subflow[slots[0]].bytes, 0);

	KUNIT_EXPECT_TRUE(test, weft_account(msk));
	KUNIT_EXPECT_EQ(test, weft_slot_totals(msk, slots[0]).bytes, 3 * PAYLOAD);
	KUNIT_EXPECT_EQ(test, weft_slot_totals(msk, slots[0]).packets, 3);
	weft_conn_release(msk);
}

static void more_than_the_burst_is_counted_too(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct mptcp_subflow_context *subflow = add_subflow(test, msk, 0);
	struct weft_conn *conn = weft_conn(msk);
	int slot = slot_of(msk, conn, subflow);

	/* a burst of one byte is one packet: the core rounds up */
	weft_grant(msk, subflow, slot, 1);
	msk->snd_burst -= PAYLOAD;
	KUNIT_EXPECT_TRUE(test, weft_account(msk));
	KUNIT_EXPECT_EQ(test, conn->subflow[slot].bytes, PAYLOAD);
	KUNIT_EXPECT_EQ(test, conn->subflow[slot].packets, 1);
	weft_conn_release(msk);
}

static void a_burst_that_is_cut_short_is_counted_as_far_as_it_went(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct mptcp_subflow_context *first = add_subflow(test, msk, 0);
	struct mptcp_subflow_context *second = add_subflow(test, msk, 1);
	struct weft_conn *conn = weft_conn(msk);
	int slots[] = { slot_of(msk, conn, first), slot_of(msk, conn, second) };

	weft_grant(msk, first, slots[0], 10 * PAYLOAD);
	msk->snd_burst -= 4 * PAYLOAD;
	KUNIT_EXPECT_FALSE(test, weft_account(msk));
	weft_grant(msk, second, slots[1], PAYLOAD);
	msk->snd_burst = 0;
	KUNIT_EXPECT_TRUE(test, weft_account(msk));
	KUNIT_EXPECT_EQ(test, conn->subflow[slots[0]].packets, 4);
	KUNIT_EXPECT_EQ(test, conn->subflow[slots[0]].bytes, 4 * PAYLOAD);
	KUNIT_EXPECT_EQ(test, conn->subflow[slots[1]].packets, 1);
	weft_conn_release(msk);
}

static void what_a_redundant_subflow_skips_is_not_counted(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct mptcp_subflow_context *first = add_subflow(test, msk, 0);
	struct mptcp_subflow_context *second;
	struct weft_conn *conn = weft_conn(msk);
	struct weft_usable usable;

	first->copied_bytes = 2 * PAYLOAD;
	KUNIT_EXPECT_TRUE(test, weft_usable(msk, &usable));
	book(msk, &usable);
	first->copied_seq = 50 * PAYLOAD;
	first->copied_bytes = 3 * PAYLOAD;
	book(msk, &usable);
	KUNIT_EXPECT_EQ(test, conn->subflow[0].bytes, 3 * PAYLOAD);
	KUNIT_EXPECT_EQ(test, conn->subflow[0].packets, 3);

	/* the next subflow in its slot begins at zero */
	list_del(&first->node);
	second = add_subflow(test, msk, 1);
	second->copied_bytes = PAYLOAD;
	KUNIT_EXPECT_TRUE(test, weft_usable(msk, &usable));
	book(msk, &usable);
	KUNIT_EXPECT_EQ(test, conn->subflow[0].bytes, PAYLOAD);
	KUNIT_EXPECT_EQ(test, conn->subflow[0].packets, 1);
	weft_conn_release(msk);
}

static void backup_subflows_count_when_there_is_no_other(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct mptcp_subflow_context *regular = add_subflow(test, msk, 0);
	struct mptcp_subflow_context *backup = add_subflow(test, msk, 1);
	struct weft_usable usable;

	backup->backup = true;
	KUNIT_EXPECT_TRUE(test, weft_usable(msk, &usable));
	KUNIT_EXPECT_EQ(test, usable.count, 1);
	KUNIT_EXPECT_PTR_EQ(test, usable.subflow[0], regular);

	list_del(&regular->node);
	KUNIT_EXPECT_TRUE(test, weft_usable(msk, &usable));
	KUNIT_EXPECT_PTR_EQ(test, usable.subflow[0], backup);
	weft_conn_release(msk);
}

static void a_subflow_after_a_timeout_is_left_out(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct mptcp_subflow_context *lossy = add_subflow(test, msk, 0);
	struct mptcp_subflow_context *backup = add_subflow(test, msk, 1);
	struct mptcp_subflow_context *regular = add_subflow(test, msk, 2);
	struct weft_usable usable;

	in_loss_recovery(lossy);
	backup->request_bkup = true;
	KUNIT_EXPECT_TRUE(test, weft_usable(msk, &usable));
	KUNIT_EXPECT_EQ(test, usable.count, 1);
	KUNIT_EXPECT_PTR_EQ(test, usable.subflow[0], regular);

	/* it still comes before a backup */
	list_del(&regular->node);
	KUNIT_EXPECT_TRUE(test, weft_usable(msk, &usable));
	KUNIT_EXPECT_EQ(test, usable.count, 1);
	KUNIT_EXPECT_PTR_EQ(test, usable.subflow[0], lossy);
	weft_conn_release(msk);
}

static void a_scheduler_may_leave_the_first_timeouts_to_the_subflow(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct mptcp_subflow_context *first = add_subflow(test, msk, 0);
	struct inet_connection_sock *icsk = inet_csk(mptcp_subflow_tcp_sock(first));
	struct weft_usable usable;

	add_subflow(test, msk, 1);
	in_loss_recovery(first);
	weft_conn(msk)->takeover_timeouts = 3;
	icsk->icsk_retransmits = 2;
	KUNIT_EXPECT_TRUE(test, weft_usable(msk, &usable));
	KUNIT_EXPECT_EQ(test, usable.count, 2);
	KUNIT_EXPECT_FALSE(test, weft_has_stalled_subflow(msk));
	icsk->icsk_retransmits = 3;
	KUNIT_EXPECT_TRUE(test, weft_usable(msk, &usable));
	KUNIT_EXPECT_EQ(test, usable.count, 1);
	KUNIT_EXPECT_TRUE(test, weft_has_stalled_subflow(msk));
	weft_conn_release(msk);
}

static void a_subflow_that_sends_again_after_an_idle_time_is_not_stalled(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct sock *ssk = mptcp_subflow_tcp_sock(add_subflow(test, msk, 0));

	inet_csk(ssk)->icsk_rto = HZ;
	tcp_sk(ssk)->packets_out = 1;
	tcp_sk(ssk)->rcv_tstamp = tcp_jiffies32 - 10 * HZ;
	tcp_sk(ssk)->lsndtime = tcp_jiffies32;
	KUNIT_EXPECT_FALSE(test, weft_has_stalled_subflow(msk));
	tcp_sk(ssk)->lsndtime = tcp_jiffies32 - 2 * HZ;
	KUNIT_EXPECT_TRUE(test, weft_has_stalled_subflow(msk));
	weft_conn_release(msk);
}

static void a_full_packet_in_the_queue_counts_as_one(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct mptcp_subflow_context *subflow = add_subflow(test, msk, 0);
	struct tcp_sock *tp = tcp_sk(mptcp_subflow_tcp_sock(subflow));
	struct weft_subflow_view view;
	struct weft_usable usable;

	KUNIT_ASSERT_TRUE(test, weft_usable(msk, &usable));
	tp->snd_cwnd = 10;
	/* four bytes more, as with a Data ACK of 32 bits */
	tp->write_seq = tp->snd_nxt + PAYLOAD + 4;
	weft_view_subflows(msk, &usable, &view);
	KUNIT_EXPECT_EQ(test, view.queued_packets, 1);
	tp->write_seq += 1;
	weft_view_subflows(msk, &usable, &view);
	KUNIT_EXPECT_EQ(test, view.queued_packets, 2);
	weft_conn_release(msk);
}

static void without_an_active_subflow_there_is_none(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct mptcp_subflow_context *subflow = add_subflow(test, msk, 0);
	struct weft_usable usable;

	mptcp_subflow_tcp_sock(subflow)->sk_state = TCP_FIN_WAIT1;
	KUNIT_EXPECT_FALSE(test, weft_usable(msk, &usable));
	list_del(&subflow->node);
	KUNIT_EXPECT_FALSE(test, weft_usable(msk, &usable));
	weft_conn_release(msk);
}

static void a_connection_without_state_gets_one(struct kunit *test)
{
	struct mptcp_sock *msk = new_connection(test);
	struct weft_usable usable;

	weft_conn_release(msk);
	KUNIT_EXPECT_NULL(test, weft_conn(msk));
	add_subflow(test, msk, 0);
	KUNIT_EXPECT_TRUE(test, weft_usable(msk, &usable));
	KUNIT_EXPECT_NOT_NULL(test, weft_conn(msk));
	weft_conn_release(msk);
}

static struct kunit_case connection_cases[] = {
	KUNIT_CASE(a_subflow_keeps_its_slot),
	KUNIT_CASE(a_ninth_subflow_waits_for_a_slot),
	KUNIT_CASE(a_newcomer_does_not_inherit_a_burst),
	KUNIT_CASE(a_decision_is_over_when_its_burst_is_used_up),
	KUNIT_CASE(slot_totals_do_not_end_a_decision),
	KUNIT_CASE(more_than_the_burst_is_counted_too),
	KUNIT_CASE(a_burst_that_is_cut_short_is_counted_as_far_as_it_went),
	KUNIT_CASE(what_a_redundant_subflow_skips_is_not_counted),
	KUNIT_CASE(backup_subflows_count_when_there_is_no_other),
	KUNIT_CASE(a_subflow_after_a_timeout_is_left_out),
	KUNIT_CASE(a_scheduler_may_leave_the_first_timeouts_to_the_subflow),
	KUNIT_CASE(a_subflow_that_sends_again_after_an_idle_time_is_not_stalled),
	KUNIT_CASE(a_full_packet_in_the_queue_counts_as_one),
	KUNIT_CASE(without_an_active_subflow_there_is_none),
	KUNIT_CASE(a_connection_without_state_gets_one),
	{}
};

static struct kunit_suite connection_suite = {
	.name		= "weft_connection",
	.test_cases	= connection_cases,
};
kunit_test_suite(connection_suite);
