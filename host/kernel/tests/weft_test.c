// SPDX-License-Identifier: GPL-2.0
/* Tests of weft's decision, with 100 us of RTT where nothing else is said. */
#include "../weft_path.h"
#include "decision.h"

#define RTT_US	100U

/* A subflow with room; @rtt_us of its last packet, @delivered so far. */
static struct weft_view path(u8 slot, u32 in_flight, u32 delivered, u32 rtt_us)
{
	struct weft_view view = subflow(slot, 0, 1000, in_flight);

	view.srtt_us = rtt_us;
	view.rtt_us = rtt_us;
	view.rtt_min_us = RTT_US;
	view.delivered_packets = delivered;
	return view;
}

/* So much left to send that sizes weigh nothing. */
static struct weft_outlook evenly(void)
{
	struct weft_outlook outlook = packets_left(0);

	outlook.unsent_bytes = 1000ULL * weft_even_kb - 1;
	return outlook;
}

/* How many packets it places on one subflow after another until it waits. */
static u32 fill_from(struct weft_outlook outlook, struct weft_weft *weft,
		     struct weft_view *view, unsigned int n, u64 now_us)
{
	u32 placed = 0;
	int choice;

	outlook.now_us = now_us;
	for (;;) {
		choice = weft_weft_choose(weft, view, n, &outlook);
		if (choice == WEFT_WAIT || placed == 5000)
			return placed;
		view[choice].in_flight_packets++;
		placed++;
	}
}

static u32 fill(struct weft_weft *weft, struct weft_view *view, unsigned int n,
		u64 now_us)
{
	return fill_from(evenly(), weft, view, n, now_us);
}

static void test_start(void)
{
	struct weft_view two[] = { path(0, 0, 0, RTT_US), path(1, 0, 0, RTT_US) };
	struct weft_weft weft = {};

	report(fill(&weft, two, 2, 0) == 6, "a connection begins with six packets");
	report(two[0].in_flight_packets == 3 && two[1].in_flight_packets == 3,
	       "over all its subflows");

	two[0].delivered_packets = 2;
	two[0].in_flight_packets -= 2;
	report(fill(&weft, two, 2, RTT_US) == 4 && two[1].in_flight_packets == 3,
	       "each packet acknowledged lets two out on its subflow");

	two[0] = path(0, 0, 7, RTT_US);
	two[1] = path(1, 0, 3, RTT_US);
	report(fill(&weft, two, 2, 2 * RTT_US) == 6, "after an idle time it begins anew");

	two[0] = path(0, 0, 10, RTT_US);
	two[1] = path(1, 0, 6, RTT_US);
	two[0].acked_us = 2 * RTT_US + 50;
	two[1].acked_us = 2 * RTT_US + 50;
	report(fill(&weft, two, 2, 2 * RTT_US + 50) > 6,
	       "but not when ACKs have just come for all that it had sent");

	memset(&weft, 0, sizeof(weft));
	two[0] = path(0, 0, 0, 10000);
	two[0].rtt_min_us = 10000;
	report(fill(&weft, two, 1, 0) == 10, "with ten where the way is long");
}

/* Have a subflow of @window packets, all under way, see some round trips of @rtt_us. */
static u32 settle_from(struct weft_outlook outlook, struct weft_weft *weft,
		       struct weft_view *view, u32 window, u32 rtt_us,
		       unsigned int rounds)
{
	unsigned int ack;
	u64 now_us = 0;

	fill_from(outlook, weft, view, 1, now_us);
	weft->path[0].window = window * WEFT_WINDOW_UNIT;
	weft->path[0].is_starting = false;
	fill_from(outlook, weft, view, 1, now_us);
	while (rounds--) {
		now_us += rtt_us;
		view->rtt_us = rtt_us;
		/* a packet each, and what is left */
		for (ack = 1; ack <= WEFT_GROUP_ACKS; ack++) {
			u32 left = ack < WEFT_GROUP_ACKS ?
				   view->in_flight_packets - 1 : 1;

			view->delivered_packets += view->in_flight_packets - left;
			view->in_flight_packets = left;
			fill_from(outlook, weft, view, 1, now_us);
		}
	}
	return weft->path[0].window / WEFT_WINDOW_UNIT;
}

static u32 settle(struct weft_weft *weft, struct weft_view *view, u32 window,
		  u32 rtt_us, unsigned int rounds)
{
	return settle_from(evenly(), weft, view, window, rtt_us, rounds);
}

