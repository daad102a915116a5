// SPDX-License-Identifier: GPL-2.0-only
/* Tests of weft's decision, with an RTT of 100 us unless the test says otherwise. */
#include "../weft_size.c"
#include "../weft_contention.c"
#include "../weft_window.c"
#include "../weft_crowd.c"
#include "../weft_choose.c"
#include "decision.h"

#define RTT_US	100U

/* A subflow with room; @rtt_us of its last packet, @delivered so far. */
static struct weft_subflow_view path(u8 slot, u32 in_flight, u32 delivered, u32 rtt_us)
{
	struct weft_subflow_view view = subflow(slot, 0, 1000, in_flight);

	view.srtt_us = rtt_us;
	view.rtt_us = rtt_us;
	view.rtt_min_us = RTT_US;
	view.delivered_packets = delivered;
	return view;
}

/* So much data left that the size has the weight 1. */
static struct weft_conn_view evenly(void)
{
	struct weft_conn_view conn = packets_left(0);

	conn.unsent_bytes = 1000ULL * weft_even_kb - 1;
	return conn;
}

/* How many packets it gives to subflows until it waits. */
static u32 fill_from(struct weft_conn_view conn, struct weft_sched *sched,
		     struct weft_subflow_view *view, unsigned int n, u64 now_us)
{
	u32 placed = 0;
	int choice;

	conn.now_us = now_us;
	for (;;) {
		choice = weft_sched_choose(sched, view, n, &conn);
		if (choice == WEFT_WAIT || placed == 5000)
			return placed;
		view[choice].in_flight_packets++;
		placed++;
	}
}

static u32 fill(struct weft_sched *sched, struct weft_subflow_view *view, unsigned int n,
		u64 now_us)
{
	return fill_from(evenly(), sched, view, n, now_us);
}

static void ack(struct weft_subflow_view *view, u32 packets, u64 now_us)
{
	view->delivered_packets += packets;
	view->in_flight_packets -= packets;
	view->acked_us = now_us;
}

static void test_start(void)
{
	struct weft_subflow_view two[] = { path(0, 0, 0, RTT_US), path(1, 0, 0, RTT_US) };
	struct weft_sched sched = {};

	report(fill_from(packets_left(9), &sched, two, 2, 0) == 10,
	       "a connection whose data fit in TCP's initial window has that window");
	memset(&sched, 0, sizeof(sched));
	two[0].in_flight_packets = 0;
	report(fill_from(packets_left(20), &sched, two, 2, 0) == 6,
	       "one with little to send begins with six packets");
	report(two[0].in_flight_packets == 6, "on one subflow");

	memset(&sched, 0, sizeof(sched));
	two[0].in_flight_packets = 0;
	report(fill(&sched, two, 2, 0) == 2, "one with much to send begins with two");
	ack(&two[0], 2, 2 * RTT_US);
	fill(&sched, two, 2, 2 * RTT_US);
	report(two[0].in_flight_packets == 4, "each acknowledged packet lets two out on its subflow");
	report(two[1].in_flight_packets == 3, "and if it met no queue, the others begin");

	two[0] = path(0, 0, 7, RTT_US);
	two[1] = path(1, 0, 3, RTT_US);
	report(fill(&sched, two, 2, 100 * RTT_US) == 2, "after an idle time it begins again");

	two[0] = path(0, 0, 10, RTT_US);
	two[1] = path(1, 0, 6, RTT_US);
	two[0].acked_us = 100 * RTT_US + 50;
	two[1].acked_us = 100 * RTT_US + 50;
	report(fill(&sched, two, 2, 100 * RTT_US + 50) > 6,
	       "but not when ACKs have just come for all packets in flight");

	memset(&sched, 0, sizeof(sched));
	two[0] = path(0, 0, 0, 10000);
	two[0].rtt_min_us = 10000;
	report(fill(&sched, two, 1, 0) == 10, "and begins with ten packets where the RTT is long");
}

