/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which subflow has carried which data: a short memory of a scheduler's recent
 * decisions, for those that ask who holds up the connection (stms_a, minrtt_pr).
 *
 * A ring of runs, each the data up to a sequence number that went to one slot.
 * Consecutive data of one slot make one run. When the ring is full the oldest
 * run is forgotten, and who asks about it hears that nobody knows.
 */
#ifndef _WEFT_TRAIL_H
#define _WEFT_TRAIL_H

#include "view.h"

#define WEFT_TRAIL_RUNS		256	/* a power of two */

/**
 * struct weft_trail - the memory; zeroed memory remembers nothing
 * @start_seq: data sequence at which the oldest run begins
 * @first: runs forgotten so far; the oldest is at @first modulo WEFT_TRAIL_RUNS
 * @count: runs remembered
 * @run: each with the data sequence after its last byte, and its slot
 */
struct weft_trail {
	u64	start_seq;
	u32	first;
	u32	count;
	struct {
		u64	end_seq;
		u8	slot;
	} run[WEFT_TRAIL_RUNS];
};

/**
 * weft_trail_add() - remember that a slot has carried data
 * @trail: memory
 * @from_seq: data sequence of the first byte
 * @to_seq: data sequence after the last byte
 * @slot: slot
 *
 * What does not follow on the data before (a reinjection) makes the memory begin
 * anew.
 */
static inline void weft_trail_add(struct weft_trail *trail, u64 from_seq,
				  u64 to_seq, u8 slot)
{
	u32 last = (trail->first + trail->count - 1) % WEFT_TRAIL_RUNS;

	if ((s64)(to_seq - from_seq) <= 0)
		return;
	if (!trail->count || trail->run[last].end_seq != from_seq) {
		trail->count = 0;
		trail->start_seq = from_seq;
	} else if (trail->run[last].slot == slot) {
		trail->run[last].end_seq = to_seq;
		return;
	}
	if (trail->count == WEFT_TRAIL_RUNS) {
		trail->start_seq = trail->run[trail->first % WEFT_TRAIL_RUNS].end_seq;
		trail->first++;
		trail->count--;
	}
	last = (trail->first + trail->count++) % WEFT_TRAIL_RUNS;
	trail->run[last].end_seq = to_seq;
	trail->run[last].slot = slot;
}

/**
 * weft_trail_find() - which slot has carried a byte
 * @trail: memory
 * @seq: its data sequence
 *
 * Forgets what lies before @seq: callers ask about the left edge of the send
 * window, which never goes back.
 *
 * Return: the slot, or -1 when it is not remembered.
 */
static inline int weft_trail_find(struct weft_trail *trail, u64 seq)
{
	if (!trail->count || (s64)(seq - trail->start_seq) < 0)
		return -1;

	while (trail->count) {
		u32 oldest = trail->first % WEFT_TRAIL_RUNS;

		if ((s64)(seq - trail->run[oldest].end_seq) < 0)
			return trail->run[oldest].slot;
		trail->start_seq = trail->run[oldest].end_seq;
		trail->first++;
		trail->count--;
	}
	return -1;
}

#endif /* _WEFT_TRAIL_H */
