/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether other traffic fills the queue on a subflow's path; see weft_contention.c (no
 * kernel in it).
 */
#ifndef _WEFT_CONTENTION_H
#define _WEFT_CONTENTION_H

#include "view.h"

/**
 * struct weft_contention - what a subflow has seen of a queue since that was last empty
 * @since_us: when the round trip began that was counted last; 0 while the queue is empty
 * @score_us: time with a queue, see weft_contention.c
 * @lost_packets: of the subflow, when the queue was last empty
 * @marked_packets: of the subflow, when the last round trip ended
 * @delivered_packets: of the subflow, at that time
 * @marked_share: of these packets those that were marked, a moving average, in 1 / 4096
 */
struct weft_contention {
	u64	since_us;
	u64	score_us;
	u32	lost_packets;
	u32	marked_packets;
	u32	delivered_packets;
	u32	marked_share;
};

void weft_contention_clear(struct weft_contention *contention,
			   const struct weft_subflow_view *view);
void weft_contention_add_round(struct weft_contention *contention,
			       const struct weft_subflow_view *view, u32 base_us,
			       u32 queueing_us, u64 now_us);
bool weft_contention_is_proven(const struct weft_contention *contention);

#endif /* _WEFT_CONTENTION_H */
