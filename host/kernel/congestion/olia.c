// SPDX-License-Identifier: GPL-2.0-only
/*
 * olia: Opportunistic Linked Increases (Khalili, Gast, Popovic, Le Boudec: "MPTCP
 * Is Not Pareto-Optimal", CoNEXT 2012 and IEEE/ACM ToN 2013;
 * draft-khalili-mptcp-congestion-control).
 *
 * LIA spends part of its window on congested paths to probe them. In OLIA the first
 * term is the optimal (fully coupled) increase. A second term, which sums to zero over
 * all paths, moves window between them. Per acknowledged packet of path i, in
 * congestion avoidance:
 *
 *	         w_i / rtt_i^2        alpha_i
 *	w_i += ------------------- +  -------
 *	       (sum w_p / rtt_p)^2      w_i
 *
 * l_i is the larger one of the packets acknowledged between the last two losses
 * of path i and since the last one: 1 / l_i estimates its loss probability. With
 *
 *	B, the presumably best paths:	those of the largest l_p / rtt_p^2
 *					(TCP's rate there is sqrt(2 l_p) / rtt_p)
 *	M, the paths of the largest window
 *
 * and n paths,
 *
 *	alpha_i = +1 / (n |B\M|)	for i in B but not in M, if there is one
 *	        = -1 / (n |M|)		for i in M, if B\M is not empty
 *	        = 0			otherwise
 *
 * The window is halved at a loss (min_ssthresh_packets in coupling.c says how far it
 * may go down). Slow start is TCP's.
 *
 * With v of formula.h the first term is (v_i / V)^2 / w_i: at most 1 / w_i.
 */
#include "formula.h"

/* Fractional bits of rho: l rho^2 stays within 31 + 2 x 16 bits. */
#define RHO_BITS	16

/* What makes a path good, l / rtt^2; in units that all paths share. */
static u64 quality(const struct coupled_path *path, u32 rtt_min_us)
{
	u64 rho = div64_u64((u64)rtt_min_us << RHO_BITS, path->rtt_us);

	return path->acked_packets * rho * rho;
}

/**
 * struct olia_sets - the sets of paths that alpha depends on
 * @paths: n
 * @largest: |M|
 * @collected: |B\M|
 * @in_largest: whether the path in question is in M
 * @in_collected: whether it is in B\M
 */
struct olia_sets {
	unsigned int	paths;
	unsigned int	largest;
	unsigned int	collected;
	bool		in_largest;
	bool		in_collected;
};

static struct olia_sets sets_of(const struct coupled_path *path,
				unsigned int paths, unsigned int self,
				u32 rtt_min_us)
{
	struct olia_sets sets = {};
	u64 best_quality = 0;
	u32 largest_cwnd = 0;
	unsigned int i;

	for (i = 0; i < paths; i++) {
		if (!coupled_counts(&path[i]))
			continue;
		sets.paths++;
		largest_cwnd = max_t(u32, largest_cwnd, path[i].cwnd_packets);
		best_quality = max_t(u64, best_quality,
				     quality(&path[i], rtt_min_us));
	}
	for (i = 0; i < paths; i++) {
		bool largest, collected;

		if (!coupled_counts(&path[i]))
			continue;
		largest = path[i].cwnd_packets == largest_cwnd;
		collected = !largest &&
			    quality(&path[i], rtt_min_us) == best_quality;
		sets.largest += largest;
		sets.collected += collected;
		if (i == self) {
			sets.in_largest = largest;
			sets.in_collected = collected;
		}
	}
	return sets;
}

/**
 * olia_growth() - growth in congestion avoidance
 * @path: the connection's subflows
 * @paths: entries of @path
 * @self: index of the one that grows; it takes part
 *
 * Return: packets per acknowledged packet, COUPLED_ONE for one; may be negative,
 * magnitude at most 1.5 COUPLED_ONE / cwnd.
 */
s64 olia_growth(const struct coupled_path *path, unsigned int paths,
		unsigned int self)
{
	u32 rtt_min = coupled_rtt_min_us(path, paths);
	u64 total = coupled_total(path, paths, rtt_min);
	struct olia_sets sets = sets_of(path, paths, self, rtt_min);
	s64 alpha = 0, growth;
	u64 share;

	/* v_i / V with 30 bits; its square with 60, then with 32 */
	share = div64_u64(coupled_share(&path[self], rtt_min) << 30, total);
	growth = share * share >> 28;

	if (sets.in_collected)
		alpha = div_s64(COUPLED_ONE, sets.paths * sets.collected);
	else if (sets.in_largest && sets.collected)
		alpha = -div_s64(COUPLED_ONE, sets.paths * sets.largest);
	return div_s64(growth + alpha, path[self].cwnd_packets);
}

#ifdef __KERNEL__

#include "coupling.h"

/**
 * struct olia - private data of a subflow
 * @ca: what is common
 * @since_loss: packets acknowledged since the last loss
 * @before_loss: packets acknowledged between the last two losses
 */
struct olia {
	struct coupled	ca;
	u32		since_loss;
	u32		before_loss;
};

static void olia_init(struct sock *sk)
{
	struct olia *olia = inet_csk_ca(sk);

	BUILD_BUG_ON(sizeof(struct olia) > ICSK_CA_PRIV_SIZE);
	coupled_init(sk);
	olia->since_loss = 0;
	olia->before_loss = 0;
}

static void olia_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct olia *olia = inet_csk_ca(sk);

	olia->since_loss = min_t(u64, (u64)olia->since_loss + sample->pkts_acked,
				 COUPLED_ACKED_MAX);
	olia->ca.own.acked_packets = max(olia->since_loss, olia->before_loss);
}

static void olia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	coupled_cong_avoid(sk, ack, acked, olia_growth);
}

static u32 olia_ssthresh(struct sock *sk)
{
	struct olia *olia = inet_csk_ca(sk);

	olia->before_loss = olia->since_loss;
	olia->since_loss = 0;
	olia->ca.own.acked_packets = olia->before_loss;
	return coupled_ssthresh(sk);
}

struct tcp_congestion_ops weft_olia __read_mostly = {
	.init		= olia_init,
	.release	= coupled_release,
	.set_state	= coupled_set_state,
	.pkts_acked	= olia_pkts_acked,
	.cong_avoid	= olia_cong_avoid,
	.ssthresh	= olia_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.flags		= TCP_CONG_NON_RESTRICTED,
	.name		= "olia",
	.owner		= THIS_MODULE,
};

#endif /* __KERNEL__ */
