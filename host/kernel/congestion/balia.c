// SPDX-License-Identifier: GPL-2.0-only
/*
 * balia: Balanced Linked Adaptation (Peng, Walid, Hwang, Low: "Multipath TCP:
 * Analysis, Design, and Implementation", IEEE/ACM ToN 2016;
 * draft-walid-mptcp-congestion-control).
 *
 * LIA is sometimes unfriendly to TCP, and OLIA is sometimes slow to respond. Balia
 * balances friendliness and responsiveness between the two. With x_p = w_p / rtt_p and
 * alpha_i = max(x_p) / x_i, per acknowledged packet of path i in congestion avoidance:
 *
 *	              x_i          1 + alpha_i   4 + alpha_i
 *	w_i +=  ----------------   ----------- x -----------
 *	        rtt_i sum(x_p)^2        2             5
 *
 * and at a loss
 *
 *	w_i -= w_i / 2 x min(alpha_i, 1.5)
 *
 * (min_ssthresh_packets in coupling.c says how far the window may go down). With one
 * path alpha is 1, and both are Reno's. Slow start is TCP's.
 *
 * With v of formula.h, alpha_i = max(v_p) / v_i and the increase is
 *
 *	(v_i + v_max) (4 v_i + v_max)
 *	-----------------------------
 *	        10 V^2 w_i
 *
 * which is at most 1 / w_i, although alpha_i has no bound.
 */
#include "formula.h"

static u64 largest_share(const struct coupled_path *path, unsigned int paths,
			 u32 rtt_min_us)
{
	u64 largest = 0;
	unsigned int i;

	for (i = 0; i < paths; i++)
		if (coupled_counts(&path[i]))
			largest = max_t(u64, largest,
					coupled_share(&path[i], rtt_min_us));
	return largest;
}

/**
 * balia_growth() - growth in congestion avoidance
 * @path: the connection's subflows
 * @paths: entries of @path
 * @self: index of the one that grows; it takes part
 *
 * Return: packets per acknowledged packet, COUPLED_ONE for one; at most
 * COUPLED_ONE / cwnd.
 */
s64 balia_growth(const struct coupled_path *path, unsigned int paths,
		 unsigned int self)
{
	u32 rtt_min = coupled_rtt_min_us(path, paths);
	u64 total = coupled_total(path, paths, rtt_min);
	u64 largest = largest_share(path, paths, rtt_min);
	u64 own = coupled_share(&path[self], rtt_min);
	u64 first, second;

	/* at most 2 with 29 bits, at most 5 with 27; product 56 bits, then 32 */
	first = div64_u64((own + largest) << 29, total);
	second = div64_u64((4 * own + largest) << 27, total);
	return div64_u64(first * second >> 24, 10 * path[self].cwnd_packets);
}

/**
 * balia_ssthresh() - window after a loss
 * @path: the connection's subflows
 * @paths: entries of @path
 * @self: index of the one that had the loss; it takes part
 *
 * Return: packets, at least 1.
 */
u32 balia_ssthresh(const struct coupled_path *path, unsigned int paths,
		   unsigned int self)
{
	u32 rtt_min = coupled_rtt_min_us(path, paths);
	u64 largest = largest_share(path, paths, rtt_min);
	u64 own = coupled_share(&path[self], rtt_min);
	u32 cwnd = path[self].cwnd_packets;
	u32 loss;

	/* rounded up, as Reno's is; alpha >= 1.5 also where own is below its unit */
	if (2 * largest >= 3 * own)
		loss = DIV_ROUND_UP(3 * cwnd, 4);
	else
		loss = div64_u64(cwnd * largest + 2 * own - 1, 2 * own);
	return max_t(u32, cwnd - loss, 1);
}

#ifdef __KERNEL__

#include "coupling.h"

static void balia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	coupled_cong_avoid(sk, ack, acked, balia_growth);
}

static u32 balia_ssthresh_of(struct sock *sk)
{
	struct coupled_group *group = coupled_lock(sk);
	struct coupled *ca = inet_csk_ca(sk);
	u32 ssthresh;

	ca->credit = 0;
	if (!group)
		return tcp_reno_ssthresh(sk);
	ssthresh = balia_ssthresh(group->path, group->slots, ca->slot);
	coupled_unlock(group);
	return max(ssthresh, coupled_floor());
}

struct tcp_congestion_ops weft_balia __read_mostly = {
	.init		= coupled_init,
	.release	= coupled_release,
	.set_state	= coupled_set_state,
	.cong_avoid	= balia_cong_avoid,
	.ssthresh	= balia_ssthresh_of,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.flags		= TCP_CONG_NON_RESTRICTED,
	.name		= "balia",
	.owner		= THIS_MODULE,
};

#endif /* __KERNEL__ */
