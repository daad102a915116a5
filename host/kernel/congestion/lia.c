// SPDX-License-Identifier: GPL-2.0-only
/*
 * lia: Linked Increases (RFC 6356), the coupled congestion control that came with
 * MPTCP.
 *
 * Per acknowledged packet of path i, in congestion avoidance (RFC 6356, section 3):
 *
 *	w_i += min(alpha / w_total, 1 / w_i)
 *
 *	                max(w_p / rtt_p^2)
 *	alpha = w_total -------------------
 *	                sum(w_p / rtt_p)^2
 *
 * With this alpha, all subflows together get what TCP would get on the best path. With
 * the minimum, no subflow takes more than TCP would on its path. Slow start and the
 * halving at a loss are TCP's.
 *
 * w_total cancels out. With rho and v of formula.h (RTTs relative to the lowest):
 *
 *	alpha / w_total = max(v_p rho_p) / V^2
 *
 * Two paths of equal window w and equal RTT: v = w, V = 2w, growth 1/(4w) each,
 * so half a packet per RTT together, on a total window of 2w: TCP's share.
 */
#include "formula.h"

/**
 * lia_growth() - growth in congestion avoidance
 * @path: the connection's subflows
 * @paths: entries of @path
 * @self: index of the one that grows; it takes part
 *
 * Return: packets per acknowledged packet, COUPLED_ONE for one; at most
 * COUPLED_ONE / cwnd.
 */
s64 lia_growth(const struct coupled_path *path, unsigned int paths,
	       unsigned int self)
{
	u32 rtt_min = coupled_rtt_min_us(path, paths);
	u64 total = coupled_total(path, paths, rtt_min);
	u64 best = 0, linked;
	unsigned int i;

	for (i = 0; i < paths; i++) {
		u64 share;

		if (!coupled_counts(&path[i]))
			continue;
		/* below 2^33 x 2^24 before, below 2^33 after the division */
		share = coupled_share(&path[i], rtt_min);
		best = max_t(u64, best, div64_u64(share * rtt_min, path[i].rtt_us));
	}

	/* best / V with 30 bits (best <= V), then / V: 30 + 14 - 12 = 32 bits */
	linked = div64_u64(best << 30, total);
	linked = div64_u64(linked << 14, total);
	return min_t(u64, linked,
		     div64_u64(COUPLED_ONE, path[self].cwnd_packets));
}

#ifdef __KERNEL__

#include "coupling.h"

static void lia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	coupled_cong_avoid(sk, ack, acked, lia_growth);
}

static u32 lia_ssthresh(struct sock *sk)
{
	struct coupled *ca = inet_csk_ca(sk);

	ca->credit = 0;
	return tcp_reno_ssthresh(sk);
}

struct tcp_congestion_ops weft_lia __read_mostly = {
	.init		= coupled_init,
	.release	= coupled_release,
	.set_state	= coupled_set_state,
	.cong_avoid	= lia_cong_avoid,
	.ssthresh	= lia_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.flags		= TCP_CONG_NON_RESTRICTED,
	.name		= "lia",
	.owner		= THIS_MODULE,
};

#endif /* __KERNEL__ */
