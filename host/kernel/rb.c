// SPDX-License-Identifier: GPL-2.0-only
/*
 * rb: MPTCP-RB, Multipath TCP with reduced burstiness.
 *
 * A scheduler may fill one subflow's window after the other. Then consecutive data
 * arrive out of order, and the receiver cannot acknowledge them until the first hole is
 * filled. It then acknowledges all at once, and the sender answers with a burst that
 * shallow switch buffers drop. rb interleaves consecutive packets over the subflows so
 * that they arrive in order. Every Data ACK then moves the window by one packet.
 *
 * The packet at position k of the data sequence goes to
 *
 *	sequence[k mod L]
 *
 * where the sequence (pattern.c) has gap_i = round(RTT_max / RTT_i) packets for
 * subflow i. It comes from, in this order:
 *
 *	controller	a PATTERN_SET for the destination that has not expired and
 *			has a path for each of the connection's subflows;
 *	local		the kernel's own smoothed RTTs;
 *	none		not all RTTs are known yet, so packets take turns.
 *
 * A packet that is short because the application paused takes a position like any
 * other. (Filling it up from the next write would make fewer packets. Incasts were
 * measurably longer with that: a drop took more of a subflow's window at once, and no
 * ACK was left to detect it.)
 *
 * The sequence is computed again every 10 ms, and at once when the controller writes, a
 * pattern expires, or a subflow comes or goes.
 *
 * Pre-allocation: the pattern also decides while the chosen subflow's congestion window
 * is full. The packet then waits in that subflow's queue. The connection waits only
 * when that queue has reached the subflow's send buffer. It does *not* use another
 * subflow with room, since that packet would arrive too early. A subflow that had a
 * retransmission timeout is not in the pattern until it has recovered (weft_usable()),
 * so that a dead path does not hold up the others.
 */
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include <net/tcp.h>

#include "rb.h"

/* How long a pattern from the kernel's RTTs is valid: the paper's 10 ms. */
static unsigned int rb_update_interval_ms = 10;
module_param(rb_update_interval_ms, uint, 0644);
MODULE_PARM_DESC(rb_update_interval_ms, "rb: a pattern from the kernel's RTTs is computed again after this long");

/* With a larger RTT ratio a slow subflow gets more than its share; the paper has no limit. */
static unsigned int rb_gap_max_packets = WEFT_SEQUENCE_MAX;
module_param(rb_gap_max_packets, uint, 0644);
MODULE_PARM_DESC(rb_gap_max_packets, "rb: maximum number of packets of a subflow in a pattern from the kernel's RTTs");

/*
 * Translate a pattern of paths into one of slots. The sequence leaves out paths without
 * a subflow. Returns its length; 0 when a subflow has no path of its own, or no
 * position is left.
 */
static unsigned int map_pattern(const struct weft_pattern *pattern,
				const struct weft_usable *usable,
				u32 *gap, u8 *sequence)
{
	int slot_of_path[WEFT_PATHS_MAX];
	unsigned int i, length = 0;

	for (i = 0; i < WEFT_PATHS_MAX; i++)
		slot_of_path[i] = -1;

	for (i = 0; i < usable->count; i++) {
		int path = weft_pattern_path(pattern,
					     mptcp_subflow_tcp_sock(usable->subflow[i]));

		if (path < 0 || slot_of_path[path] >= 0)
			return 0;
		slot_of_path[path] = usable->slot[i];
		gap[usable->slot[i]] = pattern->path[path].gap;
	}
	for (i = 0; i < pattern->length; i++) {
		int slot = slot_of_path[pattern->sequence[i]];

		if (slot >= 0)
			sequence[length++] = slot;
	}
	return length;
}

/* The controller's pattern, if there is one for all subflows. Returns its length or 0. */
static unsigned int from_controller(struct weft_rb *rb,
				    const struct weft_usable *usable, u64 now,
				    u32 *gap, u8 *sequence)
{
	const struct sock *ssk = mptcp_subflow_tcp_sock(usable->subflow[0]);
	struct weft_table *table = weft_table(sock_net(ssk));
	const struct weft_pattern *pattern;
	unsigned int length = 0;
	__be32 local, remote;

	weft_watch_begin(&rb->watch, table);
	if (!weft_endpoints(ssk, &local, &remote))
		return 0;

	rcu_read_lock();
	pattern = weft_table_find(table, remote, now, &rb->watch);
	if (pattern)
		length = map_pattern(pattern, usable, gap, sequence);
	if (length) {
		rb->version = pattern->version;
		rb->refresh_ns = min(rb->refresh_ns,
				     weft_pattern_expires_ns(pattern));
	}
	rcu_read_unlock();
	return length;
}

