/* SPDX-License-Identifier: GPL-2.0-only */
/* The decision of the scheduler weft; see weft_choose.c (no kernel in it). */
#ifndef _WEFT_SCHED_H
#define _WEFT_SCHED_H

/* Of packets that are under way; weft keeps queues short. */
#define WEFT_SEQ_MAP_RANGES	512
#include "seq_map.h"
#include "view.h"
#include "weft_window.h"

/**
 * struct weft_advice - what the controller says about a connection's paths; their RTTs
 *	are in struct weft_window
 * @known: bit per slot: the controller's pattern has been looked up
 * @excluded: bit per slot: the path is not to be used, as when a switch has failed
 * @is_incomplete: a subflow has no bit in @known
 */
struct weft_advice {
	u32	known;
	u32	excluded;
	bool	is_incomplete;
};

/**
 * struct weft_crowd - what a connection does where its queues are jammed
 * @try_us: when it may try another subflow; 0 while it is in no jam
 * @tries: how many it has tried
 */
struct weft_crowd {
	u64	try_us;
	u8	tries;
};

/**
 * struct weft_sched - state of a connection that the decision needs
 * @advice: of the controller
 * @window: by slot
 * @crowd: which of them it uses where queues are long
 * @seq_map: which subflow has carried which data
 * @size: how much the connection has left to send
 * @last_seq: data sequence number at the previous decision
 * @is_started: whether @last_seq is valid
 * @next_slot: the one after the slot that got the last packet
 */
struct weft_sched {
	struct weft_advice	advice;
	struct weft_window	window[WEFT_PATHS_MAX];
	struct weft_crowd	crowd;
	struct weft_seq_map	seq_map;
	struct weft_size	size;
	u64			last_seq;
	bool			is_started;
	u8			next_slot;
};

u32 weft_crowd_limit(struct weft_crowd *crowd, const struct weft_window *windows,
		     const struct weft_subflow_view *view, unsigned int n, u32 members,
		     u64 now_us);
weft_choose_fn weft_sched_choose;
int weft_sched_carrier(struct weft_sched *sched, u64 seq, u8 picked);

#endif /* _WEFT_SCHED_H */
