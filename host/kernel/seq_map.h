/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which subflow has carried which data: the recent decisions of a scheduler, by data
 * sequence number. stms_a, minrtt_pr and weft use it to find the subflow that holds up
 * the connection.
 *
 * It is a ring of ranges. A range is the data up to a sequence number that went to one
 * slot; consecutive data of one slot are one range. When the ring is full, the oldest
 * range is dropped, and its data belong to no slot any more.
 */
#ifndef _WEFT_SEQ_MAP_H
#define _WEFT_SEQ_MAP_H

#include "view.h"

#define WEFT_SEQ_MAP_RANGES	256	/* a power of two */

/**
 * struct weft_seq_map - data sequence numbers to slots; zeroed memory is an empty map
 * @start_seq: data sequence number at which the oldest range begins
 * @first: ranges dropped so far; the oldest is at @first modulo WEFT_SEQ_MAP_RANGES
 * @count: ranges in the map
 * @range: each with the data sequence number after its last byte, and its slot
 */
struct weft_seq_map {
	u64	start_seq;
	u32	first;
	u32	count;
	struct {
		u64	end_seq;
		u8	slot;
	} range[WEFT_SEQ_MAP_RANGES];
};

/**
 * weft_seq_map_add() - note that a slot has carried data
 * @map: map
 * @from_seq: data sequence number of the first byte
 * @to_seq: data sequence number after the last byte
 * @slot: slot
 *
 * Data that do not continue the newest range (a reinjection) clear the map first.
 */
static inline void weft_seq_map_add(struct weft_seq_map *map, u64 from_seq,
				    u64 to_seq, u8 slot)
{
	u32 last = (map->first + map->count - 1) % WEFT_SEQ_MAP_RANGES;

	if ((s64)(to_seq - from_seq) <= 0)
		return;
	if (!map->count || map->range[last].end_seq != from_seq) {
		map->count = 0;
		map->start_seq = from_seq;
	} else if (map->range[last].slot == slot) {
		map->range[last].end_seq = to_seq;
		return;
	}
	if (map->count == WEFT_SEQ_MAP_RANGES) {
		map->start_seq = map->range[map->first % WEFT_SEQ_MAP_RANGES].end_seq;
		map->first++;
		map->count--;
	}
	last = (map->first + map->count++) % WEFT_SEQ_MAP_RANGES;
	map->range[last].end_seq = to_seq;
	map->range[last].slot = slot;
}

/**
 * weft_seq_map_find() - which slot has carried a byte
 * @map: map
 * @seq: data sequence number of the byte
 *
 * Drops the ranges before @seq: callers ask about the left edge of the send window,
 * which never moves back.
 *
 * Return: the slot, or -1 when the map does not have the byte.
 */
static inline int weft_seq_map_find(struct weft_seq_map *map, u64 seq)
{
	if (!map->count || (s64)(seq - map->start_seq) < 0)
		return -1;

	while (map->count) {
		u32 oldest = map->first % WEFT_SEQ_MAP_RANGES;

		if ((s64)(seq - map->range[oldest].end_seq) < 0)
			return map->range[oldest].slot;
		map->start_seq = map->range[oldest].end_seq;
		map->first++;
		map->count--;
	}
	return -1;
}

#endif /* _WEFT_SEQ_MAP_H */
