// SPDX-License-Identifier: GPL-2.0-only
/*
 * minrtt_pr: minrtt with opportunistic retransmission and penalisation (Raiciu et
 * al., "How Hard Can It Be?", NSDI 2012, section 4.2; "PR" in the STMS paper): the
 * default of the out-of-tree MPTCP kernels.
 *
 * Packets go where minrtt sends them. The connection's send window or send buffer may
 * be full although the fastest subflow has room. Then the packet at the left edge of
 * the window holds up everything, and a slower subflow carries it. In that case,
 *
 *	opportunistic retransmission
 *		sends what is at the left edge again, on the fastest subflow, once;
 *	penalisation
 *		halves the congestion window of the subflow that blocks, and its
 *		slow start threshold, at most once per round trip of it.
 *
 * Each Data ACK checks whether that is so. Acting on it requires unlocked sockets, so
 * the connection's worker does it, through the get_retrans() by which it also reinjects
 * after a timeout.
 */
#include <linux/moduleparam.h>
#include <net/tcp.h>

#include "seq_map.h"
#include "weft.h"

/**
 * struct weft_minrtt_pr - state of a connection
 * @seq_map: which subflow has carried which data
 * @last_seq: data sequence number at the previous decision
 * @started: whether @last_seq is valid
 * @pending: the connection is blocked, and the worker has been called
 * @rtx_seq: left edge that was last retransmitted
 * @blocking_slot: slot of the subflow that blocks the connection
 * @rtx_is_done: whether @rtx_jiffies is valid
 * @rtx_jiffies: jiffies when the worker retransmitted for @pending
 * @penalised_us: by slot, when it was last penalised
 */
struct weft_minrtt_pr {
	struct weft_seq_map	seq_map;
	u64			last_seq;
	bool			started;
	bool			pending;
	u64			rtx_seq;
	u8			blocking_slot;
	bool			rtx_is_done;
	u32			rtx_jiffies;
	u64			penalised_us[WEFT_PATHS_MAX];
};

static bool minrtt_pr_retransmit = true;
module_param(minrtt_pr_retransmit, bool, 0644);
MODULE_PARM_DESC(minrtt_pr_retransmit, "minrtt_pr: retransmit opportunistically");

static bool minrtt_pr_penalise = true;
module_param(minrtt_pr_penalise, bool, 0644);
MODULE_PARM_DESC(minrtt_pr_penalise, "minrtt_pr: halve the window of a subflow that blocks the connection");

static u64 now_us(void)
{
	return div_u64(ktime_get_ns(), NSEC_PER_USEC);
}

static int weft_minrtt_pr_get_send(struct mptcp_sock *msk)
{
	struct weft_subflow_view view[WEFT_PATHS_MAX];
	struct weft_minrtt_pr *pr;
	struct weft_usable usable;
	int choice;

	if (!weft_usable(msk, &usable))
		return -EINVAL;
	pr = weft_state(msk, sizeof(*pr));
	if (!pr)
		return -ENOMEM;

	if (pr->started)
		weft_seq_map_add(&pr->seq_map, pr->last_seq, msk->snd_nxt,
				 weft_conn(msk)->picked);
	pr->started = true;
	pr->last_seq = msk->snd_nxt;

	weft_account(msk);
	weft_view_subflows(msk, &usable, view);
	choice = weft_fastest(view, usable.count, true);
	if (choice == WEFT_WAIT)
		return -EAGAIN;
	return weft_grant(msk, usable.subflow[choice], usable.slot[choice],
			  view[choice].space_bytes);
}

static void weft_minrtt_pr_data_acked(struct mptcp_sock *msk, struct sock *ssk,
				      const struct sk_buff *skb, u64 snd_una)
{
	struct mptcp_subflow_context *fast;
	struct weft_minrtt_pr *pr = weft_peek_state(msk);
	int blocking_slot;

	weft_data_acked(msk, ssk, skb, snd_una);
	/* the owner of the socket may change the list of subflows; wait for the next ACK */
	if (!pr || pr->pending || pr->rtx_seq == snd_una ||
	    sock_owned_by_user((struct sock *)msk) ||
	    !weft_sender_is_blocked(msk))
		return;
	fast = weft_fastest_idle(msk);
	if (!fast)
		return;
	blocking_slot = weft_seq_map_find(&pr->seq_map, snd_una);
	if (blocking_slot < 0 || blocking_slot == weft_slot(weft_conn(msk), fast))
		return;

	pr->pending = true;
	pr->rtx_seq = snd_una;
	pr->blocking_slot = blocking_slot;
	set_bit(MPTCP_WORK_RTX, &msk->flags);
	mptcp_schedule_work((struct sock *)msk);
}

/* Halve the window of the blocking subflow. The msk socket is locked, the subflow not. */
static void penalise(struct mptcp_sock *msk, struct weft_minrtt_pr *pr)
{
	struct mptcp_subflow_context *subflow;
	u64 now = now_us();

	mptcp_for_each_subflow(msk, subflow) {
		struct sock *ssk = mptcp_subflow_tcp_sock(subflow);
		struct tcp_sock *tp = tcp_sk(ssk);

		if (weft_slot(weft_conn(msk), subflow) != pr->blocking_slot)
			continue;
		if (now - pr->penalised_us[pr->blocking_slot] < tp->srtt_us >> 3)
			return;
		pr->penalised_us[pr->blocking_slot] = now;

		lock_sock_nested(ssk, SINGLE_DEPTH_NESTING);
		tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp) >> 1, 1U));
		if (tp->snd_ssthresh != TCP_INFINITE_SSTHRESH)
			tp->snd_ssthresh = max(tp->snd_ssthresh >> 1, 2U);
		release_sock(ssk);
		return;
	}
}

static int weft_minrtt_pr_get_retrans(struct mptcp_sock *msk)
{
	struct weft_minrtt_pr *pr = weft_peek_state(msk);
	struct mptcp_subflow_context *fast;

	if (pr && pr->pending) {
		pr->pending = false;
		if (minrtt_pr_penalise)
			penalise(msk, pr);
		fast = weft_fastest_idle(msk);
		if (!minrtt_pr_retransmit || !fast || pr->rtx_seq != weft_snd_una(msk))
			return -EAGAIN;
		pr->rtx_is_done = true;
		pr->rtx_jiffies = tcp_jiffies32;
		msk->rtx_burst = weft_packet_payload(mptcp_subflow_tcp_sock(fast));
		mptcp_subflow_set_scheduled(fast, true);
		return 0;
	}
	/* the core asks for the next fragment at once, but one segment is all it gets */
	if (pr && pr->rtx_is_done) {
		pr->rtx_is_done = false;
		if (pr->rtx_jiffies == tcp_jiffies32)
			return -EAGAIN;
	}
	/* a timeout */
	return weft_get_retrans(msk);
}

WEFT_SCHED_CALLBACKS_RETRANS(weft_minrtt_pr_get_send, weft_minrtt_pr_get_retrans)

struct mptcp_sched_ops weft_minrtt_pr = {
	WEFT_SCHED_OPS_RETRANS(weft_minrtt_pr_get_send,
			       weft_minrtt_pr_get_retrans),
	.init		= weft_conn_init,
	.release	= weft_conn_release,
	.data_acked	= weft_minrtt_pr_data_acked,
	.exact_burst	= true,
	.name		= "minrtt_pr",
	.owner		= THIS_MODULE,
};
