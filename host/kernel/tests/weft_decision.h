/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of the scheduler weft share: an RTT of 100 us unless a test says otherwise. */
#ifndef _WEFT_TESTS_WEFT_DECISION_H
#define _WEFT_TESTS_WEFT_DECISION_H

#include "../weft_size.c"
#include "../weft_contention.c"
#include "../weft_rtt.c"
#include "../weft_window.c"
#include "../weft_crowd.c"
#include "../weft_choose.c"
#include "decision.h"

#define RTT_US	100U

/* A subflow with room; @rtt_us of its last packet, @delivered so far. */
static inline struct weft_subflow_view path(u8 slot, u32 in_flight, u32 delivered, u32 rtt_us)
{
	struct weft_subflow_view view = subflow(slot, 0, 1000, in_flight);

	view.srtt_us = rtt_us;
	view.rtt_us = rtt_us;
	view.rtt_min_us = RTT_US;
	view.delivered_packets = delivered;
	return view;
}

/* So much data left that the size has the weight 1. */
static inline struct weft_conn_view evenly(void)
{
	struct weft_conn_view conn = packets_left(0);

	conn.unsent_bytes = 1000ULL * weft_even_kb - 1;
	return conn;
}

/* How many packets it gives to subflows until it waits. */
static inline u32 fill_from(struct weft_conn_view conn, struct weft_sched *sched,
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

static inline u32 fill(struct weft_sched *sched, struct weft_subflow_view *view, unsigned int n,
		       u64 now_us)
{
	return fill_from(evenly(), sched, view, n, now_us);
}

static inline void ack(struct weft_subflow_view *view, u32 packets, u64 now_us)
{
	view->delivered_packets += packets;
	view->in_flight_packets -= packets;
	view->acked_us = now_us;
}

/* A subflow with @window packets outstanding sees @rounds round trips of @rtt_us. */
static inline u32 settle_from(struct weft_conn_view conn, struct weft_sched *sched,
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

static inline u32 settle(struct weft_sched *sched, struct weft_subflow_view *view, u32 window,
			 u32 rtt_us, unsigned int rounds)
{
	return settle_from(evenly(), sched, view, window, rtt_us, rounds);
}

#endif /* _WEFT_TESTS_WEFT_DECISION_H */
