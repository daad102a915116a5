/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether other traffic fills the queue on a subflow's path; see weft_contention.c (no
 * kernel in it).
 */
#ifndef _WEFT_CONTENTION_H
#define _WEFT_CONTENTION_H

#include "view.h"

/**
 * struct weft_contention - what a subflow has seen of a queue since that was last empty
 * @since_us: when the round trip ended that was counted last; 0 while the queue is empty
 * @score_us: time with a queue, see weft_contention.c
 * @marked_rounds: what round trips have told of other traffic by their marks, in 1 / 4096
 * @lost_packets: of the subflow, when the queue was last empty
 * @marked_packets: of the subflow, when the last round trip ended
 * @delivered_packets: of the subflow, at that time
 * @marked_share: of these packets those that were marked, a moving average, in 1 / 4096
 * @empty_rounds: round trips in a row without a queue, once other traffic is proven
 * @is_suspected: whether marks may be of other traffic: the connection should see if they
 *	end without its packets
 */
struct weft_contention {
	u64	since_us;
	u64	score_us;
	u64	marked_rounds;
	u32	lost_packets;
	u32	marked_packets;
	u32	delivered_packets;
	u32	marked_share;
	u8	empty_rounds;
	bool	is_suspected;
};

/**
 * struct weft_contention_round - what a subflow has seen of a queue in a round trip
 * @base_us: RTT without queues
 * @queueing_us: queueing delay; 0 when the queue was empty
 * @is_least: whether the connection kept no more in the queue than while it suspects
 *	other traffic
 */
struct weft_contention_round {
	u32	base_us;
	u32	queueing_us;
	bool	is_least;
};

void weft_contention_clear(struct weft_contention *contention,
			   const struct weft_subflow_view *view);
void weft_contention_add_round(struct weft_contention *contention,
			       const struct weft_subflow_view *view,
			       const struct weft_contention_round *round, u64 now_us);
bool weft_contention_is_proven(const struct weft_contention *contention);

#endif /* _WEFT_CONTENTION_H */