/* A subflow with @window packets outstanding sees @rounds round trips of @rtt_us. */
static u32 settle_from(struct weft_conn_view conn, struct weft_sched *sched,
		       struct weft_subflow_view *view, u32 window, u32 rtt_us,
		       unsigned int rounds)
{
	unsigned int ack;
	u64 now_us = 0;

	fill_from(conn, sched, view, 1, now_us);
	sched->window[0].size = window * WEFT_WINDOW_ONE;
	sched->window[0].is_slow_start = false;
	fill_from(conn, sched, view, 1, now_us);
	while (rounds--) {
		now_us += rtt_us;
		view->rtt_us = rtt_us;
		/* one packet per ACK, the last ACK is for the rest */
		for (ack = 1; ack <= GROUP_ACKS; ack++) {
			u32 left = ack < GROUP_ACKS ?
				   view->in_flight_packets - 1 : 1;

			view->delivered_packets += view->in_flight_packets - left;
			view->in_flight_packets = left;
			fill_from(conn, sched, view, 1, now_us);
		}
	}
	return sched->window[0].size / WEFT_WINDOW_ONE;
}

static u32 settle(struct weft_sched *sched, struct weft_subflow_view *view, u32 window,
		  u32 rtt_us, unsigned int rounds)
{
	return settle_from(evenly(), sched, view, window, rtt_us, rounds);
}

static void test_queue(void)
{
	struct weft_subflow_view view = path(0, 0, 0, RTT_US);
	struct weft_sched sched = {};
	u32 window;

	/* 40 (200 - 150) / 200 = 10 packets in the queue, the share is 4: 40 - 6 / 2 */
	window = settle(&sched, &view, 40, 200, 1);
	report(window == 37, "a window shrinks by half of its excess packets in the queue");

	view = path(0, 0, 0, RTT_US);
	memset(&sched, 0, sizeof(sched));
	/* w (200 - 150) / 200 = 4 */
	window = settle(&sched, &view, 40, 200, 100);
	report(window == 16, "and settles with its share in the queue");

	view = path(0, 0, 0, RTT_US);
	memset(&sched, 0, sizeof(sched));
	window = settle(&sched, &view, 10, 149, 4);
	report(window > 50, "without a queue it doubles every round trip");
}

/* The window at which a connection with so much data left settles. */
static u32 rest(u64 unsent_bytes, bool app_is_blocked, u32 rtt_us)
{
	struct weft_subflow_view view = path(0, 0, 0, RTT_US);
	struct weft_conn_view conn = evenly();
	struct weft_sched sched = {};

	conn.unsent_bytes = unsent_bytes;
	conn.app_is_blocked = app_is_blocked;
	return settle_from(conn, &sched, &view, 40, rtt_us, 100);
}

static void test_sizes(void)
{
	unsigned int even_kb = weft_even_kb;

	/* w (200 - 150) / 200 = 16, less what half a step is rounded to */
	report(rest(500000, false, 200) == 63,
	       "a connection with little data left may have four times as much in queues");
	report(rest(2000000, false, 200) == 31, "one with half of the even size, twice as much");
	report(rest(100000000, false, 200) == 16, "one with much data left keeps its share");
	/* w (250 - 150) / 250 = 16 x 75 / 100 */
	report(rest(500000, false, 250) == 30, "in a longer queue the share of the one with little left falls");
	report(rest(500000, false, 450) == rest(evenly().unsent_bytes, false, 450),
	       "until it is that of an even size");
	/* w (300 - 150) / 300 = 4 / 2 */
	report(rest(100000000, false, 300) == 4, "and the share of the one with much left falls to half of that");
	report(rest(500000, true, 300) == 4, "as does that of one whose application waits to write more");
	weft_even_kb = 0;
	report(rest(500000, false, 200) == 16 && rest(100000000, true, 300) == 8,
	       "without an even size all shares are the same");
	weft_even_kb = even_kb;
}

static void test_always_queued(void)
{
	struct weft_subflow_view view = path(0, 0, 0, RTT_US);
	struct weft_sched sched = {};

	view.rtt_min_us = 2 * RTT_US;
	report(settle(&sched, &view, 40, 200, 4) > 50,
	       "a connection that has always had a queue takes it for propagation delay");
	sched.window[0].controller_min_rtt_us = RTT_US;
	report(settle(&sched, &view, 40, 200, 100) == 16,
	       "unless the controller tells the RTT without queues");
}

