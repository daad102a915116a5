// SPDX-License-Identifier: GPL-2.0-only
/*
 * wvegas: weighted Vegas (Cao, Xu, Fu: "Delay-based Congestion Control for
 * Multipath TCP", ICNP 2012; draft-xu-mptcp-congestion-control).
 *
 * Vegas keeps a few packets of its own in the queues on its path. wVegas keeps
 * WVEGAS_TOTAL of them over all paths, and shifts traffic by shifting shares of
 * that backlog. Once per round trip of path i, from its mean RTT in the round and
 * the lowest RTT ever seen:
 *
 *	backlog_i = w_i (rtt_i - base_i) / rtt_i		packets
 *
 *	slow start:	as TCP; ends when backlog_i > gamma, with the window that
 *			the measured rate fills without a queue
 *	afterwards:	w_i += 1 if backlog_i < target_i
 *			w_i -= 1 if backlog_i > target_i
 *
 * A path whose backlog has reached its target is in equilibrium. It then stores its
 * rate and adapts its target:
 *
 *	x_i = w_i / rtt_i
 *	weight_i = x_i / sum(x_p),	target_i = weight_i WVEGAS_TOTAL
 *
 * Drain: base_i is only right when the queue is empty now and then. When the
 * queueing delay is at least twice its minimum since the last drain,
 *
 *	w_i = w_i base_i / (2 rtt_i)
 *
 * Two points are more precise here than in the sources. A path drains only when at least
 * one packet of its own is queued; in microseconds, noise alone can double the delay.
 * And a target is at least WVEGAS_TARGET_MIN, Vegas' own lower threshold. Without it, a
 * path whose share has become zero could not show that it has improved.
 *
 * A loss halves the window.
 */
#include "formula.h"

/* Vegas' alpha and the smallest window, packets. */
#define WVEGAS_TARGET_MIN	2
#define WVEGAS_CWND_MIN		2

/* Fractional bits of a rate; below 2^(21 + 20). */
#define RATE_BITS		20

/**
 * wvegas_rate() - what a path carries
 * @cwnd_packets: congestion window, at most COUPLED_CWND_MAX
 * @rtt_us: RTT, 1 to COUPLED_RTT_MAX_US
 *
 * Return: packets per microsecond with 20 fractional bits, at least 1.
 */
u64 wvegas_rate(u32 cwnd_packets, u32 rtt_us)
{
	return max_t(u64, div64_u64((u64)cwnd_packets << RATE_BITS, rtt_us), 1);
}

static u64 rate_of(const struct coupled_path *path)
{
	return path->rate ? path->rate
			  : wvegas_rate(path->cwnd_packets, path->rtt_us);
}

/**
 * wvegas_weight() - the share of a path in the rate of all
 * @path: the connection's subflows; those that were never in equilibrium count
 *	with their present rate
 * @paths: entries of @path
 * @self: index of the path in question; it takes part
 *
 * Return: 0 to 1, with WVEGAS_BITS fractional bits.
 */
u32 wvegas_weight(const struct coupled_path *path, unsigned int paths,
		  unsigned int self)
{
	unsigned int i;
	u64 total = 0;

	for (i = 0; i < paths; i++)
		if (coupled_counts(&path[i]))
			total += rate_of(&path[i]);
	return div64_u64(rate_of(&path[self]) << WVEGAS_BITS, total);
}

/**
 * wvegas_target() - the backlog that a path should have
 * @weight: its weight, with WVEGAS_BITS fractional bits
 * @total_packets: backlog of all paths, at most 65535
 *
 * Return: packets with WVEGAS_BITS fractional bits.
 */
u64 wvegas_target(u32 weight, u32 total_packets)
{
	return max_t(u64, (u64)weight * total_packets,
		     (u64)WVEGAS_TARGET_MIN << WVEGAS_BITS);
}

