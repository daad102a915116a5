// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reinjection: data that a subflow holds up are sent again on another one.
 *
 * The core's worker reinjects unacknowledged data, beginning at the left edge of the
 * send window. It does so when no Data ACK has come for a timeout, or when
 * MPTCP_WORK_RTX is set. Before each fragment it asks for the subflow (get_retrans()).
 */
#include <linux/export.h>
#include <net/tcp.h>

#include "weft.h"

/**
 * weft_sender_is_blocked() - whether a full send window or send buffer keeps the
 *	connection from giving subflows more data
 * @msk: connection, data lock held
 *
 * Return: true when data wait for the window, or the application waits for the buffer.
 */
bool weft_sender_is_blocked(const struct mptcp_sock *msk)
{
	u32 next = weft_low_seq(&msk->snd_nxt);

	if (weft_low_seq(&msk->write_seq) != next)
		return !after(weft_low_seq(&msk->wnd_end), next);
	return weft_app_is_blocked(msk);
}

/**
 * weft_fastest_idle() - the fastest subflow, if it has room in its window
 * @msk: connection
 *
 * Return: that subflow; NULL when it has no room, or no subflow is active.
 */
struct mptcp_subflow_context *weft_fastest_idle(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow, *best = NULL;
	u32 best_rtt = U32_MAX;

	mptcp_for_each_subflow(msk, subflow) {
		u32 rtt = READ_ONCE(tcp_sk(mptcp_subflow_tcp_sock(subflow))->srtt_us);

		if (weft_rank(subflow) <= WEFT_RANK_REGULAR_LOSS && rtt < best_rtt) {
			best = subflow;
			best_rtt = rtt;
		}
	}
	if (best && !weft_window_space(mptcp_subflow_tcp_sock(best)))
		return NULL;
	return best;
}

/*
 * Whether a subflow holds up the data that it carries: it recovers from a timeout, or has
 * data in flight and has neither heard nor sent anything for as long as its timeout. One
 * that begins to send again after an idle time has not heard anything for long either.
 */
static bool is_stalled(struct mptcp_subflow_context *subflow)
{
	const struct sock *ssk = mptcp_subflow_tcp_sock(subflow);
	const struct tcp_sock *tp = tcp_sk(ssk);
	u32 since;

	if (inet_csk(ssk)->icsk_ca_state == TCP_CA_Loss)
		return weft_is_recovering(subflow);
	since = READ_ONCE(tp->rcv_tstamp);
	if (before(since, READ_ONCE(tp->lsndtime)))
		since = READ_ONCE(tp->lsndtime);
	return READ_ONCE(tp->packets_out) &&
	       (s32)(tcp_jiffies32 - since) >= (s32)inet_csk(ssk)->icsk_rto;
}

/* Of the subflows that are not stalled, the fastest with the best rank and room. */
static struct mptcp_subflow_context *reinjection_target(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow, *best = NULL;
	enum weft_rank fittest = WEFT_RANK_UNFIT;
	u32 best_rtt = 0;

	mptcp_for_each_subflow(msk, subflow)
		if (!is_stalled(subflow))
			fittest = min(fittest, weft_rank(subflow));
	if (fittest == WEFT_RANK_UNFIT)
		return NULL;

	mptcp_for_each_subflow(msk, subflow) {
		const struct sock *ssk = mptcp_subflow_tcp_sock(subflow);
		u32 rtt = READ_ONCE(tcp_sk(ssk)->srtt_us);

		if (is_stalled(subflow) || weft_rank(subflow) != fittest ||
		    !weft_window_space(ssk))
			continue;
		if (!best || rtt < best_rtt) {
			best = subflow;
			best_rtt = rtt;
		}
	}
	return best;
}

/**
 * weft_has_stalled_subflow() - whether a subflow holds up the data that it carries
 * @msk: connection, owned or with its data lock held
 *
 * Return: true when a timeout says so, or is about to.
 */
bool weft_has_stalled_subflow(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;

	mptcp_for_each_subflow(msk, subflow)
		if (is_stalled(subflow))
			return true;
	return false;
}

/* Whether data at the left edge of the send window were sent before a subflow stalled. */
static bool is_rescuing(const struct weft_conn *conn, u64 snd_una)
{
	u64 end_seq = atomic64_read(&conn->rescue_seq);

	return end_seq && before64(snd_una, end_seq);
}

/**
 * weft_get_retrans() - choose where the core reinjects unacknowledged data
 * @msk: connection, owned
 *
 * When a subflow is stalled, the data that it holds up go at once to the fastest
 * subflow that is not stalled and has room, even if that one has data of its own in
 * flight. Upstream's default waits until a subflow is idle. While no subflow is
 * stalled, the missing data are on their way, and the default's rule applies here too.
 *
 * Return: 0, or -EAGAIN when no subflow can take the data now.
 */
int weft_get_retrans(struct mptcp_sock *msk)
{
	struct weft_conn *conn = weft_conn(msk);
	struct mptcp_subflow_context *best = NULL;
	struct sock *ssk;

	msk->rtx_burst = 0;
	if (weft_has_stalled_subflow(msk)) {
		best = reinjection_target(msk);
		/* a stalled subflow gets none of the data after this */
		if (conn && !is_rescuing(conn, weft_snd_una(msk)))
			atomic64_set(&conn->rescue_seq, msk->snd_nxt);
	}
	if (!best) {
		ssk = mptcp_subflow_get_retrans(msk);
		if (!ssk)
			return -EAGAIN;
		best = mptcp_subflow_ctx(ssk);
	}
	mptcp_subflow_set_scheduled(best, true);
	return 0;
}
EXPORT_SYMBOL_GPL(weft_get_retrans);

/**
 * weft_data_acked() - continue a reinjection
 * @msk: connection, data lock held
 * @ssk: subflow on which the Data ACK came
 * @skb: the packet that carried it
 * @snd_una: first byte that is not acknowledged
 *
 * A reinjection ends when the window of its target is full. The core would continue it
 * only after another timeout. So this calls the worker as soon as the target has
 * delivered its data and some that were sent before the stall are still missing. The
 * target may still have one packet in flight, because the receiver may delay that
 * packet's ACK by 40 ms.
 */
void weft_data_acked(struct mptcp_sock *msk, struct sock *ssk,
		     const struct sk_buff *skb, u64 snd_una)
{
	const struct weft_conn *conn = weft_conn(msk);
	struct mptcp_subflow_context *best;
	const struct sock *target;

	/* the owner of the socket may change the list of subflows; wait for the next ACK */
	if (sock_owned_by_user((struct sock *)msk) ||
	    !conn || !is_rescuing(conn, snd_una) || !weft_has_stalled_subflow(msk))
		return;
	best = reinjection_target(msk);
	if (!best)
		return;
	target = mptcp_subflow_tcp_sock(best);
	if (READ_ONCE(tcp_sk(target)->packets_out) > 1 ||
	    READ_ONCE(tcp_sk(target)->write_seq) !=
	    READ_ONCE(tcp_sk(target)->snd_nxt))
		return;
	set_bit(MPTCP_WORK_RTX, &msk->flags);
	mptcp_schedule_work((struct sock *)msk);
}
EXPORT_SYMBOL_GPL(weft_data_acked);
