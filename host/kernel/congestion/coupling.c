// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups: what the subflows of an MPTCP connection know of each other.
 *
 * A TCP congestion control runs with one subflow's socket locked, mostly in softirq,
 * and without the lock of the connection. So it must not walk the connection's list of
 * subflows, which may be freed meanwhile. Instead the subflows of a connection share a
 * group. Each publishes a few numbers in it (struct coupled_path), and computes its own
 * growth from the numbers of all.
 *
 *	table of groups, by connection		lock: coupled_groups_lock
 *	  group		one connection		lock: group->lock
 *	    path[slot]	one subflow's numbers
 *
 * A subflow joins when the first of its data are acknowledged, so a backup subflow that
 * is never used does not count. It leaves when TCP releases its congestion control,
 * before its socket is freed. The last one to leave frees the group. Only members hold
 * the group, so a member's pointer to it is valid while it is a member. The connection
 * is only a key: a subflow holds a reference to it until after it has left. The token
 * distinguishes a connection that fell back to TCP from one that got its memory.
 *
 * Without another subflow that takes part, every algorithm is exactly Reno. That is so
 * for plain TCP, after a fallback to TCP, with a single subflow, and without memory.
 *
 * Locks. coupled_groups_lock nests outside group->lock. Both are taken with bottom
 * halves disabled, because TCP also calls from process context when it processes a
 * socket's backlog.
 */
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/mptcp.h>

#include "coupling.h"
#include "protocol.h"		/* net/mptcp/protocol.h */

#define GROUPS_BITS	10

/*
 * With several subflows the drafts of OLIA and Balia allow a slow start threshold of one
 * packet, to keep traffic off congested paths. But a window of one packet waits for the
 * receiver's delayed ACK: 40 ms per packet, many times the RTT of a data center.
 * Meanwhile the data that the MPTCP scheduler has queued there block the connection. So
 * TCP's threshold of two is the default; where RTTs are long, one packet is fine.
 */
static ushort min_ssthresh_packets = 2;
module_param(min_ssthresh_packets, ushort, 0644);
MODULE_PARM_DESC(min_ssthresh_packets,
		 "slow start threshold of olia and balia is at least this (2; the drafts: 1)");

static DEFINE_HASHTABLE(coupled_groups, GROUPS_BITS);
static DEFINE_SPINLOCK(coupled_groups_lock);

/* The group of a connection, a new one if it has none. */
static struct coupled_group *group_of(const struct sock *conn, u32 token)
{
	struct coupled_group *group;

	hash_for_each_possible(coupled_groups, group, node, (unsigned long)conn)
		if (group->conn == conn && group->token == token)
			return group;

	group = kzalloc(sizeof(*group), GFP_ATOMIC);
	if (!group)
		return NULL;
	group->conn = conn;
	group->token = token;
	spin_lock_init(&group->lock);
	hash_add(coupled_groups, &group->node, (unsigned long)conn);
	return group;
}

static int take_slot(struct coupled_group *group, const struct sock *sk)
{
	int slot, taken = -ENOSPC;

	spin_lock(&group->lock);
	for (slot = 0; slot < COUPLED_PATHS_MAX; slot++) {
		if (group->sk[slot])
			continue;
		group->sk[slot] = sk;
		group->slots = max_t(unsigned int, group->slots, slot + 1);
		taken = slot;
		break;
	}
	spin_unlock(&group->lock);
	return taken;
}

static void drop_if_empty(struct coupled_group *group)
{
	if (group->members)
		return;
	hash_del(&group->node);
	kfree(group);
}

/* Join the group of the connection, if the socket is a subflow of one. */
static void join(struct sock *sk)
{
	const struct mptcp_subflow_context *subflow = mptcp_subflow_ctx(sk);
	struct coupled *ca = inet_csk_ca(sk);
	struct coupled_group *group;
	const struct sock *conn;
	int slot;

	conn = subflow ? subflow->conn : NULL;
	if (!conn)
		return;

	spin_lock_bh(&coupled_groups_lock);
	group = group_of(conn, READ_ONCE(mptcp_sk(conn)->token));
	if (!group)
		goto unlock;
	slot = take_slot(group, sk);
	if (slot < 0)
		goto unlock;
	group->members++;
	ca->group = group;
	ca->slot = slot;
unlock:
	spin_unlock_bh(&coupled_groups_lock);
}

static void leave(struct sock *sk)
{
	struct coupled *ca = inet_csk_ca(sk);
	struct coupled_group *group = ca->group;

	if (!group)
		return;
	ca->group = NULL;

	spin_lock_bh(&coupled_groups_lock);
	spin_lock(&group->lock);
	group->sk[ca->slot] = NULL;
	group->path[ca->slot] = (struct coupled_path){};
	spin_unlock(&group->lock);
	group->members--;
	drop_if_empty(group);
	spin_unlock_bh(&coupled_groups_lock);
}

/**
 * coupled_init() - prepare the private data of a socket
 * @sk: TCP socket, just established or just given this congestion control
 */