/* What a queue of so many microseconds lets a subflow send after @rounds round trips. */
static u32 beside_queue(struct weft_sched *sched, struct weft_subflow_view *view,
			u32 queueing_us, unsigned int rounds, bool is_marked)
{
	u32 rtt_us = RTT_US * 3 / 2 + queueing_us, placed = 0;

	while (rounds--) {
		unsigned int ack;

		for (ack = 0; ack < GROUP_ACKS; ack++) {
			view->rtt_us = rtt_us;
			view->delivered_packets += view->in_flight_packets;
			view->in_flight_packets = min(view->in_flight_packets, 1U);
			view->marked_packets += is_marked;
			view->acked_us += rtt_us / GROUP_ACKS;
			placed = fill(sched, view, 1, view->acked_us);
		}
	}
	return placed;
}

static void test_contention(void)
{
	/* RTT without queues, and slack: 150 us */
	const u32 base_us = RTT_US * 3 / 2;
	struct weft_subflow_view view = path(0, 0, 0, RTT_US);
	struct weft_sched sched = {};

	report(beside_queue(&sched, &view, 3 * base_us, 2000, false) < 20,
	       "a queue that weft's connections may have made limits the window for ever");
	report(beside_queue(&sched, &view, 3 * base_us, 20, true) < 20,
	       "a queue in which packets are marked does so for a while");
	report(beside_queue(&sched, &view, 3 * base_us, 200, true) == 5000,
	       "until only the congestion window counts");
	report(beside_queue(&sched, &view, 0, 2, false) < 5000 &&
	       beside_queue(&sched, &view, 3 * base_us, 20, false) < 20,
	       "when the queue has been empty, everything begins again");

	memset(&sched, 0, sizeof(sched));
	view = path(0, 0, 0, RTT_US);
	beside_queue(&sched, &view, 3 * base_us, 2, false);
	view.lost_packets++;
	report(beside_queue(&sched, &view, 3 * base_us, 800, false) == 5000,
	       "a lost packet counts for as long as the queue is not empty");

	memset(&sched, 0, sizeof(sched));
	view = path(0, 0, 0, RTT_US);
	report(beside_queue(&sched, &view, 100 * base_us, 2, false) < 20 &&
	       beside_queue(&sched, &view, 100 * base_us, 8, false) == 5000,
	       "a queue of a hundred RTTs is of other traffic, also when nothing is lost in it");
}

/* Packets that a connection keeps in one queue of two RTTs, on so many subflows. */
static u32 kept_in_queue(unsigned int n)
{
	struct weft_window window = { .weight = WEFT_WEIGHT_ONE };

	return n * queue_share(&window, n, 3 * RTT_US, RTT_US) / WEFT_WINDOW_ONE;
}

static void test_shared_bottleneck(void)
{
	bool is_bounded = true;
	unsigned int n;

	for (n = 1; n <= WEFT_PATHS_MAX; n++)
		is_bounded &= kept_in_queue(n) <= weft_queue_packets;
	report(is_bounded, "more subflows do not keep more packets in a queue that they share");
}

static void test_longer_route(void)
{
	struct weft_subflow_view view = path(0, 0, 0, RTT_US);
	struct weft_sched sched = {};
	u32 before_us = 0;
	u64 now_us;

	for (now_us = 0; now_us < 12000000; now_us += 100000) {
		if (now_us == 2000000)
			before_us = base_rtt_us(&sched.window[0], &view);
		view.rtt_us = now_us < 2000000 ? RTT_US : 5 * RTT_US;
		view.delivered_packets++;
		fill(&sched, &view, 1, now_us);
		view.in_flight_packets = 0;
	}
	report(before_us == RTT_US * 3 / 2 && base_rtt_us(&sched.window[0], &view) == 6 * RTT_US,
	       "ten seconds after a route has become longer, its RTT counts as one without a queue");
}

/* How much is left of a flow that always has so much unsent, after so much was sent. */
static u64 left_of_stream(u64 unsent_bytes, u64 sent_bytes)
{
	struct weft_conn_view conn = packets_left(0);
	struct weft_size size = {};
	u64 left = 0;

	conn.unsent_bytes = unsent_bytes;
	for (conn.next_seq = 0; conn.next_seq <= sent_bytes; conn.next_seq += 100000)
		left = weft_size_left(&size, &conn, !conn.next_seq);
	return left;
}