/**
 * wvegas_backlog() - the packets of a path that wait in queues
 * @round: what it saw in a round trip
 *
 * Return: packets with WVEGAS_BITS fractional bits.
 */
u64 wvegas_backlog(const struct wvegas_round *round)
{
	u64 queued = (u64)round->cwnd_packets * (round->rtt_us - round->base_rtt_us);

	return div64_u64(queued << WVEGAS_BITS, round->rtt_us);
}

/**
 * wvegas_window() - the window after a round trip in congestion avoidance
 * @round: what the path saw in it
 * @target: the backlog it should have, with WVEGAS_BITS fractional bits
 * @queue_delay_us: its lowest queueing delay since the last drain, 0 for none yet;
 *	updated
 *
 * Return: packets.
 */
u32 wvegas_window(const struct wvegas_round *round, u64 target,
		  u32 *queue_delay_us)
{
	u32 delay_us = round->rtt_us - round->base_rtt_us;
	u64 backlog = wvegas_backlog(round);
	u32 cwnd = round->cwnd_packets;

	if (backlog < target)
		cwnd++;
	else if (backlog > target)
		cwnd--;

	if (backlog >> WVEGAS_BITS) {
		if (!*queue_delay_us || delay_us < *queue_delay_us)
			*queue_delay_us = delay_us;
		if (delay_us >= 2 * *queue_delay_us) {
			cwnd = div64_u64((u64)round->cwnd_packets *
					 round->base_rtt_us,
					 2 * round->rtt_us);
			*queue_delay_us = 0;
		}
	}
	return max_t(u32, cwnd, WVEGAS_CWND_MIN);
}

#ifdef __KERNEL__

#include <linux/module.h>

#include "coupling.h"

static ushort wvegas_backlog_packets = 10;
module_param(wvegas_backlog_packets, ushort, 0644);
MODULE_PARM_DESC(wvegas_backlog_packets,
		 "packets that all paths of a wvegas connection keep queued (10)");

static ushort wvegas_gamma_packets = 1;
module_param(wvegas_gamma_packets, ushort, 0644);
MODULE_PARM_DESC(wvegas_gamma_packets,
		 "packets queued at which slow start of wvegas ends (1)");

/**
 * struct wvegas - private data of a subflow
 * @ca: what is common
 * @rtt_sum_us: sum of the RTTs measured in this round
 * @target: backlog to keep, with WVEGAS_BITS fractional bits; 0: none yet
 * @samples: RTTs measured in this round
 * @round_end: the round is over when this sequence number is acknowledged
 * @base_rtt_us: lowest RTT ever seen
 * @queue_delay_us: lowest queueing delay since the last drain, 0: none yet
 */
struct wvegas {
	struct coupled	ca;
	u64		rtt_sum_us;
	u64		target;
	u32		samples;
	u32		round_end;
	u32		base_rtt_us;
	u32		queue_delay_us;
};

static void start_round(struct sock *sk)
{
	struct wvegas *wvegas = inet_csk_ca(sk);

	wvegas->round_end = tcp_sk(sk)->snd_nxt;
	wvegas->rtt_sum_us = 0;
	wvegas->samples = 0;
}

static void wvegas_init(struct sock *sk)
{
	struct wvegas *wvegas = inet_csk_ca(sk);

	BUILD_BUG_ON(sizeof(struct wvegas) > ICSK_CA_PRIV_SIZE);
	coupled_init(sk);
	wvegas->target = 0;
	wvegas->base_rtt_us = COUPLED_RTT_MAX_US;
	wvegas->queue_delay_us = 0;
	start_round(sk);
}

static void wvegas_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct wvegas *wvegas = inet_csk_ca(sk);
	u32 rtt_us;

	if (sample->rtt_us < 0)
		return;
	rtt_us = clamp_t(u32, sample->rtt_us, 1, COUPLED_RTT_MAX_US);
	wvegas->base_rtt_us = min(wvegas->base_rtt_us, rtt_us);
	wvegas->rtt_sum_us += rtt_us;
	wvegas->samples++;
}

