// SPDX-License-Identifier: GPL-2.0-only
/* Tests of which subflow weft gives a packet. */
#include "weft_decision.h"

static void test_paths(void)
{
	struct weft_subflow_view view[] = { path(0, 0, 0, RTT_US), path(1, 0, 0, RTT_US) };
	struct weft_conn_view conn = packets_left(100000);
	struct weft_sched sched = {};

	view[0].rtt_min_us = 10 * RTT_US;
	view[0].srtt_us = 10 * RTT_US;
	view[0].rtt_us = 10 * RTT_US;
	report(weft_sched_choose(&sched, view, 2, &conn) == 1,
	       "the packet takes the path on which it arrives first");

	fill(&sched, view, 2, 0);
	ack(&view[1], 1, RTT_US);
	fill(&sched, view, 2, RTT_US);
	report(view[1].in_flight_packets && view[0].in_flight_packets,
	       "with much left the slow path helps");

	view[0].in_flight_packets = 0;
	conn.now_us = RTT_US;
	conn.unsent_bytes = 5 * PAYLOAD;
	report(weft_sched_choose(&sched, view, 2, &conn) == WEFT_WAIT,
	       "with little left it waits for the fast path");
	conn.app_is_blocked = true;
	report(weft_sched_choose(&sched, view, 2, &conn) == 0,
	       "but not when the application waits to write more");
}

static void test_other_choices(void)
{
	struct weft_subflow_view view[] = { path(0, 2, 0, RTT_US), path(1, 0, 0, 2 * RTT_US) };
	struct weft_conn_view conn = packets_left(100000);
	struct weft_sched sched = {};

	weft_subflow_packets = 0;
	report(weft_sched_choose(&sched, view, 2, &conn) == 1,
	       "a packet arrives sooner on a slower path than behind others");
	weft_choice = BY_RTT;
	report(weft_sched_choose(&sched, view, 2, &conn) == 0,
	       "by the lowest RTT, what is outstanding does not count");
	weft_choice = IN_TURN;
	conn.last_slot = 0;
	report(weft_sched_choose(&sched, view, 2, &conn) == 1, "in turn it is the next one");
	conn.last_slot = 1;
	report(weft_sched_choose(&sched, view, 2, &conn) == 0, "and then the first again");
	view[0].space_bytes = 0;
	report(weft_sched_choose(&sched, view, 2, &conn) == 1, "unless that has no room");
	weft_choice = BY_ARRIVAL;
	weft_subflow_packets = 2;
}

/* How many packets four subflows get whose windows have @size, in 1 / WEFT_WINDOW_ONE. */
static u32 fill_four(u32 size)
{
	struct weft_conn_view conn = packets_left(100);
	struct weft_subflow_view view[4];
	struct weft_sched sched = {};
	unsigned int i;

	for (i = 0; i < 4; i++)
		view[i] = path(i, 0, 0, RTT_US);
	weft_sched_choose(&sched, view, 4, &conn);
	for (i = 0; i < 4; i++)
		sched.window[i].size = size;
	return fill(&sched, view, 4, 0);
}

static void test_small_windows(void)
{
	weft_subflow_packets = 0;
	report(fill_four(WEFT_WINDOW_ONE / 4) == 2,
	       "four windows of a quarter of a packet let the connection send two");
	report(fill_four(WEFT_WINDOW_ONE) == 4, "of one packet four");
	report(fill_four(2 * WEFT_WINDOW_ONE) == 8, "and of two packets eight");
	weft_subflow_packets = 2;
}

static void test_small_window_beside_large(void)
{
	struct weft_subflow_view two[] = { path(0, 3, 0, RTT_US), path(1, 0, 0, 2 * RTT_US) };
	struct weft_conn_view conn = evenly();
	struct weft_sched sched = {};

	weft_subflow_packets = 0;
	weft_sched_choose(&sched, two, 2, &conn);
	sched.window[0].size = 3 * WEFT_WINDOW_ONE;
	sched.window[1].size = WEFT_WINDOW_ONE;
	report(fill(&sched, two, 2, 0) == 2 && two[1].in_flight_packets == 2,
	       "a window of one packet gets its turn beside a larger one that is full");
	weft_subflow_packets = 2;
}

static void test_short_packets(void)
{
	struct weft_subflow_view view[] = { path(0, 1, 0, RTT_US), path(1, 1, 0, RTT_US) };
	struct weft_conn_view conn = packets_left(1);
	struct weft_sched sched = {};

	view[1].srtt_us = 2 * RTT_US;
	view[0].nagle_delays_short = true;
	report(weft_sched_choose(&sched, view, 2, &conn) == 0,
	       "a full packet may follow a short one that is not acknowledged");
	conn.unsent_bytes = PAYLOAD / 2;
	report(weft_sched_choose(&sched, view, 2, &conn) == 1, "a short one may not");
	conn.unsent_bytes = 2 * PAYLOAD;
	conn.window_bytes = PAYLOAD / 2;
	report(weft_sched_choose(&sched, view, 2, &conn) == 1,
	       "nor one that is short because the receiver's window ends there");
	conn = packets_left(1);
	conn.unsent_bytes = PAYLOAD / 2;
	/* of the second one nothing is known, and so it would wait for an ACK on the first */
	view[1].in_flight_packets = 0;
	report(weft_sched_choose(&sched, view, 2, &conn) == 1,
	       "and goes to a subflow that would be left out otherwise");
}

