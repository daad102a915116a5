// SPDX-License-Identifier: GPL-2.0-only
/*
 * stms_a: STMS with a gap that Data ACKs adjust (STMS-A, algorithm 2). The part that
 * it shares with stms_c is in stms.c.
 *
 * Delayed ACKs move the send window by two packets. A Data ACK that moves it by more
 * shows that packets waited at the receiver for a missing one. That one was at the left
 * edge of the window. If a slow subflow carried it, the gap was too small; if a fast
 * one did, the gap was too large:
 *
 *	on each Data ACK of data_acked packets
 *		delta = 0
 *		if data_acked > 2
 *			delta = data_acked	if send_una went to a slow subflow
 *			delta = -data_acked	otherwise
 *		gap += EWMA(delta, adjust_interval)
 *
 * The weight of the average is 1 / adjust_interval. The weights of all later Data ACKs
 * sum up to one. So a Data ACK of n packets moves the gap by n in total, spread over
 * about adjust_interval Data ACKs: the time that an earlier change takes to show. The
 * first gap is the calculated one.
 *
 * With several slow subflows, each has its own gap. The faster ones share that gap in
 * proportion to what each would carry meanwhile. The paper does not say how large
 * adjust_interval is; it is a module parameter.
 */
#include "stms.h"
#include "seq_map.h"

#define GAP_SCALE	256		/* gaps are in 1/256 packets */
#define GAP_MAX		65536		/* packets */

/**
 * struct weft_stms_a - state of a connection
 * @stms: algorithm 1's
 * @seq_map: which subflow has carried which data
 * @last_seq: data sequence number at the previous decision
 * @una: last Data ACK
 * @gap: by slot of the slow subflow, packets times GAP_SCALE; 0: no gap yet
 * @pending: adjustments that @gap has not followed yet, in the same unit
 * @view: subflows as of the last decision
 * @n: entries of @view
 */
struct weft_stms_a {
	struct weft_stms	stms;
	struct weft_seq_map	seq_map;
	u64			last_seq;
	u64			una;
	s64			gap[WEFT_PATHS_MAX];
	s64			pending[WEFT_PATHS_MAX];
	struct weft_subflow_view	view[WEFT_PATHS_MAX];
	unsigned int		n;
};

static unsigned int stms_adjust_interval_acks = 8;

static s64 scaled_true_gap(const struct weft_subflow_view *view, unsigned int n,
			   const struct weft_subflow_view *slow)
{
	u64 packets = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		packets += weft_stms_true_gap(&view[i], slow);
	/* 0 means that there is no gap yet */
	return max_t(s64, min_t(u64, packets, GAP_MAX) * GAP_SCALE, 1);
}

/*
 * The largest gap. OWD_s - OWD_f is at most RTT_s, so Gap <= B_f RTT_s. A receiver that
 * reads late also causes large Data ACKs. Without this limit they could raise the gap
 * beyond what the send buffer holds. Then the slow subflow would get nothing, and no
 * Data ACK would lower the gap again.
 */
static s64 scaled_gap_limit(const struct weft_subflow_view *view, unsigned int n,
			    const struct weft_subflow_view *slow)
{
	u64 packets = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		if (view[i].slot != slow->slot && view[i].srtt_us &&
		    view[i].srtt_us <= slow->srtt_us)
			packets += div64_u64((u64)view[i].cwnd_packets * slow->srtt_us,
					     view[i].srtt_us);
	return max_t(s64, min_t(u64, packets, GAP_MAX) * GAP_SCALE, 1);
}

/* The part of a slow subflow's gap that one of the faster subflows carries. */
static u32 adjusted_gap(void *context, const struct weft_subflow_view *fast,
			const struct weft_subflow_view *slow)
{
	struct weft_stms_a *a = context;
	s64 whole = scaled_true_gap(a->view, a->n, slow);
	u64 part = weft_stms_true_gap(fast, slow);

	if (!a->gap[slow->slot])
		a->gap[slow->slot] = whole;
	/* the RTTs are about equal: the fastest subflow carries all of the gap */
	if (whole < GAP_SCALE)
		return fast == &a->view[weft_fastest(a->view, a->n, false)] ?
		       (u64)a->gap[slow->slot] / GAP_SCALE : 0;
	return div64_u64(a->gap[slow->slot] * min_t(u64, part, GAP_MAX), whole);
}

