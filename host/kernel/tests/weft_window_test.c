// SPDX-License-Identifier: GPL-2.0-only
/* Tests of weft's windows, of what is left to send, and of contention. */
#include "weft_decision.h"

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
	report(two[1].in_flight_packets == 2, "and if it met no queue, the others begin");

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

enum marks { NONE, SOME, ALL };

/* What a queue of so many microseconds lets a subflow send after @rounds round trips. */
static u32 beside_queue(struct weft_sched *sched, struct weft_subflow_view *view,
			u32 queueing_us, unsigned int rounds, enum marks marks)
{
	u32 rtt_us = RTT_US * 3 / 2 + queueing_us, placed = 0;

	while (rounds--) {
		unsigned int ack;

		for (ack = 0; ack < GROUP_ACKS; ack++) {
			u32 delivered = view->in_flight_packets;

			view->rtt_us = rtt_us;
			view->delivered_packets += delivered;
			view->in_flight_packets = min(view->in_flight_packets, 1U);
			view->marked_packets += marks == ALL ? delivered :
						marks == SOME ? delivered * (ack % 2) / 2 : 0;
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

	report(beside_queue(&sched, &view, 3 * base_us, 2000, NONE) < 20,
	       "a queue that weft's connections may have made limits the window for ever");
	report(beside_queue(&sched, &view, 2 * base_us, 2000, ALL) < 20,
	       "so does one in which all packets are marked, to which nobody gives way");
	beside_queue(&sched, &view, 0, 2, NONE);
	report(beside_queue(&sched, &view, 3 * base_us, 4, SOME) < 20,
	       "a queue in which some packets are marked does so for a while");
	report(beside_queue(&sched, &view, 3 * base_us, 200, SOME) == 5000,
	       "until only the congestion window counts");
	report(beside_queue(&sched, &view, 0, 1, NONE) == 5000 &&
	       beside_queue(&sched, &view, 3 * base_us, 1, SOME) == 5000,
	       "also when the queue has been empty for a round trip");
	report(beside_queue(&sched, &view, 0, 3, NONE) < 5000 &&
	       beside_queue(&sched, &view, 3 * base_us, 20, NONE) < 20,
	       "when it has been for three, everything begins again");

	memset(&sched, 0, sizeof(sched));
	view = path(0, 0, 0, RTT_US);
	beside_queue(&sched, &view, 3 * base_us, 2, NONE);
	view.lost_packets++;
	beside_queue(&sched, &view, 3 * base_us, 10, NONE);
	view.acked_us += 1000000;
	report(beside_queue(&sched, &view, 3 * base_us, 10, NONE) < 20,
	       "a second in which the subflow is not used shows nothing");

	memset(&sched, 0, sizeof(sched));
	view = path(0, 0, 0, RTT_US);
	beside_queue(&sched, &view, 3 * base_us, 2, NONE);
	view.lost_packets++;
	report(beside_queue(&sched, &view, 3 * base_us, 800, NONE) == 5000,
	       "a lost packet counts for as long as the queue is not empty");

	memset(&sched, 0, sizeof(sched));
	view = path(0, 0, 0, RTT_US);
	beside_queue(&sched, &view, base_us, 2, NONE);
	view.lost_packets++;
	report(beside_queue(&sched, &view, base_us, 50, NONE) < 20 &&
	       beside_queue(&sched, &view, base_us, 50, NONE) == 5000,
	       "a queue that has lost one is a full one, however short it is");

	memset(&sched, 0, sizeof(sched));
	view = path(0, 0, 0, RTT_US);
	report(beside_queue(&sched, &view, 5 * base_us, 4, NONE) < 20 &&
	       beside_queue(&sched, &view, 5 * base_us, 6, NONE) == 5000,
	       "a long queue that marks nothing is soon of other traffic");

	memset(&sched, 0, sizeof(sched));
	view = path(0, 0, 0, RTT_US);
	view.has_class = true;
	report(beside_queue(&sched, &view, 5 * base_us, 50, NONE) < 20,
	       "but packets of a class may only wait for those of others");
	memset(&sched, 0, sizeof(sched));
	report(beside_queue(&sched, &view, 100 * base_us, 2, NONE) < 20 &&
	       beside_queue(&sched, &view, 100 * base_us, 8, NONE) == 5000,
	       "a queue of a hundred RTTs is of other traffic, also when nothing is lost in it");

	memset(&sched, 0, sizeof(sched));
	view.goes_first = true;
	report(beside_queue(&sched, &view, 100 * base_us, 50, SOME) < 20,
	       "but not where the class of its packets is served before that of others");
}

/* The marks of a queue that connections of weft fill: with two packets of each there are none. */
static void test_marks_of_weft(void)
{
	const u32 base_us = RTT_US * 3 / 2;
	struct weft_subflow_view view = path(0, 0, 0, RTT_US);
	struct weft_sched sched = {};
	u32 least = ~0U;
	unsigned int round;
	bool competes = false;

	for (round = 0; round < 2000; round++) {
		/* half of its packets are in a queue that is as long as one RTT */
		bool keeps_more = sched.window[0].size / 2 > 5 * WEFT_WINDOW_ONE / 2;

		competes |= beside_queue(&sched, &view, base_us, 1, keeps_more ? SOME : NONE) == 5000;
		least = round > 100 ? min(least, sched.window[0].size) : least;
	}
	report(least < 5 * WEFT_WINDOW_ONE, "while packets are marked, a connection keeps two in the queue");
	report(!competes, "marks that end with that are not of other traffic");
}

static void test_model(void)
{
	struct weft_subflow_view view = path(0, 0, 0, RTT_US);
	struct weft_sched sched = {};

	view.has_model = true;
	report(beside_queue(&sched, &view, 3 * RTT_US, 2, NONE) == 5000,
	       "a congestion control with a model of the path decides alone");
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
			before_us = weft_rtt_base_us(&sched.window[0], &view);
		view.rtt_us = now_us < 2000000 ? RTT_US : 5 * RTT_US;
		view.delivered_packets++;
		fill(&sched, &view, 1, now_us);
		view.in_flight_packets = 0;
	}
	/* a quarter of the slack stays where no round trip was longer than the lowest RTT */
	report(before_us == RTT_US * 9 / 8 &&
	       weft_rtt_base_us(&sched.window[0], &view) == 5 * RTT_US + SLACK_MAX_US / 4,
	       "ten seconds after a route has become longer, its RTT counts as one without a queue");
}

static void test_handshake_in_queue(void)
{
	struct weft_subflow_view view = path(0, 0, 0, 3 * RTT_US);
	struct weft_sched sched = {};

	settle(&sched, &view, 20, 3 * RTT_US, 4);
	report(weft_rtt_base_us(&sched.window[0], &view) == RTT_US * 3 / 2,
	       "an RTT above that of the handshake by more than its slack has a queue in it");

	memset(&sched, 0, sizeof(sched));
	view = path(0, 0, 0, 3 * RTT_US);
	view.rtt_min_us = 2 * RTT_US;
	settle(&sched, &view, 20, 2 * RTT_US + 30, 4);
	report(weft_rtt_base_us(&sched.window[0], &view) == 2 * RTT_US + 30,
	       "round trips hardly longer than a handshake that met a queue end its slack");
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

/*
 * What is left of 20 MB that an application writes 100 kB at a time, 4 MB of which are
 * unsent, when it has written the last of them @silence_us ago. It waits for @pause_us
 * before it writes more, or for room.
 */
static u64 left_at_end(u64 pause_us, u64 silence_us, bool waits_for_room)
{
	struct weft_conn_view conn = packets_left(0);
	struct weft_size size = {};

	for (conn.next_seq = 0; conn.next_seq < 16000000; conn.next_seq += 100000) {
		conn.unsent_bytes = 4000000;
		weft_size_left(&size, &conn, !conn.next_seq);
		conn.now_us += pause_us;
		conn.app_is_blocked = waits_for_room;
		weft_size_left(&size, &conn, false);
		conn.app_is_blocked = false;
	}
	conn.now_us += silence_us;
	conn.next_seq += 1000000;
	conn.unsent_bytes = 2900000;
	return weft_size_left(&size, &conn, false);
}

static void test_last_write(void)
{
	report(left_at_end(800, 1100, true) == 2900000,
	       "one that could have written more for a while has written its last");
	report(left_at_end(800, 900, true) >= 14900000, "but not sooner");
	report(left_at_end(800, 1100, false) >= 14900000,
	       "nor if it has made such pauses before");
	report(left_at_end(800, 2700, false) == 2900000, "unless this one is much longer");
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
	report(weft_rtt_us(&sched.window[0], &view) == 200, "but counts as a part of the RTT");

	view.rtt_us = 250;
	sched.window[0].ack_wait = 50000;
	report(weft_rtt_ack_queueing_us(&sched.window[0], &view) == 150,
	       "the RTT bounds how long an ACK waited");

	memset(&sched, 0, sizeof(sched));
	view = path(0, 0, 0, RTT_US);
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
	test_marks_of_weft();
	test_model();
	test_shared_bottleneck();
	test_longer_route();
	test_handshake_in_queue();
	test_streams();
	test_last_write();
	return done_testing();
}
