/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which subflow has carried which data: the recent decisions of a scheduler, by data
 * sequence number. stms_a, minrtt_pr and weft use it to find the subflow that holds up
 * the connection.
 *
 * It is a ring of ranges: consecutive data that went to one slot. When the ring is full,
 * the oldest range is dropped, and its data belong to no slot any more. Where subflows
 * alternate, every packet is a range of its own.
 */
#ifndef _WEFT_SEQ_MAP_H
#define _WEFT_SEQ_MAP_H

#include "view.h"

/*
 * A power of two. Two paths of 30 Mbit/s, one with an RTT of 300 ms and a queue of 500 ms, as
 * those of STMS, have up to 2100 packets under way on each. A file that includes this one may
 * choose another number before.
 */
#ifndef WEFT_SEQ_MAP_RANGES
#define WEFT_SEQ_MAP_RANGES	4096
#endif

static_assert(WEFT_PATHS_MAX <= 8, "a slot has three bits in struct weft_seq_map");

/* Bytes of a range; what goes on becomes a second one. */
#define WEFT_SEQ_MAP_BYTES_MAX	0x10000000U

/**
 * struct weft_seq_map - data sequence numbers to slots; zeroed memory is an empty map
 * @start_seq: data sequence number at which the oldest range begins
 * @end_seq: that after the newest
 * @first: ranges dropped so far; the oldest is at @first modulo WEFT_SEQ_MAP_RANGES
 * @count: ranges in the map
 * @range: each with its length and its slot
 */
struct weft_seq_map {
	u64	start_seq;
	u64	end_seq;
	u32	first;
	u32	count;
	struct {
		u32	bytes : 29;
		u32	slot : 3;
	} range[WEFT_SEQ_MAP_RANGES];
};

/* Forget the oldest range. */
static inline void weft_seq_map_drop(struct weft_seq_map *map)
{
	map->start_seq += map->range[map->first++ % WEFT_SEQ_MAP_RANGES].bytes;
	map->count--;
}

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
	u64 bytes = to_seq - from_seq;

	if ((s64)bytes <= 0 || bytes > WEFT_SEQ_MAP_BYTES_MAX)
		return;
	if (!map->count || map->end_seq != from_seq) {
		map->count = 0;
		map->start_seq = from_seq;
	}
	map->end_seq = to_seq;
	if (map->count && map->range[last].slot == slot &&
	    map->range[last].bytes + bytes <= WEFT_SEQ_MAP_BYTES_MAX) {
		map->range[last].bytes += bytes;
		return;
	}
	if (map->count == WEFT_SEQ_MAP_RANGES)
		weft_seq_map_drop(map);
	last = (map->first + map->count++) % WEFT_SEQ_MAP_RANGES;
	map->range[last].bytes = bytes;
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

		if (seq - map->start_seq < map->range[oldest].bytes)
			return map->range[oldest].slot;
		weft_seq_map_drop(map);
	}
	return -1;
}

#endif /* _WEFT_SEQ_MAP_H */
