// SPDX-License-Identifier: GPL-2.0-only
/* Tests of otias's decision: the fast subflow has RTT 10 ms and window 10. */
#include "../otias.c"
#include "decision.h"

/* The fast subflow has a full window and packets in its queue; the slow one is idle. */
static int decide(u32 queued, u32 slow_rtt_ms)
{
	struct weft_subflow_view view[] = {
		subflow(0, 10, 10, 10),
		subflow(1, slow_rtt_ms, 10, 0),
	};
	const struct weft_conn_view conn = packets_left(100);

	view[0].queued_packets = queued;
	return weft_otias_choose(NULL, view, 2, &conn);
}

int main(void)
{
	struct weft_subflow_view view = subflow(0, 10, 10, 0);

	report(twice_arrival_us(&view) == 10000, "with room a packet arrives after half an RTT");
	view.queued_packets = 15;
	view.in_flight_packets = 5;
	report(twice_arrival_us(&view) == 30000,
	       "floor((15 - 5) / 10) = 1 round to wait: 1.5 RTT");

	/* T_fast = (3 + 0.5) 10 ms = 35 ms; T_slow = 30 or 35 or 40 ms */
	report(decide(35, 60) == 1, "the slow one takes it when it arrives sooner there");
	report(decide(35, 70) == 0, "the first of two equal ones takes it");
	report(decide(35, 80) == 0, "the queue of the fast one grows whatever its window");
	report(decide(0, 60) == 0, "a full window alone is no reason to leave the fast one");
	never_stalls(weft_otias_choose, 0);
	return done_testing();
}