static void test_streams(void)
{
	struct weft_conn_view conn = packets_left(1);
	struct weft_size size = {};

	report(left_of_stream(1000000, 50000000) >= 49000000,
	       "an application that never has more than 1 MB unsent is not short for ever");
	conn.unsent_bytes = 1000000;
	weft_size_left(&size, &conn, true);
	conn.next_seq = 900000;
	conn.unsent_bytes = 100000;
	report(weft_size_left(&size, &conn, false) == 100000,
	       "one that has written all at once has as much left as is unsent");
	weft_size_left(&size, &conn, true);
	report(size.start_seq == 0, "one whose window is used up is not idle");
	conn.next_seq = 50000000;
	report(weft_size_left(&size, &conn, true) == 100000, "after an idle time it is new");
	report(size.start_seq == 50000000, "and begins there");
}

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
	return weft_crowd_limit(sched->window, view, n, (1U << n) - 1, now_us);
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
	report(weft_crowd_limit(sched.window, four, 4, 0xf, 1000000) == 0x9,
	       "and one of which nothing is known");
	four[3].in_flight_packets = 1;
	sched.window[2].sampled_us = 0;
	report(weft_crowd_limit(sched.window, four, 4, 0xf, 1000000) == 0x1,
	       "but only one of those at a time");
	weft_queue_packets = 4;
	/* 4 x 2 x 150 / 850 packets */
	report(used(&sched, four, 4, 10 * RTT_US) == 0x1,
	       "with very long queues only one is used");
	sched.window[3].sampled_us = 0;
	four[3].in_flight_packets = 0;
	report(weft_crowd_limit(sched.window, four, 4, 0xf, 1000000) == 0x1,
	       "and none of which nothing is known");
	for (i = 0; i < 4; i++) {
		sched.window[i].contention.score_us = ~0ULL;
		sched.window[i].weight = WEFT_WEIGHT_MIN;
	}
	report(weft_crowd_limit(sched.window, four, 4, 0xf, 1000000) == 0xf,
	       "beside other traffic a connection with much left uses all");
	for (i = 0; i < 4; i++)
		sched.window[i].weight = WEFT_WEIGHT_MAX;
	report(weft_crowd_limit(sched.window, four, 4, 0xf, 1000000) != 0xf,
	       "and one with little left does not");
	weft_subflow_packets = 0;
	report(weft_crowd_limit(sched.window, four, 4, 0xf, 1000000) == 0xf,
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

static void test_ack_queueing(void)
{
	struct weft_subflow_view view = path(0, 0, 0, RTT_US);
	struct weft_sched sched = {};
	u32 window;

	/* 200 us of which the ACK has waited 98 in units of 1.024 us */
	fill(&sched, &view, 1, 0);
	sched.window[0].ack_wait_unit_ns = 1024;
	sched.window[0].ack_wait = 96;
	window = settle(&sched, &view, 10, 200, 4);
	report(window > 50, "a queue that the ACK waited in does not limit the window");
	report(weft_window_rtt_us(&sched.window[0], &view) == 200, "but counts as a part of the RTT");

	view.rtt_us = 250;
	sched.window[0].ack_wait = 50000;
	report(ack_queueing_us(&sched.window[0], &view) == 150,
	       "the RTT bounds how long an ACK waited");

	sched.window[0].ack_wait_unit_ns = 0;
	window = settle(&sched, &view, 40, 200, 100);
	report(window == 16, "and where switches do not tell, all queueing counts as that of data");
}

int main(void)
{
	test_start();
	test_queue();
	test_sizes();
	test_ack_queueing();
	test_always_queued();
	test_contention();
	test_shared_bottleneck();
	test_longer_route();
	test_streams();
	test_paths();
	test_other_choices();
	test_short_packets();
	test_long_queue();
	test_silence();
	test_crowd();
	test_advice();
	never_stalls(weft_sched_choose, sizeof(struct weft_sched));
	return done_testing();
}
