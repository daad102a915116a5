// SPDX-License-Identifier: GPL-2.0-only
/*
 * What every scheduler needs of a connection: which subflows may carry data, how a
 * decision is handed to the core, and how much the core sent because of it.
 *
 * A decision is a subflow and a burst. The core gives that subflow msk->snd_burst
 * bytes, rounded up to whole packets (ops.exact_burst), and asks again when they are
 * used up. It gives less when it runs out of data, window or memory. The next call of
 * the scheduler then finds the rest in msk->snd_burst. So a burst is counted when the
 * next decision is due, not when it is granted.
 *
 * What is exported here and in reinject.c is what a scheduler in a module of its own
 * needs (examples/scheduler).
 */
#include <linux/export.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include "weft.h"

/* DSS option with 64-bit data sequence number and Data ACK, as TCP pads it. */
#define DSS_OPTION_LEN	ALIGN(TCPOLEN_MPTCP_DSS_BASE +		\
			      TCPOLEN_MPTCP_DSS_MAP64 +		\
			      TCPOLEN_MPTCP_DSS_ACK64, 4)
/* With a 32-bit Data ACK, a packet has room for so many bytes more. */
#define DSS_OPTION_SPARE (TCPOLEN_MPTCP_DSS_ACK64 - TCPOLEN_MPTCP_DSS_ACK32)

/**
 * weft_conn_init() - set up the state of a new connection
 * @msk: connection, not in use yet; possibly in softirq
 *
 * If there is no memory, weft_usable() tries again later.
 */
void weft_conn_init(struct mptcp_sock *msk)
{
	struct weft_conn *conn = kzalloc(sizeof(*conn), GFP_ATOMIC);

	msk->sched_data = conn;
}
EXPORT_SYMBOL_GPL(weft_conn_init);

/**
 * weft_conn_release() - free the state of a connection that is going away
 * @msk: connection
 */
void weft_conn_release(struct mptcp_sock *msk)
{
	struct weft_conn *conn = weft_conn(msk);

	if (conn)
		kfree(conn->state);
	kfree(conn);
	msk->sched_data = NULL;
}
EXPORT_SYMBOL_GPL(weft_conn_release);

/**
 * weft_state() - the scheduler's own state of a connection
 * @msk: connection with weft_conn()
 * @size: bytes, always the same for one scheduler
 *
 * The first call allocates it, zeroed.
 *
 * Return: the state, or NULL without memory.
 */
void *weft_state(struct mptcp_sock *msk, size_t size)
{
	struct weft_conn *conn = weft_conn(msk);

	if (unlikely(!conn->state))
		/* data_acked() reads it under another lock; there it must be zero */
		smp_store_release(&conn->state, kzalloc(size, GFP_ATOMIC));
	return conn->state;
}

/* Slots hold subflow_id + 1, so that zeroed memory is empty. */
static u32 slot_id(const struct mptcp_subflow_context *subflow)
{
	return subflow->subflow_id + 1;
}

/**
 * weft_slot() - look up the slot of a subflow
 * @conn: state of its connection
 * @subflow: subflow
 *
 * Return: the slot, or -ENOENT when the subflow has never been usable.
 */
int weft_slot(const struct weft_conn *conn,
	      const struct mptcp_subflow_context *subflow)
{
	int i;

	for (i = 0; i < WEFT_PATHS_MAX; i++)
		/* slot_of() */
		if (smp_load_acquire(&conn->subflow[i].id) == slot_id(subflow))
			return i;
	return -ENOENT;
}

static bool slot_is_alive(struct mptcp_sock *msk, u32 id)
{
	struct mptcp_subflow_context *subflow;

	mptcp_for_each_subflow(msk, subflow)
		if (slot_id(subflow) == id)
			return true;
	return false;
}

/* The slot of @subflow, a new one if it has none; -ENOSPC when all are taken. */
static int slot_of(struct mptcp_sock *msk, struct weft_conn *conn,
		   const struct mptcp_subflow_context *subflow)
{
	int slot = weft_slot(conn, subflow);

	if (slot >= 0)
		return slot;

	for (slot = 0; slot < WEFT_PATHS_MAX; slot++) {
		struct weft_subflow *entry = &conn->subflow[slot];

		if (entry->id && slot_is_alive(msk, entry->id))
			continue;
		/* the new subflow has not sent the burst of the last decision */
		if (slot == conn->picked) {
			conn->granted = 0;
			conn->sent = 0;
		}
		entry->packets = 0;
		entry->bytes = 0;
		/* data_acked() looks slots up under another lock */
		smp_store_release(&entry->id, slot_id(subflow));
		conn->slot_changes++;
		return slot;
	}
	return -ENOSPC;
}

