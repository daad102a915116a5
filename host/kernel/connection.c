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
#include <linux/slab.h>
#include <net/tcp.h>

#include "weft.h"

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
