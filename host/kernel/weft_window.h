/* SPDX-License-Identifier: GPL-2.0-only */
/* The windows of the scheduler weft; see weft_window.c (no kernel in it). */
#ifndef _WEFT_WINDOW_H
#define _WEFT_WINDOW_H

#include "view.h"
#include "weft_contention.h"
#include "weft_size.h"

/* One packet: windows are fixed-point numbers, so that they can change slowly. */
#define WEFT_WINDOW_ONE		16U

/*
 * What a connection may have outstanding at least: the receiver may delay the ACK of a
 * single packet by 40 ms until a second one comes.
 */
#define WEFT_LEAST_PACKETS	2U

/**
 * struct weft_window - the window of a subflow, and what it is computed from
 * @delivered: packets acknowledged at the last update
 * @round_end: value of @delivered at which the current round trip ends
 * @rtt_us: RTT of the last round trip, without what ACKs waited in queues: the mean
 *	of the minima of groups of ACKs; 0 before the first round trip
 * @group_rtt_us: minimum of the current group of ACKs; 0 before its first
 * @group_sum_us: sum of the minima of this round trip's complete groups
 * @groups: how many they are
 * @group_acks: ACKs in the current group
 * @ack_queueing_us: how long the last ACK waited in queues
 * @size: packets that may be outstanding, in 1 / WEFT_WINDOW_ONE
 * @weight: of the connection's size, see weft_size_weight()
 * @has_model: whether the congestion control has a model of the path
 * @is_known: whether the fields above are valid
 * @is_slow_start: whether each acknowledged packet lets two out
 * @is_limiting: whether @size has held a packet back in this round trip
 * @lowest_rtt_us: lowest RTT of this interval of half of LOWEST_RTT_US, and of the one
 *	before
 * @lowest_since_us: when this interval began
 * @lowest_round_us: lowest @rtt_us in these intervals; 0: unknown
 * @acked_us: when it was last noticed that packets were acknowledged
 * @sampled_us: when the ACK of the last RTT came; 0 before the first
 * @idle_us: when nothing was last outstanding
 * @contention: whether other traffic fills the queue
 * @controller_rtt_us: the path's RTT that the controller measured, queues included;
 *	0: unknown
 * @controller_min_rtt_us: the same without queues
 * @ack_wait_unit_ns: unit of @ack_wait; 0: switches do not write waits into ACKs
 * @ack_wait: what switches wrote into the last ACK
 */
struct weft_window {
	u32	delivered;
	u32	round_end;
	u32	rtt_us;
	u32	group_rtt_us;
	u32	group_sum_us;
	u32	groups;
	u32	group_acks;
	u32	ack_queueing_us;
	u32	size;
	u32	weight;
	bool	has_model;
	bool	is_known;
	bool	is_slow_start;
	bool	is_limiting;
	u32	lowest_rtt_us[2];
	u64	lowest_since_us;
	u32	lowest_round_us[2];
	u64	acked_us;
	u64	sampled_us;
	u64	idle_us;
	struct weft_contention	contention;
	u32	controller_rtt_us;
	u32	controller_min_rtt_us;
	u32	ack_wait_unit_ns;
	u32	ack_wait;
};

/**
 * weft_outstanding() - what the window limits
 * @view: subflow
 *
 * Return: packets that the subflow has been given and that are not acknowledged.
 */
static inline u32 weft_outstanding(const struct weft_subflow_view *view)
{
	return view->in_flight_packets + view->queued_packets;
}

/* What the last ACK says of a path's queue, see weft_window_queue(). */
enum weft_queue {
	WEFT_QUEUE_UNKNOWN,
	WEFT_QUEUE_SHORT,
	WEFT_QUEUE_LONG,
	WEFT_QUEUE_JAMMED,
};

/**
 * struct weft_window_conn - what all windows of a connection follow
 * @now_us: monotonic time
 * @is_idle: whether nothing of the connection is outstanding
 * @n: usable subflows
 * @weight: of its size, see weft_size_weight()
 * @first_packets: see weft_window_first_packets()
 */
struct weft_window_conn {
	u64		now_us;
	bool		is_idle;
	unsigned int	n;
	u32		weight;
	u32		first_packets;
};

bool weft_window_update(struct weft_window *window,
			const struct weft_subflow_view *view,
			const struct weft_window_conn *conn);
bool weft_window_counts(const struct weft_window *window);
u32 weft_window_first_packets(u64 bytes_left, unsigned int n, bool is_idle);
enum weft_queue weft_window_queue(const struct weft_window *window,
				  const struct weft_subflow_view *view, u64 now_us);
u32 weft_window_share(const struct weft_window *window,
		      const struct weft_subflow_view *view, unsigned int n);
bool weft_window_is_silent(const struct weft_window *window,
			   const struct weft_subflow_view *view, unsigned int others,
			   u64 now_us);

#endif /* _WEFT_WINDOW_H */
