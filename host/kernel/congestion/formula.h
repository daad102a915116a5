/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the formulas of coupled congestion control have in common. There is no kernel in
 * it, and each algorithm's file also compiles in user space, where tests/ checks its
 * formula against cases worked out by hand.
 *
 * Units. The papers write w_i for the window of path i and rtt_i for its RTT.
 * Here windows are packets, as in the kernel, so all subflows are taken to have
 * one MSS. Growth is in packets per acknowledged packet, as a fixed-point number
 * with COUPLED_ONE for one packet.
 *
 * Ranges. All formulas are ratios in which RTTs only appear relative to each
 * other, so they are taken relative to the lowest one:
 *
 *	rho_i = rtt_min / rtt_i			above 0, at most 1
 *	v_i   = w_i rho_i			at most w_i
 *
 * v_i is what path i carries in one RTT of the fastest path. With at most
 * COUPLED_PATHS_MAX = 2^5 paths, w_i < 2^21 and 12 fractional bits, v_i is below
 * 2^33 and the sum V below 2^38, which leaves room for what follows in 64 bits.
 */
#ifndef _WEFT_COUPLED_FORMULA_H
#define _WEFT_COUPLED_FORMULA_H

#ifdef __KERNEL__
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>
#else
#include "../tests/user.h"
#endif

/* Subflows of a connection that are coupled; further ones act like Reno. */
#define COUPLED_PATHS_MAX	32

/* The window scale option limits a window to 1 GiB: 2^21 packets of 512 bytes. */
#define COUPLED_CWND_MAX	0x1fffff

/* 2^24 us, 16 s; a longer RTT counts as that. */
#define COUPLED_RTT_MAX_US	0x1000000U

/* More than 2^31 acknowledged packets between two losses count as this many. */
#define COUPLED_ACKED_MAX	0x80000000U

/* One packet of growth: 32 fractional bits. */
#define COUPLED_ONE		0x100000000LL

/* Fractional bits of v_i. */
#define COUPLED_SHARE_BITS	12

/**
 * struct coupled_path - a subflow as the others see it
 * @cwnd_packets: congestion window, at most COUPLED_CWND_MAX; 0: no such subflow
 * @rtt_us: smoothed RTT, at most COUPLED_RTT_MAX_US; 0: not known yet
 * @acked_packets: OLIA's l: acknowledged between losses, at most COUPLED_ACKED_MAX
 * @rate: wVegas' equilibrium rate, see wvegas_rate(); 0: never in equilibrium
 */
struct coupled_path {
	u32	cwnd_packets;
	u32	rtt_us;
	u32	acked_packets;
	u64	rate;
};

/* Whether a path takes part in the formulas. */
static inline bool coupled_counts(const struct coupled_path *path)
{
	return path->cwnd_packets && path->rtt_us;
}

/* How many paths take part. */
static inline unsigned int coupled_count(const struct coupled_path *path,
					 unsigned int paths)
{
	unsigned int i, count = 0;

	for (i = 0; i < paths; i++)
		count += coupled_counts(&path[i]);
	return count;
}

/* The lowest RTT of those that take part. */
static inline u32 coupled_rtt_min_us(const struct coupled_path *path,
				     unsigned int paths)
{
	u32 lowest = COUPLED_RTT_MAX_US;
	unsigned int i;

	for (i = 0; i < paths; i++)
		if (coupled_counts(&path[i]))
			lowest = min_t(u32, lowest, path[i].rtt_us);
	return lowest;
}

/* v_i with COUPLED_SHARE_BITS fractional bits, below 2^33. */
static inline u64 coupled_share(const struct coupled_path *path, u32 rtt_min_us)
{
	u64 scaled = (u64)path->cwnd_packets << COUPLED_SHARE_BITS;

	return div64_u64(scaled * rtt_min_us, path->rtt_us);
}

/* V, the sum of v_i over those that take part, below 2^38. */
static inline u64 coupled_total(const struct coupled_path *path,
				unsigned int paths, u32 rtt_min_us)
{
	unsigned int i;
	u64 total = 0;

	for (i = 0; i < paths; i++)
		if (coupled_counts(&path[i]))
			total += coupled_share(&path[i], rtt_min_us);
	return total;
}

/*
 * The formulas: growth of path @self in congestion avoidance per acknowledged
 * packet, with COUPLED_ONE for one packet. @self takes part.
 */
s64 lia_growth(const struct coupled_path *path, unsigned int paths,
	       unsigned int self);
s64 olia_growth(const struct coupled_path *path, unsigned int paths,
		unsigned int self);
s64 balia_growth(const struct coupled_path *path, unsigned int paths,
		 unsigned int self);
u32 balia_ssthresh(const struct coupled_path *path, unsigned int paths,
		   unsigned int self);

/**
 * struct wvegas_round - what a subflow saw in one round trip
 * @cwnd_packets: congestion window, at most COUPLED_CWND_MAX
 * @rtt_us: mean RTT, at most COUPLED_RTT_MAX_US
 * @base_rtt_us: lowest RTT ever seen, 1 to @rtt_us
 */
struct wvegas_round {
	u32	cwnd_packets;
	u32	rtt_us;
	u32	base_rtt_us;
};

/* Fractional bits of wVegas' weights and backlogs. */
#define WVEGAS_BITS		16

u64 wvegas_rate(u32 cwnd_packets, u32 rtt_us);
u32 wvegas_weight(const struct coupled_path *path, unsigned int paths,
		  unsigned int self);
u64 wvegas_backlog(const struct wvegas_round *round);
u64 wvegas_target(u32 weight, u32 total_packets);
u32 wvegas_window(const struct wvegas_round *round, u64 target,
		  u32 *queue_delay_us);

#endif /* _WEFT_COUPLED_FORMULA_H */
