/* SPDX-License-Identifier: GPL-2.0-only */
/* Classes of what a connection has left to send (no kernel in it); see priority.c. */
#ifndef _WEFT_PRIORITY_H
#define _WEFT_PRIORITY_H

#include "include/uapi/weft.h"
#include "view.h"

/* Class 0 is for what is urgent whatever is left, and the last class has no bound. */
#define WEFT_CLASSES_MAX	(WEFT_THRESHOLDS_MAX + 2U)

/**
 * weft_class_of() - the class of data, by what their connection has left to send
 * @bytes_left: from this packet on
 * @most_bytes: for each class from 1, except the last, the most that is left; rising
 * @classes: at least 2
 *
 * Return: from 1, the least left, to @classes - 1.
 */
static inline u8 weft_class_of(u64 bytes_left, const u64 *most_bytes,
			       unsigned int classes)
{
	unsigned int class;

	for (class = 1; class < classes - 1; class++)
		if (bytes_left <= most_bytes[class - 1])
			break;
	return class;
}

/**
 * weft_thresholds() - fewer classes of the same span
 * @most_bytes: result, entries for @classes
 * @all_kb: entries for WEFT_CLASSES_MAX classes
 * @classes: from 2 to WEFT_CLASSES_MAX
 */
static inline void weft_thresholds(u64 *most_bytes, const unsigned int *all_kb,
				   unsigned int classes)
{
	unsigned int i;

	for (i = 0; i + 2 < classes; i++)
		most_bytes[i] = 1000ULL * all_kb[(i + 1) * (WEFT_CLASSES_MAX - 1) /
						 (classes - 1) - 1];
}

/**
 * weft_spread_left() - what a connection has left, times a random factor
 * @bytes_left: from this packet on
 * @draw: random, the same for all packets of a message
 * @spread_percent: the factor is from 2^(-@spread_percent/100) to 2^(@spread_percent/100),
 *	and as likely above one as below
 *
 * Return: bytes; powers of two that are not whole are interpolated.
 */
static inline u64 weft_spread_left(u64 bytes_left, u32 draw, unsigned int spread_percent)
{
	/* exponents in 1/256, and numbers that no product overflows */
	s32 most = 256 * min(spread_percent, 1000U) / 100;
	s32 exponent = (s32)((u64)draw * (2 * most + 1) >> 32) - most;
	s32 doublings = exponent >> 8;
	u64 scaled = min(bytes_left, 1ULL << 40) * (256 + (exponent & 255)) >> 8;

	return doublings < 0 ? scaled >> -doublings : scaled << doublings;
}

#endif /* _WEFT_PRIORITY_H */
