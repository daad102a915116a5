/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a scheduler sees of a connection: plain numbers. A decision (weft_choose_fn) is
 * a function of these numbers and the scheduler's own state, and of nothing else. So
 * decisions also compile in user space, where tests/ checks them against their papers.
 */
#ifndef _WEFT_VIEW_H
#define _WEFT_VIEW_H

#ifdef __KERNEL__
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include "tests/user.h"
#endif

#include "include/uapi/weft.h"

/* A decision that no subflow gets the next packet: wait for an ACK. */
#define WEFT_WAIT	(-1)

/**
 * struct weft_subflow_view - one usable subflow as a decision sees it
 * @slot: index by which the connection knows the subflow, below WEFT_PATHS_MAX
 * @srtt_us: smoothed RTT; 0 while it is unknown
 * @rttvar_us: mean deviation of the RTT (RFC 6298)
 * @rtt_us: RTT of the packet that was last acknowledged; 0 before the first
 * @rtt_min_us: lowest recent RTT (tcp_min_rtt())
 * @acked_us: when packets were last acknowledged, on the clock of weft_conn_view
 * @delivered_packets: acknowledged so far, wraps
 * @lost_packets: taken for lost so far, wraps
 * @marked_packets: acknowledged so far with a mark of congestion (ECN), wraps
 * @cwnd_packets: congestion window, at least 1
 * @has_class: switches serve its packets by a class (weft_priorities)
 * @goes_first: their class is served before those of long flows that claim none
 * @has_model: the congestion control measures what the path can carry, and sends at that
 *	rate (BBR)
 * @in_flight_packets: sent and not acknowledged
 * @queued_packets: in the subflow's queue and not sent yet, rounded up
 * @payload_bytes: data in a full packet, at least 1
 * @space_bytes: room in the congestion and receive window for data that the subflow
 *	has not been given yet; also 0 while it recovers from a timeout, or the data
 *	would overtake those that it has under way (classes)
 * @writable: the subflow's queue takes at least one more packet, whether that is
 *	within the window or not
 * @nagle_delays_short: a packet that is not full would wait for an ACK (Nagle's
 *	algorithm)
 */
struct weft_subflow_view {
	u8	slot;
	u32	srtt_us;
	u32	rttvar_us;
	u32	rtt_us;
	u32	rtt_min_us;
	u64	acked_us;
	u32	delivered_packets;
	u32	lost_packets;
	u32	marked_packets;
	u32	cwnd_packets;
	u32	in_flight_packets;
	u32	queued_packets;
	u32	payload_bytes;
	u32	space_bytes;
	bool	has_class;
	bool	goes_first;
	bool	has_model;
	bool	writable;
	bool	nagle_delays_short;
};

/**
 * struct weft_conn_view - the connection as a decision sees it
 * @now_us: monotonic time
 * @next_seq: data sequence number of the packet to decide about
 * @unacked_bytes: sent and not acknowledged at the level of the connection; 0 also while
 *	subflows send again what has arrived by others
 * @unsent_bytes: written by the application and not given to any subflow yet
 * @app_is_blocked: the application waits for room to write more
 * @window_bytes: room in the peer's receive window beyond what subflows have been
 *	given
 * @send_window_bytes: all of the send window, from the first byte that is not
 *	acknowledged: the smaller one of receive window and send buffer
 * @last_slot: slot that got the packet of the previous decision; -1 while that
 *	decision has not been used up
 */
struct weft_conn_view {
	u64	now_us;
	u64	next_seq;
	u64	unacked_bytes;
	u64	unsent_bytes;
	u64	window_bytes;
	u64	send_window_bytes;
	bool	app_is_blocked;
	int	last_slot;
};

/**
 * typedef weft_choose_fn - the decision of a scheduler that decides packet by packet
 * @state: the scheduler's own state of the connection
 * @view: usable subflows
 * @n: entries of @view, at least 1
 * @conn: connection
 *
 * Return: index into @view of the subflow for the next packet, or WEFT_WAIT.
 */
typedef int weft_choose_fn(void *state, const struct weft_subflow_view *view,
			   unsigned int n, const struct weft_conn_view *conn);

/**
 * weft_fastest() - the subflow with the lowest RTT
 * @view: subflows
 * @n: entries, at least 1
 * @with_space: consider only those with room in their window
 *
 * A subflow with an unknown RTT counts as the fastest, since its RTT becomes known
 * only when it carries data.
 *
 * Return: its index, or WEFT_WAIT when @with_space leaves none.
 */
static inline int weft_fastest(const struct weft_subflow_view *view, unsigned int n,
			       bool with_space)
{
	int best = WEFT_WAIT;
	unsigned int i;

	for (i = 0; i < n; i++)
		if ((!with_space || view[i].space_bytes) &&
		    (best < 0 || view[i].srtt_us < view[best].srtt_us))
			best = i;
	return best;
}

/**
 * weft_ack_is_due() - whether waiting for a subflow will end
 * @view: subflow
 *
 * A decision may only wait for a subflow of which an ACK will come. The next decision
 * is made when an ACK arrives; without one, a connection with data would stall.
 *
 * Return: true when the subflow has something in flight or about to be.
 */
static inline bool weft_ack_is_due(const struct weft_subflow_view *view)
{
	return view->in_flight_packets || view->queued_packets;
}

/**
 * weft_find_slot() - the subflow of a slot
 * @view: subflows
 * @n: entries
 * @slot: slot
 *
 * Return: its index, or -1 when it is not usable now.
 */
static inline int weft_find_slot(const struct weft_subflow_view *view, unsigned int n,
				 int slot)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (view[i].slot == slot)
			return i;
	return -1;
}

/**
 * weft_packets() - packets of a subflow that it takes to carry some data
 * @bytes: data
 * @view: subflow
 *
 * Return: packets, rounded up; at most U32_MAX.
 */
static inline u32 weft_packets(u64 bytes, const struct weft_subflow_view *view)
{
	u64 packets = div64_u64(bytes + view->payload_bytes - 1,
				view->payload_bytes);

	return min_t(u64, packets, ~0U);
}

/**
 * weft_sendable_bytes() - what a connection could send now
 * @conn: connection
 *
 * Return: bytes that the application has written and the receiver has room for.
 */
static inline u64 weft_sendable_bytes(const struct weft_conn_view *conn)
{
	return min(conn->unsent_bytes, conn->window_bytes);
}

#endif /* _WEFT_VIEW_H */