static void test_queue(void)
{
	struct weft_view view = path(0, 0, 0, RTT_US);
	struct weft_weft weft = {};
	u32 window;

	/* 40 (200 - 150) / 200 = 10 packets in the queue, 4 wanted: 40 - 6 / 2 */
	window = settle(&weft, &view, 40, 200, 1);
	report(window == 37, "a window shrinks by half of what it has too much in the queue");

	view = path(0, 0, 0, RTT_US);
	memset(&weft, 0, sizeof(weft));
	/* w (200 - 150) / 200 = 4 */
	window = settle(&weft, &view, 40, 200, 100);
	report(window == 16, "and comes to rest with its share there");

	view = path(0, 0, 0, RTT_US);
	memset(&weft, 0, sizeof(weft));
	window = settle(&weft, &view, 10, 149, 4);
	report(window > 50, "with no queue it doubles every round trip");
}

/* The window at which a connection comes to rest with so much to send. */
static u32 rest(u64 unsent_bytes, bool more_follows, u32 rtt_us)
{
	struct weft_view view = path(0, 0, 0, RTT_US);
	struct weft_outlook outlook = evenly();
	struct weft_weft weft = {};

	outlook.unsent_bytes = unsent_bytes;
	outlook.more_follows = more_follows;
	return settle_from(outlook, &weft, &view, 40, rtt_us, 100);
}

static void test_sizes(void)
{
	unsigned int even_kb = weft_even_kb;

	/* w (200 - 150) / 200 = 16, less what half a step is rounded to */
	report(rest(500000, false, 200) == 63,
	       "who has little left to send may have four times as much in queues");
	report(rest(2000000, false, 200) == 31, "who has half of the even size, twice");
	report(rest(100000000, false, 200) == 16, "who has much left keeps its share");
	/* w (250 - 150) / 250 = 16 x 75 / 100 */
	report(rest(500000, false, 250) == 30, "in a longer queue the one gives way");
	report(rest(500000, false, 450) == rest(evenly().unsent_bytes, false, 450),
	       "until it has what an even size has");
	/* w (300 - 150) / 300 = 4 / 2 */
	report(rest(100000000, false, 300) == 4, "and the other to half of it");
	report(rest(500000, true, 300) == 4, "as does who waits for room to write more");
	weft_even_kb = 0;
	report(rest(500000, false, 200) == 16 && rest(100000000, true, 300) == 8,
	       "without an even size all have the same");
	weft_even_kb = even_kb;
}

static void test_late_comer(void)
{
	struct weft_view view = path(0, 0, 0, RTT_US);
	struct weft_weft weft = {};

	view.rtt_min_us = 2 * RTT_US;
	report(settle(&weft, &view, 40, 200, 4) > 50,
	       "who has never been without a queue takes it for a part of the way");
	weft.path[0].told_lowest_us = RTT_US;
	report(settle(&weft, &view, 40, 200, 100) == 16,
	       "unless the controller tells how long that is");
}

static void test_competition(void)
{
	struct weft_view view[] = { path(0, 0, 0, RTT_US), path(1, 0, 0, RTT_US) };
	struct weft_weft weft = {};
	unsigned int i, round;
	u32 placed = 0;

	view[1].cwnd_packets = 2000;
	for (round = 1; round < 100; round++) {
		for (i = 0; i < 2; i++) {
			view[i].rtt_us = 1000;
			view[i].delivered_packets += view[i].in_flight_packets;
			view[i].in_flight_packets = min(view[i].in_flight_packets, 1U);
		}
		placed = fill(&weft, view, 2, round * 1000);
	}
	report(placed < 10, "a queue that is never empty keeps it back while nothing is lost");

	view[0].lost_packets++;
	view[1].lost_packets++;
	view[1].space_bytes = 200 * PAYLOAD;
	for (i = 0; i < 2; i++) {
		view[i].delivered_packets++;
		view[i].rtt_us = 1000;
	}
	placed = fill(&weft, view, 2, 100 * 1000);
	report(placed == 5000, "after a loss it competes for it");
	report(view[0].in_flight_packets < 10, "on one subflow only, as one TCP connection does");
}

static void test_paths(void)
{
	struct weft_view view[] = { path(0, 0, 0, RTT_US), path(1, 0, 0, RTT_US) };
	struct weft_outlook outlook = packets_left(100000);
	struct weft_weft weft = {};

	view[0].rtt_min_us = 10 * RTT_US;
	view[0].srtt_us = 10 * RTT_US;
	view[0].rtt_us = 10 * RTT_US;
	report(weft_weft_choose(&weft, view, 2, &outlook) == 1,
	       "the packet takes the path on which it arrives first");

	fill(&weft, view, 2, 0);
	report(view[1].in_flight_packets == 3 && view[0].in_flight_packets == 3,
	       "with much left the slow path helps");

	memset(&weft, 0, sizeof(weft));
	view[0].in_flight_packets = 0;
	view[1].in_flight_packets = 0;
	outlook = packets_left(100000);
	while (view[1].in_flight_packets < 3)
		view[weft_weft_choose(&weft, view, 2, &outlook)].in_flight_packets++;
	outlook.unsent_bytes = 5 * PAYLOAD;
	report(weft_weft_choose(&weft, view, 2, &outlook) == WEFT_WAIT,
	       "with little left it waits for the fast one");
	outlook.more_follows = true;
	report(weft_weft_choose(&weft, view, 2, &outlook) == 0,
	       "but not when the application waits to write more");
}

