/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a scheduler's decision looks at, as plain numbers: so that decisions of
 * type weft_choose_fn are functions of their arguments, which also compile in user
 * space, where tests/ checks them against their papers.
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
 * struct weft_view - one usable subflow as a decision sees it
 * @slot: by which the connection knows it, below WEFT_PATHS_MAX
 * @srtt_us: smoothed RTT; 0 while it is not known
 * @rttvar_us: RFC 6298's mean deviation of it
 * @rtt_us: RTT of the packet acknowledged last; 0 while there is none
 * @rtt_min_us: lowest RTT of late (tcp_min_rtt)
 * @acked_us: when packets were acknowledged last, by the clock of the outlook
 * @delivered_packets: acknowledged so far, wraps
 * @lost_packets: taken for lost so far, wraps
 * @cwnd_packets: congestion window, at least 1
 * @in_flight_packets: sent and not acknowledged
 * @queued_packets: handed to the subflow and not sent yet, rounded up
 * @payload_bytes: data in a full packet, at least 1
 * @space_bytes: room in the congestion and receive window for data that have
 *	not been handed to the subflow yet; 0 as well while it recovers from a
 *	timeout
 * @writable: its queue takes at least one more packet, within the window or not
 * @keeps_short: a packet that is not full would wait for an ACK (Nagle's algorithm)
 */
struct weft_view {
	u8	slot;
	u32	srtt_us;
	u32	rttvar_us;
	u32	rtt_us;
	u32	rtt_min_us;
	u64	acked_us;
	u32	delivered_packets;
	u32	lost_packets;
	u32	cwnd_packets;
	u32	in_flight_packets;
	u32	queued_packets;
	u32	payload_bytes;
	u32	space_bytes;
	bool	writable;
	bool	keeps_short;
};

/**
 * struct weft_outlook - the connection as a decision sees it
 * @now_us: monotonic time
 * @next_seq: data sequence of the packet to decide about
 * @unsent_bytes: written by the application and not handed to any subflow yet
 * @more_follows: the application waits for room to write more
 * @window_bytes: room in the connection's send window beyond what has been
 *	handed to subflows, as the peer's receive window has it
 * @send_window_bytes: all of the send window, from the first byte that is not
 *	acknowledged: the smaller one of receive window and send buffer
 * @placed: slot that the last packet went to since the decision before, -1 when
 *	that decision has not been used up yet
 */
struct weft_outlook {
	u64	now_us;
	u64	next_seq;
	u64	unsent_bytes;
	u64	window_bytes;
	u64	send_window_bytes;
	bool	more_follows;
	int	placed;
};

/**
 * typedef weft_choose_fn - the decision of a scheduler that goes by packets
 * @state: the scheduler's own state of the connection
 * @view: usable subflows
 * @n: entries of @view, at least 1
 * @outlook: connection
 *
 * Return: index into @view of the subflow for the next packet, or WEFT_WAIT.
 */
typedef int weft_choose_fn(void *state, const struct weft_view *view,
			   unsigned int n, const struct weft_outlook *outlook);

/**
 * weft_fastest() - the subflow of the lowest RTT
 * @view: subflows
 * @n: entries, at least 1
 * @with_space: consider only those with room in their window
 *
 * A subflow whose RTT is not known yet counts as the fastest, so that it gets
 * to know it.
 *
 * Return: its index, or WEFT_WAIT when @with_space leaves none.
 */
static inline int weft_fastest(const struct weft_view *view, unsigned int n,
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
 * A decision may only wait for a subflow of which an ACK will come, since
 * nothing else asks again: otherwise a connection with data stalls for good.
 *
 * Return: true when the subflow has something in flight or about to be.
 */
static inline bool weft_ack_is_due(const struct weft_view *view)
{
	return view->in_flight_packets || view->queued_packets;
}

/**
 * weft_find() - the subflow of a slot
 * @view: subflows
 * @n: entries
 * @slot: slot
 *
 * Return: its index, or -1 when it is not usable now.
 */
static inline int weft_find(const struct weft_view *view, unsigned int n,
			    int slot)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (view[i].slot == slot)
			return i;
	return -1;
}

/**
 * weft_packets() - packets of a subflow that some data make
 * @bytes: data
 * @view: subflow
 *
 * Return: packets, rounded up; at most U32_MAX.
 */
static inline u32 weft_packets(u64 bytes, const struct weft_view *view)
{
	u64 packets = div64_u64(bytes + view->payload_bytes - 1,
				view->payload_bytes);

	return min_t(u64, packets, ~0U);
}

#endif /* _WEFT_VIEW_H */