/**
 * weft_is_recovering() - whether a subflow has to resend first after a timeout
 * @subflow: subflow
 *
 * Return: true while it recovers, from as many timeouts in a row as its scheduler says.
 */
bool weft_is_recovering(struct mptcp_subflow_context *subflow)
{
	const struct sock *ssk = mptcp_subflow_tcp_sock(subflow);
	const struct weft_conn *conn = weft_conn(mptcp_sk(subflow->conn));

	return inet_csk(ssk)->icsk_ca_state == TCP_CA_Loss &&
	       READ_ONCE(inet_csk(ssk)->icsk_retransmits) >= (conn ? conn->takeover_timeouts : 0);
}

/**
 * weft_rank() - how suitable a subflow is for data
 * @subflow: subflow
 *
 * Return: its rank; lower is better.
 */
enum weft_rank weft_rank(struct mptcp_subflow_context *subflow)
{
	bool loss = weft_is_recovering(subflow);

	if (!mptcp_subflow_active(subflow))
		return WEFT_RANK_UNFIT;
	if (subflow->backup || subflow->request_bkup)
		return loss ? WEFT_RANK_BACKUP_LOSS : WEFT_RANK_BACKUP;
	return loss ? WEFT_RANK_REGULAR_LOSS : WEFT_RANK_REGULAR;
}

/* No room and nothing in flight: its peer's window seems to be closed. */
static bool is_blocked(const struct sock *ssk)
{
	return !READ_ONCE(tcp_sk(ssk)->packets_out) && !weft_window_space(ssk);
}

/**
 * weft_usable() - collect the subflows that may carry new data
 * @msk: connection
 * @usable: result
 *
 * Usable subflows are active (established, not closing, not stale). One that recovers
 * from a retransmission timeout has to resend first; it is left out while there is
 * another. Backup subflows are used only when there is no other subflow, or when all
 * others have a closed window and nothing in flight, as when their links fail. At most
 * WEFT_PATHS_MAX subflows of a connection are used.
 *
 * This also refreshes the connection-level retransmission timeout, as every scheduler
 * has to before data are sent.
 *
 * Return: false when there is none, or no memory for the connection's state.
 */
bool weft_usable(struct mptcp_sock *msk, struct weft_usable *usable)
{
	struct weft_conn *conn = weft_conn(msk);
	struct mptcp_subflow_context *subflow;
	enum weft_rank best = WEFT_RANK_UNFIT, any = WEFT_RANK_UNFIT;

	usable->count = 0;
	usable->members = 0;

	/* there was no memory for it when the connection began */
	if (unlikely(!conn)) {
		weft_conn_init(msk);
		conn = weft_conn(msk);
		if (!conn)
			return false;
	}

	/* a blocked subflow neither sends nor gets an ACK: nothing would end the wait */
	mptcp_for_each_subflow(msk, subflow) {
		enum weft_rank rank = weft_rank(subflow);

		any = min(any, rank);
		if (!is_blocked(mptcp_subflow_tcp_sock(subflow)))
			best = min(best, rank);
	}
	if (best == WEFT_RANK_UNFIT)
		best = any;
	if (best == WEFT_RANK_UNFIT)
		return false;

	mptcp_for_each_subflow(msk, subflow) {
		int slot;

		if (weft_rank(subflow) != best)
			continue;
		slot = slot_of(msk, conn, subflow);
		if (slot < 0)
			continue;
		usable->subflow[usable->count] = subflow;
		usable->slot[usable->count++] = slot;
		usable->members |= BIT(slot);
	}
	mptcp_set_timeout((struct sock *)msk);
	return usable->count;
}

#if IS_ENABLED(CONFIG_MPTCP_IPV6)
/* fd57:6566:7400::/96, then the host's IPv4 address (RFC 6052, 2.2). */
static bool is_of_fabric(const struct in6_addr *address)
{
	return address->s6_addr32[0] == htonl(0xfd576566) &&
	       address->s6_addr32[1] == htonl(0x74000000) &&
	       !address->s6_addr32[2];
}
#endif

/**
 * weft_endpoints() - the IPv4 addresses that identify the two ends of a subflow
 * @ssk: TCP socket of the subflow
 * @local: result, this host's address
 * @remote: result, the peer's address
 *
 * Patterns and messages identify hosts by IPv4 addresses. The fabric's IPv6 addresses
 * contain them, and switches map them the same way (p4/src/stages/headers.p4).
 *
 * Return: false for other IPv6 addresses, which have no such part.
 */