static void test_resent(void)
{
	struct weft_subflow_view view[] = { path(0, 1, 0, RTT_US), path(1, 0, 0, 10 * RTT_US) };
	struct weft_conn_view conn = packets_left(1);
	struct weft_sched sched = {};

	report(weft_sched_choose(&sched, view, 2, &conn) == 0,
	       "a packet follows one that is under way on a fast subflow");
	conn.unacked_bytes = 0;
	report(weft_sched_choose(&sched, view, 2, &conn) == 1,
	       "but not one that is sent again although the receiver has it");
	view[1].in_flight_packets = 1;
	report(weft_sched_choose(&sched, view, 2, &conn) == 0,
	       "unless all subflows do that");
}

static void test_carrier(void)
{
	struct weft_subflow_view view[] = { path(0, 0, 0, RTT_US), path(1, 0, 0, 2 * RTT_US) };
	struct weft_conn_view conn = packets_left(2);
	struct weft_sched sched = {};
	int first, last;

	first = weft_sched_choose(&sched, view, 2, &conn);
	conn.last_slot = first;
	conn.next_seq += PAYLOAD;
	conn.unsent_bytes -= PAYLOAD;
	view[first].space_bytes = 0;
	last = weft_sched_choose(&sched, view, 2, &conn);
	report(first != last && weft_sched_carrier(&sched, 0, last) == first,
	       "which subflow has carried a packet is known with the next decision");
	report(weft_sched_carrier(&sched, conn.next_seq, last) == last,
	       "and of the last packet without one");
}

static void test_silence(void)
{
	struct weft_subflow_view view[] = { path(0, 0, 0, RTT_US), path(1, 0, 0, RTT_US) };
	struct weft_conn_view conn = packets_left(1);
	struct weft_sched sched = {};

	view[0].rtt_min_us = RTT_US / 10;
	view[0].srtt_us = RTT_US / 10;
	view[0].rtt_us = RTT_US / 10;
	fill(&sched, view, 2, 0);
	conn.now_us = RTT_US;
	report(weft_sched_choose(&sched, view, 2, &conn) == WEFT_WAIT,
	       "the last packet waits for the fastest subflow");
	/* four times 15 us, and 3 ms */
	conn.now_us = 3061;
	report(weft_sched_choose(&sched, view, 2, &conn) == 1,
	       "but not for one whose ACKs are overdue");
	report(weft_window_is_silent(&sched.window[0], &view[0], 0, 3061) &&
	       !weft_window_is_silent(&sched.window[0], &view[0], 1, 6060) &&
	       weft_window_is_silent(&sched.window[0], &view[0], 1, 6061),
	       "and with each subflow that is silent the patience for the next one doubles");
}

static void test_long_queue(void)
{
	struct weft_subflow_view view = path(0, 0, 0, RTT_US);
	struct weft_sched sched = {};

	/* 4 x 2 x 150 / 1750 packets are less than the one packet that each may have there */
	report(settle(&sched, &view, 40, 1900, 100) == 2,
	       "with a long queueing delay the window is two packets, so that ACKs are not delayed");
	sched = (struct weft_sched){};
	report(settle(&sched, &view, 40, 3000, 100) == 3,
	       "and three where the link would idle during the ACK of two");
}

/* The subflows that are used after an ACK on each, with RTTs from @rtt_us on. */
static u32 used(struct weft_sched *sched, struct weft_subflow_view *view, unsigned int n,
		u32 rtt_us)
{
	const u64 now_us = 1000000;
	unsigned int i;

	for (i = 0; i < n; i++) {
		view[i].srtt_us = rtt_us + i;
		view[i].rtt_us = rtt_us;
		ack(&view[i], view[i].in_flight_packets + 1, now_us);
		view[i].in_flight_packets = 0;
	}
	fill(sched, view, n, now_us);
	return weft_crowd_limit(&sched->crowd, sched->window, view, n, (1U << n) - 1, now_us);
}

/* @later_us the first subflow, whose queue is ten RTTs long, has its next ACK. */
static u32 jammed(struct weft_sched *sched, struct weft_subflow_view *view, unsigned int n,
		  u64 later_us)
{
	const u64 now_us = 1000000 + later_us;

	sched->window[0].sampled_us = now_us;
	return weft_crowd_limit(&sched->crowd, sched->window, view, n, (1U << n) - 1, now_us);
}