/* A pattern from the kernel's RTTs. Returns its length; 0 while an RTT is unknown. */
static unsigned int from_rtt(const struct weft_usable *usable,
			     u32 *gap, u8 *sequence)
{
	u32 member_gap[WEFT_PATHS_MAX];
	u64 rtt[WEFT_PATHS_MAX];
	unsigned int i, length;

	for (i = 0; i < usable->count; i++)
		rtt[i] = READ_ONCE(tcp_sk(mptcp_subflow_tcp_sock(usable->subflow[i]))->srtt_us);
	if (!weft_gaps(rtt, usable->count, member_gap))
		return 0;
	for (i = 0; i < usable->count; i++)
		member_gap[i] = min(member_gap[i], max(rb_gap_max_packets, 1U));

	length = weft_sequence(member_gap, usable->count, sequence);
	for (i = 0; i < length; i++)
		sequence[i] = usable->slot[sequence[i]];
	for (i = 0; i < usable->count; i++)
		gap[usable->slot[i]] = member_gap[i];
	return length;
}

static unsigned int take_turns(const struct weft_usable *usable,
			       u32 *gap, u8 *sequence)
{
	unsigned int i;

	for (i = 0; i < usable->count; i++) {
		sequence[i] = usable->slot[i];
		gap[usable->slot[i]] = 1;
	}
	return usable->count;
}

/*
 * Compute the sequence again. If the result is the same, the position stays, since the
 * data continue.
 */
static void refresh(struct weft_rb *rb, const struct weft_usable *usable,
		    u64 now)
{
	u8 sequence[WEFT_SEQUENCE_MAX];
	u32 gap[WEFT_PATHS_MAX] = { 0 };
	unsigned int length;

	rb->members = usable->members;
	rb->refresh_ns = now + (u64)rb_update_interval_ms * NSEC_PER_MSEC;
	rb->version = 0;

	rb->source = WEFT_SOURCE_CONTROLLER;
	length = from_controller(rb, usable, now, gap, sequence);
	if (!length) {
		rb->source = WEFT_SOURCE_LOCAL;
		memset(gap, 0, sizeof(gap));
		length = from_rtt(usable, gap, sequence);
	}
	if (!length) {
		rb->source = WEFT_SOURCE_NONE;
		length = take_turns(usable, gap, sequence);
	}

	memcpy(rb->gap, gap, sizeof(gap));
	if (length == rb->length && !memcmp(rb->sequence, sequence, length))
		return;
	memcpy(rb->sequence, sequence, length);
	rb->length = length;
	rb->position = 0;
}

static int weft_rb_get_send(struct mptcp_sock *msk)
{
	struct weft_usable usable;
	struct weft_rb *rb;
	unsigned int i;
	u64 now;

	if (!weft_usable(msk, &usable))
		return -EINVAL;
	rb = weft_state(msk, sizeof(*rb));
	if (!rb)
		return -ENOMEM;

	if (rb->slot_changes != weft_conn(msk)->slot_changes) {
		rb->slot_changes = weft_conn(msk)->slot_changes;
		rb->length = 0;
	}
	if (weft_account(msk) && ++rb->position >= rb->length)
		rb->position = 0;

	now = ktime_get_ns();
	if (!rb->length || rb->members != usable.members || now >= rb->refresh_ns ||
	    !weft_watch_is_current(&rb->watch, weft_table(sock_net((struct sock *)msk))))
		refresh(rb, &usable, now);

	for (i = 0; i < usable.count; i++)
		if (usable.slot[i] == rb->sequence[rb->position])
			break;
	if (WARN_ON_ONCE(i == usable.count))
		return -EINVAL;

	/* the subflow's queue is full: wait, the next ACK asks again */
	if (!sk_stream_memory_free(mptcp_subflow_tcp_sock(usable.subflow[i])))
		return -EAGAIN;
	return weft_grant(msk, usable.subflow[i], usable.slot[i], 1);
}

/**
 * weft_rb_state() - the pattern that a connection uses
 * @msk: connection, owned
 *
 * Return: rb's state; NULL while rb has not decided anything, or when another
 * scheduler decides.
 */
const struct weft_rb *weft_rb_state(const struct mptcp_sock *msk)
{
	return msk->sched == &weft_rb ? weft_peek_state(msk) : NULL;
}

WEFT_SCHED_CALLBACKS(weft_rb_get_send)

struct mptcp_sched_ops weft_rb = {
	WEFT_SCHED_OPS(weft_rb_get_send),
	.init		= weft_conn_init,
	.release	= weft_conn_release,
	.exact_burst	= true,
	.name		= "rb",
	.owner		= THIS_MODULE,
};
