// SPDX-License-Identifier: GPL-2.0
/*
 * Reinjection: data that a subflow holds up are sent again on another one.
 *
 * The core's worker reinjects what is not acknowledged from the left edge on, when
 * no Data ACK has come for a timeout or MPTCP_WORK_RTX is set, and asks for the
 * subflow before each fragment (get_retrans()).
 */
#include <linux/export.h>
#include <net/tcp.h>

#include "weft.h"

/**
 * weft_sender_is_blocked() - whether the connection's window or send buffer is
 *	full, so that nothing more can be handed to any subflow
 * @msk: connection, data lock held
 *
 * Return: true when there is something to send, or somebody waits to write more.
 */
bool weft_sender_is_blocked(const struct mptcp_sock *msk)
{
	const struct sock *sk = (const struct sock *)msk;

	if (READ_ONCE(msk->write_seq) != READ_ONCE(msk->snd_nxt))
		return !after64(READ_ONCE(msk->wnd_end), READ_ONCE(msk->snd_nxt));
	return sk->sk_socket && test_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
}

/**
 * weft_fastest_idle() - the fastest subflow, if it has room in its window
 * @msk: connection
 *
 * Return: that subflow, NULL when it has none or there is no active one.
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
 * Whether a subflow holds up what it carries: in loss recovery after a timeout, or
 * with data in flight and nothing heard for as long as its timeout.
 */
static bool is_stalled(const struct sock *ssk)
{
	const struct tcp_sock *tp = tcp_sk(ssk);

	if (inet_csk(ssk)->icsk_ca_state == TCP_CA_Loss)
		return true;
	return READ_ONCE(tp->packets_out) &&
	       (s32)(tcp_jiffies32 - READ_ONCE(tp->rcv_tstamp)) >=
	       (s32)inet_csk(ssk)->icsk_rto;
}

/* The fastest of the fittest subflows that are not stalled, if one has room. */
static struct mptcp_subflow_context *rescuer(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow, *best = NULL;
	enum weft_rank fittest = WEFT_RANK_UNFIT;
	u32 best_rtt = 0;

	mptcp_for_each_subflow(msk, subflow)
		if (!is_stalled(mptcp_subflow_tcp_sock(subflow)))
			fittest = min(fittest, weft_rank(subflow));
	if (fittest == WEFT_RANK_UNFIT)
		return NULL;

	mptcp_for_each_subflow(msk, subflow) {
		const struct sock *ssk = mptcp_subflow_tcp_sock(subflow);
		u32 rtt = READ_ONCE(tcp_sk(ssk)->srtt_us);

		if (is_stalled(ssk) || weft_rank(subflow) != fittest ||
		    !weft_window_space(ssk))
			continue;
		if (!best || rtt < best_rtt) {
			best = subflow;
			best_rtt = rtt;
		}
	}
	return best;
}

static bool has_stalled_subflow(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;

	mptcp_for_each_subflow(msk, subflow)
		if (is_stalled(mptcp_subflow_tcp_sock(subflow)))
			return true;
	return false;
}

/**
 * weft_get_retrans() - choose where the core reinjects unacknowledged data
 * @msk: connection, owned
 *
 * When a subflow is stalled, the data that it holds up go to the fastest one that
 * is not and has room, at once and also when that one has data of its own in
 * flight. Upstream's default waits until a subflow is idle; that remains the rule
 * while none is stalled, since then what is missing is on its way.
 *
 * Return: 0, or -EAGAIN when no subflow is fit now.
 */
int weft_get_retrans(struct mptcp_sock *msk)
{
	struct weft_conn *conn = weft_conn(msk);
	struct mptcp_subflow_context *best = NULL;
	struct sock *ssk;

	msk->rtx_burst = 0;
	if (has_stalled_subflow(msk)) {
		best = rescuer(msk);
		/* what is sent from now on is not for the stalled one */
		if (conn && (!conn->rescue_seq ||
			     !before64(READ_ONCE(msk->snd_una), conn->rescue_seq)))
			conn->rescue_seq = READ_ONCE(msk->snd_nxt);
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
EXPORT_SYMBOL_GPL(weft_get_retrans);	/* for bench/cost.c */

/**
 * weft_data_acked() - go on with a reinjection
 * @msk: connection, data lock held
 * @ssk: subflow by which the Data ACK came
 * @skb: the packet that brought it
 * @snd_una: first byte that is not acknowledged
 *
 * A reinjection ends when the window of the subflow that helps is full, and the
 * core would go on no sooner than after another timeout. So it is called again as
 * soon as that subflow has delivered everything and something is still missing that
 * was sent before the stall was noticed;
 * all but one packet, whose acknowledgment the receiver may delay by 40 ms.
 */
void weft_data_acked(struct mptcp_sock *msk, struct sock *ssk,
		     const struct sk_buff *skb, u64 snd_una)
{
	const struct weft_conn *conn = weft_conn(msk);
	struct mptcp_subflow_context *best;
	const struct sock *helper;

	/* subflows come and go while a user has the socket; the next ACK tells */
	if (sock_owned_by_user((struct sock *)msk) ||
	    !conn || !conn->rescue_seq || !before64(snd_una, conn->rescue_seq) ||
	    !has_stalled_subflow(msk))
		return;
	best = rescuer(msk);
	if (!best)
		return;
	helper = mptcp_subflow_tcp_sock(best);
	if (READ_ONCE(tcp_sk(helper)->packets_out) > 1 ||
	    READ_ONCE(tcp_sk(helper)->write_seq) !=
	    READ_ONCE(tcp_sk(helper)->snd_nxt))
		return;
	set_bit(MPTCP_WORK_RTX, &msk->flags);
	mptcp_schedule_work((struct sock *)msk);
}
