// SPDX-License-Identifier: GPL-2.0
/*
 * stms_a: STMS with the gap adjusted (STMS-A, algorithm 2) by what Data ACKs say.
 * The scheduler is in stms.c.
 *
 * A Data ACK that moves the window by more than two packets (delayed ACKs move it
 * by two) tells that packets waited for a hole to be filled. If the packet at the
 * left edge of the window, the one that had been missing, came over a slow
 * subflow, the gap was too small; if over a fast one, too large:
 *
 *	on each Data ACK of data_acked packets
 *		delta = 0
 *		if data_acked > 2
 *			delta = data_acked	if send_una went to a slow subflow
 *			delta = -data_acked	otherwise
 *		gap += EWMA(delta, adjust_interval)
 *
 * The weight of the average is 1 / adjust_interval. Since the weights of all later
 * Data ACKs sum up to one, a leap of n packets moves the gap by n, spread over
 * about adjust_interval Data ACKs, as long as the earlier change needs to show.
 * The first gap is the calculated one.
 *
 * Several slow subflows have a gap each, and each faster one a part of it by what
 * it would carry meanwhile. The paper does not say how large adjust_interval is;
 * it is a module parameter.
 */
#include "stms.h"
#include "trail.h"

#define GAP_SCALE	256		/* gaps are in 1/256 packets */
#define GAP_MAX		65536		/* packets */

/**
 * struct weft_stms_a - state of a connection
 * @stms: algorithm 1's
 * @trail: which subflow has carried what
 * @last_seq: data sequence at the decision before
 * @una: last Data ACK
 * @gap: by slot of the slow subflow, packets times GAP_SCALE; 0 for "not yet"
 * @rest: what Data ACKs told and @gap has yet to move, likewise
 * @view: subflows as of the last decision
 * @n: entries of @view
 */
struct weft_stms_a {
	struct weft_stms	stms;
	struct weft_trail	trail;
	u64			last_seq;
	u64			una;
	s64			gap[WEFT_PATHS_MAX];
	s64			rest[WEFT_PATHS_MAX];
	struct weft_view	view[WEFT_PATHS_MAX];
	unsigned int		n;
};

static unsigned int stms_adjust_interval_acks = 8;

static s64 scaled_true_gap(const struct weft_view *view, unsigned int n,
			   const struct weft_view *slow)
{
	u64 packets = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		packets += weft_stms_true_gap(&view[i], slow);
	/* 0 is for "not yet" */
	return max_t(s64, min_t(u64, packets, GAP_MAX) * GAP_SCALE, 1);
}

/*
 * The largest gap that there can be. Of OWD_s - OWD_f no more is known than that it
 * is at most RTT_s, so Gap <= B_f RTT_s. Without a limit, leaps that have another
 * reason than order (a receiver that reads late) push the gap beyond what the send
 * buffer holds; then the slow subflow gets nothing and no leap ever takes it back.
 */
static s64 scaled_gap_limit(const struct weft_view *view, unsigned int n,
			    const struct weft_view *slow)
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

/* The slow subflow's gap, shared out by what each faster one would carry. */
static u32 adjusted_gap(void *context, const struct weft_view *fast,
			const struct weft_view *slow)
{
	struct weft_stms_a *a = context;
	s64 whole = scaled_true_gap(a->view, a->n, slow);
	u64 part = weft_stms_true_gap(fast, slow);

	if (!a->gap[slow->slot])
		a->gap[slow->slot] = whole;
	/* RTTs so close that neither is slow: all of it for the fastest */
	if (whole < GAP_SCALE)
		return fast == &a->view[weft_fastest(a->view, a->n, false)] ?
		       (u64)a->gap[slow->slot] / GAP_SCALE : 0;
	return div64_u64(a->gap[slow->slot] * min_t(u64, part, GAP_MAX), whole);
}

/*
 * Algorithm 2 for one slow subflow. The average times adjust_interval is what is
 * left of all deltas so far; kept in that form nothing is lost to rounding.
 */
static void adjust(struct weft_stms_a *a, const struct weft_view *slow, s64 delta)
{
	s32 interval = min(max(stms_adjust_interval_acks, 1U), 1024U);
	u8 slot = slow->slot;
	s64 average;

	a->rest[slot] += delta * GAP_SCALE;
	average = div_s64(a->rest[slot], interval);
	a->rest[slot] -= average;
	if (a->gap[slot])
		a->gap[slot] = max_t(s64, 1,
				     min_t(s64, a->gap[slot] + average,
					   scaled_gap_limit(a->view, a->n, slow)));
}

/*
 * A Data ACK up to @una. With several slow subflows, one that held up the others
 * learns of its own lateness; a fast one that did tells all of them.
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
	edge = weft_trail_find(&a->trail, a->una);
	a->una = una;

	for (i = 0; i < a->n; i++) {
		const struct weft_view *slow = &a->view[i];
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

static int weft_stms_a_choose(void *state, const struct weft_view *view,
			      unsigned int n, const struct weft_outlook *outlook)
{
	struct weft_stms_a *a = state;

	if (outlook->placed >= 0)
		weft_trail_add(&a->trail, a->last_seq, outlook->next_seq,
			       outlook->placed);
	else if (!a->n)
		a->una = outlook->next_seq;
	if (outlook->placed >= 0 || !a->n)
		a->last_seq = outlook->next_seq;

	memcpy(a->view, view, n * sizeof(*view));
	a->n = n;
	return weft_stms_slide(&a->stms, a->view, n, outlook, adjusted_gap, a);
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

	/* each Data ACK counts, also those that come while a process has the socket */
	mptcp_data_lock(sk);
	err = weft_send_packet(msk, sizeof(struct weft_stms_a),
			       weft_stms_a_choose);
	mptcp_data_unlock(sk);
	return err;
}

static void weft_stms_a_data_acked(struct mptcp_sock *msk, struct sock *ssk,
				   const struct sk_buff *skb, u64 snd_una)
{
	struct weft_conn *conn = weft_conn(msk);

	if (conn && conn->state)
		weft_stms_a_acked(conn->state, snd_una);
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