bool weft_endpoints(const struct sock *ssk, __be32 *local, __be32 *remote)
{
#if IS_ENABLED(CONFIG_MPTCP_IPV6)
	if (ssk->sk_family == AF_INET6 &&
	    !ipv6_addr_v4mapped(&ssk->sk_v6_daddr)) {
		const struct in6_addr *own = &inet6_sk(ssk)->saddr;

		if (!is_of_fabric(own) || !is_of_fabric(&ssk->sk_v6_daddr))
			return false;
		*local = own->s6_addr32[3];
		*remote = ssk->sk_v6_daddr.s6_addr32[3];
		return true;
	}
#endif
	*local = inet_sk(ssk)->inet_saddr;
	*remote = inet_sk(ssk)->inet_daddr;
	return true;
}

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

/* The subflow with this number, NULL when it is gone. */
static struct mptcp_subflow_context *subflow_of(struct mptcp_sock *msk, u32 id)
{
	struct mptcp_subflow_context *subflow;

	mptcp_for_each_subflow(msk, subflow)
		if (slot_id(subflow) == id)
			return subflow;
	return NULL;
}

/* Packets of the last decision if it ended after this many bytes. */
static int packets_of(struct mptcp_sock *msk, int sent)
{
	const struct weft_conn *conn = weft_conn(msk);
	struct mptcp_subflow_context *subflow;
	int payload = sent;

	if (!sent)
		return 0;
	subflow = subflow_of(msk, conn->subflow[conn->picked].id);
	if (subflow)
		payload = weft_packet_payload(mptcp_subflow_tcp_sock(subflow));
	return max(DIV_ROUND_CLOSEST(sent, payload), 1);
}

/* Count the packets of the decision that has ended. */
static void book_packets(struct mptcp_sock *msk)
{
	struct weft_conn *conn = weft_conn(msk);

	conn->subflow[conn->picked].packets += packets_of(msk, conn->sent);
	conn->sent = 0;
}

/* Bytes of the last decision that were sent since the last weft_account(). */
static int sent_since(const struct mptcp_sock *msk)
{
	const struct weft_conn *conn = weft_conn(msk);

	return conn->granted > 0 ? max(conn->granted - msk->snd_burst, 0) : 0;
}

/**
 * weft_account() - count what was sent of the last decision's burst
 * @msk: connection with state
 *
 * Return: true when that burst has been used up since the last call, so that the
 * next packet needs a new decision.
 */
bool weft_account(struct mptcp_sock *msk)
{
	struct weft_conn *conn = weft_conn(msk);
	int sent = sent_since(msk);

	if (!sent)
		return false;
	conn->subflow[conn->picked].bytes += sent;
	conn->sent += sent;
	conn->granted = msk->snd_burst;
	if (conn->granted > 0)
		return false;
	book_packets(msk);
	return true;
}

/**
 * weft_slot_totals() - what a subflow has been given so far
 * @msk: connection with state
 * @slot: slot of the subflow
 *
 * This changes nothing, because only the scheduler may learn from weft_account() that
 * a burst has been used up.
 *
 * Return: what @slot would hold after weft_account().
 */
struct weft_subflow weft_slot_totals(struct mptcp_sock *msk, u8 slot)
{
	const struct weft_conn *conn = weft_conn(msk);
	struct weft_subflow carried = conn->subflow[slot];
	int sent = sent_since(msk);

	if (slot != conn->picked || !sent)
		return carried;
	carried.bytes += sent;
	if (msk->snd_burst <= 0)
		carried.packets += packets_of(msk, conn->sent + sent);
	return carried;
}

/**
 * weft_grant() - hand a decision to the core: the next data go to this subflow
 * @msk: connection with state
 * @subflow: subflow
 * @slot: its slot
 * @bytes: at least 1; the core rounds up to whole packets
 *
 * Return: 0, the value of get_send().
 */
int weft_grant(struct mptcp_sock *msk, struct mptcp_subflow_context *subflow,
	       u8 slot, int bytes)
{
	struct weft_conn *conn = weft_conn(msk);

	if (slot != conn->picked || bytes != conn->granted)
		book_packets(msk);
	conn->picked = slot;
	conn->granted = bytes;
	msk->snd_burst = bytes;
	weft_mark_data(msk, mptcp_subflow_tcp_sock(subflow));
	mptcp_subflow_set_scheduled(subflow, true);
	return 0;
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
		view_subflow(mptcp_subflow_tcp_sock(usable->subflow[i]), &view[i]);
		view[i].slot = usable->slot[i];
	}
}

static void view_conn(struct mptcp_sock *msk, struct weft_conn_view *conn)
{
	u64 next = msk->snd_nxt, una = READ_ONCE(msk->snd_una);
	const struct sock *sk = (const struct sock *)msk;
	u64 end = READ_ONCE(msk->wnd_end);

	conn->now_us = div_u64(ktime_get_ns(), NSEC_PER_USEC);
	conn->next_seq = next;
	conn->unsent_bytes = READ_ONCE(msk->write_seq) - next;
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
