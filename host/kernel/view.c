// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a decision sees of a connection and its subflows (view.h), and get_send() of the
 * schedulers that decide packet by packet.
 */
#include <linux/export.h>
#include <linux/ktime.h>
#include <net/tcp.h>

#include "weft.h"

/* DSS option with 64-bit data sequence number and Data ACK, as TCP pads it. */
#define DSS_OPTION_LEN	ALIGN(TCPOLEN_MPTCP_DSS_BASE +		\
			      TCPOLEN_MPTCP_DSS_MAP64 +		\
			      TCPOLEN_MPTCP_DSS_ACK64, 4)
/* With a 32-bit Data ACK, a packet has room for so many bytes more. */
#define DSS_OPTION_SPARE (TCPOLEN_MPTCP_DSS_ACK64 - TCPOLEN_MPTCP_DSS_ACK32)

/**
 * weft_packet_payload() - data in a full packet of a subflow
 * @ssk: TCP socket of the subflow
 *
 * That is mss_cache without the DSS option, which is sometimes a few bytes shorter.
 *
 * Return: bytes, at least 1.
 */
int weft_packet_payload(const struct sock *ssk)
{
	return max_t(int, tcp_sk(ssk)->mss_cache - DSS_OPTION_LEN, 1);
}

/**
 * weft_window_space() - room in a subflow's window for data not handed to it yet
 * @ssk: TCP socket of the subflow; not locked, so this is an estimate
 *
 * The window is the smaller one of congestion and receive window. Data that wait in
 * the subflow's queue have taken their part of it. A subflow that recovers from a
 * timeout has no room: it resends first, as in the 0.9x kernels.
 *
 * Return: bytes, or 0 when the window or the send buffer is full.
 */
int weft_window_space(const struct sock *ssk)
{
	const struct tcp_sock *tp = tcp_sk(ssk);
	u32 unsent = READ_ONCE(tp->write_seq) - READ_ONCE(tp->snd_nxt);
	u32 window = READ_ONCE(tp->snd_cwnd);
	u32 in_flight = tcp_packets_in_flight(tp);
	s64 space, receiver;

	if (inet_csk(ssk)->icsk_ca_state == TCP_CA_Loss ||
	    in_flight >= window || !sk_stream_memory_free(ssk))
		return 0;

	space = (s64)(window - in_flight) * weft_packet_payload(ssk) - unsent;
	receiver = (s32)(tcp_wnd_end(tp) - READ_ONCE(tp->write_seq));
	return clamp_t(s64, min(space, receiver), 0, S32_MAX / 2);
}

static void view_subflow(const struct sock *ssk, struct weft_subflow_view *view)
{
	const struct tcp_sock *tp = tcp_sk(ssk);
	u32 unsent = READ_ONCE(tp->write_seq) - READ_ONCE(tp->snd_nxt);

	view->srtt_us = READ_ONCE(tp->srtt_us) >> 3;
	view->rttvar_us = READ_ONCE(tp->mdev_us) >> 2;
	view->rtt_us = READ_ONCE(tp->rack.rtt_us);
	view->rtt_min_us = tcp_min_rtt(tp);
	view->acked_us = tp->delivered_mstamp;
	view->delivered_packets = READ_ONCE(tp->delivered);
	view->lost_packets = READ_ONCE(tp->lost);
	view->marked_packets = READ_ONCE(tp->delivered_ce);
	view->cwnd_packets = max(READ_ONCE(tp->snd_cwnd), 1U);
	view->has_class = weft_class_count();
	view->goes_first = weft_goes_first(ssk);
	view->has_model = inet_csk(ssk)->icsk_ca_ops->cong_control;
	view->in_flight_packets = tcp_packets_in_flight(tp);
	view->payload_bytes = weft_packet_payload(ssk);
	/* one full packet is not to count as two, or a window of two gets only one */
	view->queued_packets = DIV_ROUND_UP(unsent, view->payload_bytes + DSS_OPTION_SPARE);
	view->space_bytes = weft_window_space(ssk);
	view->writable = sk_stream_memory_free(ssk);
	/* tcp_nagle_check(), with Minshall's modification */
	view->nagle_delays_short = !tp->nonagle && after(tp->snd_sml, tp->snd_una) &&
			    !after(tp->snd_sml, tp->snd_nxt);
}

/**
 * weft_view_subflows() - collect what a decision sees of the subflows
 * @msk: connection
 * @usable: its usable subflows
 * @view: result, an entry for each of them
 */
void weft_view_subflows(struct mptcp_sock *msk, const struct weft_usable *usable,
			struct weft_subflow_view *view)
{
	unsigned int i;

	for (i = 0; i < usable->count; i++) {
		const struct sock *ssk = mptcp_subflow_tcp_sock(usable->subflow[i]);

		view_subflow(ssk, &view[i]);
		view[i].slot = usable->slot[i];
		if (weft_would_overtake(msk, ssk))
			view[i].space_bytes = 0;
	}
}

static void view_conn(struct mptcp_sock *msk, struct weft_conn_view *conn)
{
	u64 next = msk->snd_nxt, una = weft_snd_una(msk);
	const struct sock *sk = (const struct sock *)msk;
	u64 end = weft_seq_near(next, &msk->wnd_end);

	conn->now_us = div_u64(ktime_get_ns(), NSEC_PER_USEC);
	conn->next_seq = next;
	conn->unacked_bytes = next - una;
	conn->unsent_bytes = msk->write_seq - next;
	conn->window_bytes = after64(end, next) ? end - next : 0;
	conn->app_is_blocked = weft_app_is_blocked(msk);
	conn->send_window_bytes =
		min_t(u64, after64(end, una) ? end - una : 0,
		      READ_ONCE(sk->sk_sndbuf));
}

/**
 * weft_send_packet() - get_send() of a scheduler that decides packet by packet
 * @msk: connection
 * @state_size: bytes of the scheduler's state of a connection, may be 0
 * @choose: its decision
 *
 * Return: 0; -EAGAIN when the decision is to wait; -EINVAL when no subflow is usable;
 * -ENOMEM.
 */
int weft_send_packet(struct mptcp_sock *msk, size_t state_size,
		     weft_choose_fn *choose)
{
	struct weft_subflow_view view[WEFT_PATHS_MAX];
	struct weft_conn_view conn;
	struct weft_usable usable;
	void *state = NULL;
	int choice;

	if (!weft_usable(msk, &usable))
		return -EINVAL;
	if (state_size) {
		state = weft_state(msk, state_size);
		if (!state)
			return -ENOMEM;
	}
	conn.last_slot = weft_account(msk) ? weft_conn(msk)->picked : -1;
	weft_view_subflows(msk, &usable, view);
	view_conn(msk, &conn);

	choice = choose(state, view, usable.count, &conn);
	if (choice == WEFT_WAIT)
		return -EAGAIN;
	return weft_grant(msk, usable.subflow[choice], usable.slot[choice], 1);
}
EXPORT_SYMBOL_GPL(weft_send_packet);