static void test_short_packets(void)
{
	struct weft_view view[] = { path(0, 1, 0, RTT_US), path(1, 1, 0, RTT_US) };
	struct weft_outlook outlook = packets_left(1);
	struct weft_weft weft = {};

	view[1].srtt_us = 2 * RTT_US;
	view[0].keeps_short = true;
	report(weft_weft_choose(&weft, view, 2, &outlook) == 0,
	       "a full packet goes where a short one waits for its ACK");
	outlook.unsent_bytes = PAYLOAD / 2;
	report(weft_weft_choose(&weft, view, 2, &outlook) == 1, "a short one does not");
}

static void test_silence(void)
{
	struct weft_view view[] = { path(0, 0, 0, RTT_US), path(1, 0, 0, RTT_US) };
	struct weft_outlook outlook = packets_left(1);
	struct weft_weft weft = {};

	view[0].rtt_min_us = RTT_US / 10;
	view[0].srtt_us = RTT_US / 10;
	view[0].rtt_us = RTT_US / 10;
	fill(&weft, view, 2, 0);
	view[1].delivered_packets += view[1].in_flight_packets;
	view[1].in_flight_packets = 0;
	outlook.now_us = RTT_US;
	report(weft_weft_choose(&weft, view, 2, &outlook) == WEFT_WAIT,
	       "the last packet waits for the fastest subflow");
	/* four times 15 us, and 1 ms */
	outlook.now_us = 1061;
	report(weft_weft_choose(&weft, view, 2, &outlook) == 1,
	       "but not for one whose ACKs are overdue");
}

static void test_long_queue(void)
{
	struct weft_view view = path(0, 0, 0, RTT_US);
	struct weft_weft weft = {};

	/* 4 x 2 x 150 / 1750 packets are less than the one packet that each may have there */
	report(settle(&weft, &view, 40, 1900, 100) == 2,
	       "where the wait is long it keeps to two packets, the second for the ACK");
	weft = (struct weft_weft){};
	report(settle(&weft, &view, 40, 3000, 100) == 3,
	       "and to three where a link would idle during the ACK of two");
}

static void test_told(void)
{
	struct weft_view two[] = { path(0, 0, 0, RTT_US), path(1, 0, 0, RTT_US) };
	struct weft_outlook outlook = packets_left(1000);
	struct weft_weft weft = {};

	report(weft_weft_choose(&weft, two, 2, &outlook) == 0 && weft.told.is_wanted,
	       "a new subflow wants to know what the controller says");

	weft.told.slots = 3;
	weft.told.is_wanted = false;
	weft.path[0].told_rtt_us = 4 * RTT_US;
	report(weft_weft_choose(&weft, two, 2, &outlook) == 1 && !weft.told.is_wanted,
	       "where no ACK has come the controller's RTT decides");

	weft.path[0].rtt_us = RTT_US;
	weft.path[1].rtt_us = 2 * RTT_US;
	report(weft_weft_choose(&weft, two, 2, &outlook) == 0,
	       "where ACKs come, what they say");

	weft.told.out = 1;
	report(fill(&weft, two, 2, 0) && !two[0].in_flight_packets,
	       "a path that the controller has taken out gets nothing");
	two[1] = path(0, 0, 0, RTT_US);
	report(weft_weft_choose(&weft, two, 1, &outlook) == 0,
	       "unless there is no other");
}

static void test_way_back(void)
{
	struct weft_view view = path(0, 0, 0, RTT_US);
	struct weft_weft weft = {};
	u32 window;

	/* 200 us of which the ACK has waited 98 in units of 1.024 us */
	fill(&weft, &view, 1, 0);
	weft.path[0].wait_unit_ns = 1024;
	weft.path[0].waited = 96;
	window = settle(&weft, &view, 10, 200, 4);
	report(window > 50, "a queue that the ACK has met does not keep a window back");
	report(standing_rtt_us(&weft.path[0], &view) == 200, "but is part of the round trip");

	view.rtt_us = 250;
	weft.path[0].waited = 50000;
	report(way_back_us(&weft.path[0], &view) == 150,
	       "an ACK waits no longer than its round trip says");

	weft.path[0].wait_unit_ns = 0;
	window = settle(&weft, &view, 40, 200, 100);
	report(window == 16, "and where ACKs do not tell all of it counts as ahead");
}

int main(void)
{
	test_start();
	test_queue();
	test_sizes();
	test_way_back();
	test_late_comer();
	test_competition();
	test_paths();
	test_short_packets();
	test_long_queue();
	test_silence();
	test_told();
	never_stalls(weft_weft_choose, sizeof(struct weft_weft));
	return done_testing();
}