/*
 * Algorithm 2 for one slow subflow. @pending is the average times adjust_interval.
 * Stored in that form, the average has no rounding error.
 */
static void adjust(struct weft_stms_a *a, const struct weft_subflow_view *slow, s64 delta)
{
	s32 interval = min(max(stms_adjust_interval_acks, 1U), 1024U);
	u8 slot = slow->slot;
	s64 average;

	a->pending[slot] += delta * GAP_SCALE;
	average = div_s64(a->pending[slot], interval);
	a->pending[slot] -= average;
	if (a->gap[slot])
		a->gap[slot] = max_t(s64, 1,
				     min_t(s64, a->gap[slot] + average,
					   scaled_gap_limit(a->view, a->n, slow)));
}

/*
 * A Data ACK up to @una. If a slow subflow carried the packet at the left edge, only its
 * gap changes. If the fastest one did, the gaps of all slow subflows change.
 */
static void weft_stms_a_acked(struct weft_stms_a *a, u64 una)
{
	s64 bytes = una - a->una, packets;
	int edge, fast;
	unsigned int i;

	if (!a->n || !a->una || bytes <= 0) {
		if (bytes > 0)
			a->una = una;
		return;
	}
	fast = weft_fastest(a->view, a->n, false);
	packets = weft_packets(bytes, &a->view[fast]);
	edge = weft_seq_map_find(&a->seq_map, a->una);
	a->una = una;

	for (i = 0; i < a->n; i++) {
		const struct weft_subflow_view *slow = &a->view[i];
		s64 delta = 0;

		if ((int)i == fast)
			continue;
		if (packets > 2 && edge == slow->slot)
			delta = packets;
		else if (packets > 2 && edge == a->view[fast].slot)
			delta = -packets;
		adjust(a, slow, delta);
	}
}

static int weft_stms_a_choose(void *state, const struct weft_subflow_view *view,
			      unsigned int n, const struct weft_conn_view *conn)
{
	struct weft_stms_a *a = state;

	if (conn->last_slot >= 0)
		weft_seq_map_add(&a->seq_map, a->last_seq, conn->next_seq,
				 conn->last_slot);
	else if (!a->n)
		a->una = conn->next_seq;
	if (conn->last_slot >= 0 || !a->n)
		a->last_seq = conn->next_seq;

	memcpy(a->view, view, n * sizeof(*view));
	a->n = n;
	return weft_stms_slide(&a->stms, a->view, n, conn, adjusted_gap, a);
}

#ifdef __KERNEL__
#include <linux/moduleparam.h>

#include "weft.h"

module_param(stms_adjust_interval_acks, uint, 0644);
MODULE_PARM_DESC(stms_adjust_interval_acks, "stms_a: adjust_interval, in Data ACKs");

static int weft_stms_a_get_send(struct mptcp_sock *msk)
{
	struct sock *sk = (struct sock *)msk;
	int err;

	/* else its data lock is held */
	if (!sock_owned_by_user(sk))
		return weft_send_packet(msk, sizeof(struct weft_stms_a),
					weft_stms_a_choose);

	/* Data ACKs also come while a process owns the socket, and each one counts */
	mptcp_data_lock(sk);
	err = weft_send_packet(msk, sizeof(struct weft_stms_a),
			       weft_stms_a_choose);
	mptcp_data_unlock(sk);
	return err;
}

static void weft_stms_a_data_acked(struct mptcp_sock *msk, struct sock *ssk,
				   const struct sk_buff *skb, u64 snd_una)
{
	void *state = weft_peek_state(msk);

	if (state)
		weft_stms_a_acked(state, snd_una);
	weft_data_acked(msk, ssk, skb, snd_una);
}

WEFT_SCHED_CALLBACKS(weft_stms_a_get_send)

struct mptcp_sched_ops weft_stms_a = {
	WEFT_SCHED_OPS_RETRANS(weft_stms_a_get_send, weft_get_retrans),
	.init		= weft_conn_init,
	.release	= weft_conn_release,
	.data_acked	= weft_stms_a_data_acked,
	.exact_burst	= true,
	.name		= "stms_a",
	.owner		= THIS_MODULE,
};
#endif /* __KERNEL__ */