static void wvegas_set_state(struct sock *sk, u8 new_state)
{
	coupled_set_state(sk, new_state);
	/* a round with a loss in it says nothing of the queue */
	start_round(sk);
}

/* Share the backlog out again when this path is in equilibrium, or has no share. */
static void adapt_target(struct coupled_group *group, struct wvegas *wvegas,
			 const struct wvegas_round *round)
{
	struct coupled *ca = &wvegas->ca;
	u32 weight;

	if (wvegas->target && wvegas_backlog(round) < wvegas->target)
		return;
	if (wvegas->target) {
		ca->own.rate = wvegas_rate(round->cwnd_packets, round->rtt_us);
		group->path[ca->slot].rate = ca->own.rate;
	}
	weight = wvegas_weight(group->path, group->slots, ca->slot);
	wvegas->target = wvegas_target(weight, READ_ONCE(wvegas_backlog_packets));
}

/* Slow start has made a queue: go back to the window that makes none. */
static void leave_slow_start(struct tcp_sock *tp,
			     const struct wvegas_round *round)
{
	u64 without_queue = div64_u64((u64)round->cwnd_packets *
				      round->base_rtt_us, round->rtt_us);

	without_queue = max_t(u64, without_queue + 1, WVEGAS_CWND_MIN);
	tcp_snd_cwnd_set(tp, min_t(u64, without_queue, tcp_snd_cwnd(tp)));
}

static void end_round(struct sock *sk, const struct wvegas_round *round,
		      u32 acked)
{
	u64 gamma = (u64)READ_ONCE(wvegas_gamma_packets) << WVEGAS_BITS;
	struct wvegas *wvegas = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd;

	if (tcp_in_slow_start(tp) && wvegas_backlog(round) <= gamma) {
		if (tcp_is_cwnd_limited(sk))
			tcp_slow_start(tp, acked);
		return;
	}
	if (tcp_in_slow_start(tp)) {
		leave_slow_start(tp, round);
	} else {
		cwnd = wvegas_window(round, wvegas->target,
				     &wvegas->queue_delay_us);
		if (cwnd <= tcp_snd_cwnd(tp) || tcp_is_cwnd_limited(sk))
			tcp_snd_cwnd_set(tp, min(cwnd, tp->snd_cwnd_clamp));
	}
	/* slow start is over until the next loss */
	WRITE_ONCE(tp->snd_ssthresh, min(tp->snd_ssthresh, tcp_snd_cwnd(tp)));
}

static void wvegas_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct coupled_group *group = coupled_lock(sk);
	struct wvegas *wvegas = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct wvegas_round round;

	if (!group) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (!after(ack, wvegas->round_end) || !wvegas->samples) {
		coupled_unlock(group);
		if (tcp_in_slow_start(tp) && tcp_is_cwnd_limited(sk))
			tcp_slow_start(tp, acked);
		return;
	}
	round = (struct wvegas_round){
		.cwnd_packets	= wvegas->ca.own.cwnd_packets,
		.rtt_us		= div_u64(wvegas->rtt_sum_us, wvegas->samples),
		.base_rtt_us	= wvegas->base_rtt_us,
	};
	adapt_target(group, wvegas, &round);
	coupled_unlock(group);
	end_round(sk, &round, acked);
	start_round(sk);
}

struct tcp_congestion_ops weft_wvegas __read_mostly = {
	.init		= wvegas_init,
	.release	= coupled_release,
	.set_state	= wvegas_set_state,
	.pkts_acked	= wvegas_pkts_acked,
	.cong_avoid	= wvegas_cong_avoid,
	.ssthresh	= tcp_reno_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.flags		= TCP_CONG_NON_RESTRICTED,
	.name		= "wvegas",
	.owner		= THIS_MODULE,
};

#endif /* __KERNEL__ */