void coupled_init(struct sock *sk)
{
	struct coupled *ca = inet_csk_ca(sk);

	*ca = (struct coupled){};
}

/**
 * coupled_release() - forget a socket
 * @sk: TCP socket that is about to be freed, or gets another congestion control
 */
void coupled_release(struct sock *sk)
{
	leave(sk);
}

static bool may_send(const struct sock *sk)
{
	return (1 << READ_ONCE(sk->sk_state)) & (TCPF_ESTABLISHED | TCPF_CLOSE_WAIT);
}

static void publish(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct coupled *ca = inet_csk_ca(sk);
	u32 rtt_us = tp->srtt_us >> 3;

	/* an RTT of less than a microsecond is not an unknown one */
	if (tp->srtt_us)
		rtt_us = clamp_t(u32, rtt_us, 1, COUPLED_RTT_MAX_US);
	ca->own.cwnd_packets = min_t(u32, tcp_snd_cwnd(tp), COUPLED_CWND_MAX);
	ca->own.rtt_us = rtt_us;
	ca->group->path[ca->slot] = ca->own;
}

/**
 * coupled_lock() - publish the numbers of a subflow, and lock those of all
 * @sk: TCP socket, locked
 *
 * Return: the group, locked, in which at least two subflows take part and @sk is
 * one of them; or NULL, nothing locked, when @sk is on its own.
 */
struct coupled_group *coupled_lock(struct sock *sk)
{
	struct coupled *ca = inet_csk_ca(sk);
	struct coupled_group *group;
	unsigned int i;

	if (!sk_is_mptcp(sk)) {
		leave(sk);
		return NULL;
	}
	if (!ca->group)
		join(sk);
	group = ca->group;
	if (!group)
		return NULL;

	spin_lock_bh(&group->lock);
	publish(sk);
	for (i = 0; i < group->slots; i++)
		if (group->sk[i] && !may_send(group->sk[i]))
			group->path[i].cwnd_packets = 0;
	if (coupled_counts(&group->path[ca->slot]) &&
	    coupled_count(group->path, group->slots) > 1)
		return group;
	spin_unlock_bh(&group->lock);
	return NULL;
}

/**
 * coupled_unlock() - unlock the numbers of all subflows
 * @group: what coupled_lock() returned, not NULL
 */
void coupled_unlock(struct coupled_group *group)
{
	spin_unlock_bh(&group->lock);
}

/**
 * coupled_set_state() - publish the window when a loss has changed it
 * @sk: TCP socket, locked
 * @new_state: as for tcp_congestion_ops.set_state
 */
void coupled_set_state(struct sock *sk, u8 new_state)
{
	struct coupled *ca = inet_csk_ca(sk);

	if (!ca->group)
		return;
	spin_lock_bh(&ca->group->lock);
	publish(sk);
	spin_unlock_bh(&ca->group->lock);
}

/* Add @growth per acknowledged packet, at most one; at least one packet stays. */
static void grow(struct sock *sk, s64 growth, u32 acked)
{
	struct coupled *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	s64 whole;

	ca->credit += growth * min_t(u32, acked, COUPLED_CWND_MAX);
	whole = ca->credit >> 32;	/* rounds down, also below zero */
	if (!whole)
		return;
	ca->credit -= whole * COUPLED_ONE;
	whole = max_t(s64, tcp_snd_cwnd(tp) + whole, 1);
	tcp_snd_cwnd_set(tp, min_t(s64, whole, tp->snd_cwnd_clamp));
}

/**
 * coupled_cong_avoid() - the callback cong_avoid of algorithms that are a formula
 * @sk: TCP socket, locked
 * @ack: acknowledged sequence number
 * @acked: packets that this ACK acknowledges
 * @formula: growth in congestion avoidance
 *
 * Slow start is TCP's own, as in all three sources.
 */
void coupled_cong_avoid(struct sock *sk, u32 ack, u32 acked,
			coupled_formula formula)
{
	struct coupled_group *group = coupled_lock(sk);
	const struct coupled *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	s64 growth;

	if (!group) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	growth = formula(group->path, group->slots, ca->slot);
	coupled_unlock(group);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	grow(sk, growth, acked);
}

/**
 * coupled_floor() - the smallest slow start threshold with several subflows
 *
 * Return: packets, at least 1.
 */
u32 coupled_floor(void)
{
	return max_t(u32, READ_ONCE(min_ssthresh_packets), 1);
}

/**
 * coupled_ssthresh() - Reno's halving, for a subflow that may be coupled
 * @sk: TCP socket, locked, which has seen a loss
 *
 * Return: the new slow start threshold, packets.
 */
u32 coupled_ssthresh(struct sock *sk)
{
	struct coupled *ca = inet_csk_ca(sk);
	struct coupled_group *group;

	ca->credit = 0;
	group = coupled_lock(sk);
	if (!group)
		return tcp_reno_ssthresh(sk);
	coupled_unlock(group);
	return max(tcp_snd_cwnd(tcp_sk(sk)) >> 1, coupled_floor());
}
