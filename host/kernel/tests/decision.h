/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of the schedulers' decisions share. */
#ifndef _WEFT_TESTS_DECISION_H
#define _WEFT_TESTS_DECISION_H

#include "../view.h"
#include "tap.h"

#define PAYLOAD	1420U

/* A subflow: RTT in ms, congestion window and data in flight in packets. */
static inline struct weft_subflow_view subflow(u8 slot, u32 rtt_ms, u32 cwnd, u32 in_flight)
{
	return (struct weft_subflow_view){
		.slot = slot,
		.srtt_us = rtt_ms * 1000,
		.rtt_us = rtt_ms * 1000,
		.rtt_min_us = rtt_ms * 1000,
		.cwnd_packets = cwnd,
		.in_flight_packets = in_flight,
		.payload_bytes = PAYLOAD,
		.space_bytes = cwnd > in_flight ? (cwnd - in_flight) * PAYLOAD : 0,
		.writable = true,
	};
}

/*
 * A connection with this many packets to send, and a window that is large enough. What its
 * subflows have in flight has not arrived otherwise.
 */
static inline struct weft_conn_view packets_left(u64 packets)
{
	return (struct weft_conn_view){
		.unacked_bytes = PAYLOAD,
		.unsent_bytes = packets * PAYLOAD,
		.window_bytes = 1ULL << 30,
		.send_window_bytes = 1ULL << 30,
		.last_slot = -1,
	};
}

static inline struct weft_subflow_view random_subflow(u8 slot)
{
	struct weft_subflow_view view = subflow(slot, 0, 1 + draw(1U << draw(16)), 0);

	view.srtt_us = draw(8) ? draw(1U << draw(24)) : 0;
	view.rttvar_us = draw(view.srtt_us / 2 + 1);
	view.rtt_us = draw(2 * view.srtt_us + 1);
	view.rtt_min_us = draw(view.srtt_us + 1);
	view.delivered_packets = draw(1U << draw(31));
	view.lost_packets = draw(4);
	view.in_flight_packets = draw(3) ? draw(view.cwnd_packets + 1) : 0;
	view.queued_packets = draw(2) ? draw(1000) : 0;
	view.writable = draw(4);
	view.nagle_delays_short = draw(2);
	view.space_bytes = 0;
	if (view.cwnd_packets > view.in_flight_packets + view.queued_packets &&
	    view.writable && draw(4))
		view.space_bytes = PAYLOAD * (view.cwnd_packets -
					      view.in_flight_packets -
					      view.queued_packets);
	return view;
}

/*
 * No connection stalls: in any state, a decision names a subflow that can take the
 * packet, or waits while an ACK is due or no subflow has room.
 */
static inline void never_stalls(weft_choose_fn *choose, size_t state_size)
{
	bool sound = true, wakes = true;
	void *state = malloc(state_size + 1);
	int i;

	for (i = 0; i < 200000 && state; i++) {
		struct weft_conn_view conn = packets_left(1 + draw(1U << draw(20)));
		struct weft_subflow_view view[WEFT_PATHS_MAX];
		unsigned int n = 1 + draw(WEFT_PATHS_MAX), j;
		bool due = false, could = false;
		int choice;

		/* a connection of some decisions, its subflows at random */
		if (i % 16 == 0)
			memset(state, 0, state_size);
		for (j = 0; j < n; j++) {
			view[j] = random_subflow(j);
			due |= weft_ack_is_due(&view[j]);
			could |= view[j].space_bytes > 0;
		}
		conn.now_us = i * 1000ULL;
		conn.next_seq = i * 1000ULL;
		conn.unacked_bytes = draw(4) ? draw(1U << 24) : 0;
		conn.window_bytes = draw(4) ? draw(1U << 24) : 0;
		conn.send_window_bytes = conn.window_bytes + draw(1U << 24);
		conn.last_slot = draw(2) ? (int)draw(n) : -1;

		choice = choose(state, view, n, &conn);
		if (choice == WEFT_WAIT)
			wakes &= due || !could;
		else
			sound &= choice >= 0 && choice < (int)n &&
				 (view[choice].writable || view[choice].space_bytes);
	}
	report(state && sound, "a choice is a subflow that can take the packet");
	report(state && wakes, "it waits only while an ACK is due or no subflow has room");
	free(state);
}

#endif /* _WEFT_TESTS_DECISION_H */