static void test_crowd(void)
{
	struct weft_subflow_view four[] = { path(0, 0, 0, RTT_US), path(1, 0, 0, RTT_US),
					    path(2, 0, 0, RTT_US), path(3, 0, 0, RTT_US) };
	struct weft_sched sched = {};
	unsigned int i;

	fill(&sched, four, 4, 0);
	report(used(&sched, four, 4, RTT_US) == 0xf, "with short queues all subflows are used");
	report(used(&sched, four, 4, 5 * RTT_US) == 0xf,
	       "and with those that a few connections cause");
	/* 8 x 2 x 150 / 450 packets, two for each subflow */
	weft_queue_packets = 8;
	report(used(&sched, four, 4, 6 * RTT_US) == 0x3,
	       "with long queues as many as the share has packets for, with the lowest RTTs");
	four[0].in_flight_packets = 0;
	sched.window[3].sampled_us = 0;
	report(weft_crowd_limit(&sched.crowd, sched.window, four, 4, 0xf, 1000000) == 0x9,
	       "and one of which nothing is known");
	four[3].in_flight_packets = 1;
	sched.window[2].sampled_us = 0;
	report(weft_crowd_limit(&sched.crowd, sched.window, four, 4, 0xf, 1000000) == 0x1,
	       "but only one of those at a time");
	weft_queue_packets = 4;
	/* 4 x 2 x 150 / 850 packets */
	report(used(&sched, four, 4, 10 * RTT_US) == 0x1,
	       "with very long queues only one is used");
	sched.window[3].sampled_us = 0;
	four[3].in_flight_packets = 0;
	report(weft_crowd_limit(&sched.crowd, sched.window, four, 4, 0xf, 1000000) == 0x1,
	       "and none of which nothing is known");
	report(jammed(&sched, four, 4, 3999) == 0x1, "for four round trips");
	report(jammed(&sched, four, 4, 4000) == 0x9, "after that, one of these");
	four[3].in_flight_packets = 1;
	report(jammed(&sched, four, 4, 4000) == 0x1, "once");
	four[3].in_flight_packets = 0;
	/* by now nothing is known of any other */
	report(jammed(&sched, four, 4, 35999) == 0x1 && jammed(&sched, four, 4, 36000) == 0x3,
	       "and again after eight times as long");
	used(&sched, four, 4, RTT_US);
	used(&sched, four, 4, 10 * RTT_US);
	sched.window[3].sampled_us = 0;
	four[3].in_flight_packets = 0;
	report(jammed(&sched, four, 4, 0) == 0x1 && jammed(&sched, four, 4, 4000) == 0x9,
	       "a new jam begins with four again");
	for (i = 0; i < 4; i++) {
		sched.window[i].contention.score_us = ~0ULL;
		sched.window[i].weight = WEFT_WEIGHT_MIN;
	}
	report(weft_crowd_limit(&sched.crowd, sched.window, four, 4, 0xf, 1000000) == 0xf,
	       "beside other traffic a connection with much left uses all");
	for (i = 0; i < 4; i++)
		sched.window[i].weight = WEFT_WEIGHT_MAX;
	report(weft_crowd_limit(&sched.crowd, sched.window, four, 4, 0xf, 1000000) != 0xf,
	       "and one with little left does not");
	weft_subflow_packets = 0;
	report(weft_crowd_limit(&sched.crowd, sched.window, four, 4, 0xf, 1000000) == 0xf,
	       "without a number of packets for each subflow all are used");
	weft_subflow_packets = 2;
}

static void test_advice(void)
{
	struct weft_subflow_view two[] = { path(0, 0, 0, RTT_US), path(1, 0, 0, RTT_US) };
	struct weft_conn_view conn = packets_left(1000);
	struct weft_sched sched = {};

	report(weft_sched_choose(&sched, two, 2, &conn) == 0 && sched.advice.is_incomplete,
	       "a new subflow asks for the controller's pattern");

	sched.advice.known = 3;
	sched.advice.is_incomplete = false;
	sched.window[0].controller_rtt_us = 4 * RTT_US;
	report(weft_sched_choose(&sched, two, 2, &conn) == 1 && !sched.advice.is_incomplete,
	       "before the first ACK the controller's RTT decides");

	sched.window[0].controller_rtt_us = 0;
	sched.window[0].controller_min_rtt_us = RTT_US;
	sched.window[1].controller_min_rtt_us = RTT_US - 1;
	two[1].rtt_min_us = RTT_US + 1;
	report(weft_sched_choose(&sched, two, 2, &conn) == 0,
	       "its RTT without queues, the same for all connections, does not");

	sched.window[0].rtt_us = RTT_US;
	sched.window[1].rtt_us = 2 * RTT_US;
	report(weft_sched_choose(&sched, two, 2, &conn) == 0,
	       "after that, the RTT of ACKs decides");

	sched.advice.excluded = 1;
	report(fill(&sched, two, 2, 0) && !two[0].in_flight_packets,
	       "a path that the controller excludes gets nothing");
	two[1] = path(0, 0, 0, RTT_US);
	report(weft_sched_choose(&sched, two, 1, &conn) == 0,
	       "unless there is no other");
}

int main(void)
{
	test_paths();
	test_other_choices();
	test_small_windows();
	test_small_window_beside_large();
	test_short_packets();
	test_resent();
	test_carrier();
	test_long_queue();
	test_silence();
	test_crowd();
	test_advice();
	never_stalls(weft_sched_choose, sizeof(struct weft_sched));
	return done_testing();
}
