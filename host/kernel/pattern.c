// SPDX-License-Identifier: GPL-2.0-only
/*
 * The allocation pattern of MPTCP-RB ("Multipath TCP with Reduced Burstiness",
 * section 4.3): which subflow carries which of the next L packets, so that packets
 * that leave back to back arrive in order although the RTTs differ.
 *
 * Gaps. While the slowest subflow carries one packet, subflow i carries
 *
 *	gap_i = round(RTT_max / RTT_i)
 *
 * and the pattern repeats after L = sum of the gaps. Equal RTTs give per-packet round
 * robin. If an RTT ratio needs more than WEFT_SEQUENCE_MAX positions, all gaps shrink
 * by the same factor, but not below one.
 *
 * Sequence. A packet on a slow subflow arrives late, so it has to be late in the data
 * sequence. Positions are therefore assigned from the slowest subflow (smallest gap)
 * to the fastest, and from the end of each partition:
 *
 *	1. The pattern is one partition.
 *	2. Each partition is split into ceil(gap / gap of the previous subflow)
 *	   equal ones. The subflow takes the last position of each, from left to
 *	   right, until its gap is used up.
 *	3. These positions leave their partitions, and the next slowest subflow
 *	   continues with 2. The fastest takes all that is left.
 *
 * RTTs 1:2:3:5, for example (gaps 5, 3, 2, 1, L = 11):
 *
 *	D    [ .  .  .  .  .  .  .  .  .  .  D ]
 *	C    [ .  .  .  .  C][ .  .  .  .  C]  D
 *	B    [ .  B][ .  B]C [ .  B][ .  .]C   D
 *	A      A  B   A  B C   A  B   A  A C   D
 *
 * Of subflows with the same gap the last one comes first, so that equal gaps give
 * A B C ... from the start.
 *
 * Nothing here sleeps, allocates or uses a socket. So the file also compiles in user
 * space, where tests/ checks it.
 */
#include "pattern.h"

#ifdef __KERNEL__
#include <linux/bitmap.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#endif

#define POSITION_FREE	0xff	/* no subflow yet; above every index */

/**
 * weft_gaps() - packets per pattern for each subflow
 * @rtt: round-trip time per subflow, in any unit they share
 * @n: number of subflows, 1 to WEFT_PATHS_MAX
 * @gap: result, n entries, each at least 1
 *
 * Return: the length of the pattern, at most WEFT_SEQUENCE_MAX; 0 when an RTT is
 * unknown (zero) or @n is out of range.
 */
unsigned int weft_gaps(const u64 *rtt, unsigned int n, u32 *gap)
{
	u64 slowest = 0, sum = 0, length = 0;
	u64 wide[WEFT_PATHS_MAX];
	unsigned int i;

	if (!n || n > WEFT_PATHS_MAX)
		return 0;
	for (i = 0; i < n; i++) {
		if (!rtt[i])
			return 0;
		slowest = max(slowest, rtt[i]);
	}

	for (i = 0; i < n; i++) {
		u64 quotient = div64_u64(slowest, rtt[i]);
		u64 remainder = slowest - quotient * rtt[i];

		/* round to nearest, without overflow at huge RTTs */
		if (remainder >= rtt[i] - remainder)
			quotient++;
		/* with a larger quotient the subflow gets all positions but n - 1 anyway */
		wide[i] = min_t(u64, quotient, 1U << 24);
		sum += wide[i];
	}

	for (i = 0; i < n; i++) {
		/* rounding down leaves room for the gaps that are raised to 1 */
		if (sum > WEFT_SEQUENCE_MAX)
			wide[i] = div64_u64(wide[i] * (WEFT_SEQUENCE_MAX - n), sum);
		gap[i] = max_t(u32, wide[i], 1);
		length += gap[i];
	}
	return length;
}

/* The end of the partition that begins at the free position @start. */
static unsigned int partition_end(const u8 *sequence, const unsigned long *cut,
				  unsigned int start, unsigned int length)
{
	unsigned int end = start + 1;

	while (end < length && sequence[end] == POSITION_FREE &&
	       !test_bit(end - 1, cut))
		end++;
	return end;
}

/* Cut every partition into @pieces of (nearly) equal length. */
static void split_partitions(const u8 *sequence, unsigned long *cut,
			     unsigned int length, u32 pieces)
{
	unsigned int start, end, i;

	for (start = 0; start < length; start = end) {
		unsigned int size;

		end = start + 1;
		if (sequence[start] != POSITION_FREE)
			continue;
		end = partition_end(sequence, cut, start, length);
		size = end - start;
		if (pieces >= size) {
			for (i = start; i < end; i++)
				__set_bit(i, cut);
			continue;
		}
		for (i = 1; i <= pieces; i++)
			__set_bit(start + size * i / pieces - 1, cut);
	}
}

/* Give @left positions, the last of each partition, to @subflow. */
static u32 mark_partitions(u8 *sequence, const unsigned long *cut,
			   unsigned int length, u8 subflow, u32 left)
{
	unsigned int start, end;

	for (start = 0; start < length && left; start = end) {
		end = start + 1;
		if (sequence[start] != POSITION_FREE)
			continue;
		end = partition_end(sequence, cut, start, length);
		sequence[end - 1] = subflow;
		left--;
	}
	return left;
}

/**
 * weft_sequence() - interleave subflows according to their gaps
 * @gap: packets per pattern for each subflow; 0 leaves a subflow out
 * @n: number of subflows, 1 to WEFT_PATHS_MAX
 * @sequence: result, the index of a subflow for each position; has room for
 *	WEFT_SEQUENCE_MAX
 *
 * Each subflow appears exactly as often as its gap says.
 *
 * Return: the length of the sequence, which is the sum of the gaps; 0 when that sum is
 * zero or more than WEFT_SEQUENCE_MAX, or when @n is out of range.
 */
unsigned int weft_sequence(const u32 *gap, unsigned int n, u8 *sequence)
{
	DECLARE_BITMAP(cut, WEFT_SEQUENCE_MAX);
	unsigned int i, length = 0, placed = 0;
	bool done[WEFT_PATHS_MAX] = { false };
	u32 before = 1;

	if (!n || n > WEFT_PATHS_MAX)
		return 0;
	for (i = 0; i < n; i++) {
		if (gap[i] > WEFT_SEQUENCE_MAX - length)
			return 0;
		length += gap[i];
		if (!gap[i]) {
			done[i] = true;
			placed++;
		}
	}
	bitmap_zero(cut, WEFT_SEQUENCE_MAX);
	memset(sequence, POSITION_FREE, length);

	while (placed < n) {
		unsigned int slow = n;
		u32 left;

		for (i = n; i--;)
			if (!done[i] && (slow == n || gap[i] < gap[slow]))
				slow = i;

		split_partitions(sequence, cut, length,
				 (gap[slow] + before - 1) / before);
		/*
		 * Partitions that are too short to be split leave positions to
		 * assign. Start again: one is free for each packet left.
		 */
		for (left = gap[slow]; left;)
			left = mark_partitions(sequence, cut, length, slow, left);

		before = gap[slow];
		done[slow] = true;
		placed++;
	}
	return length;
}
