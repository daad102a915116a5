// SPDX-License-Identifier: GPL-2.0-only
/*
 * weft: data wait in the connection, where they can still take any path. In a
 * switch's queue they could not, and might be dropped. Lost data are sent again on
 * another path at once.
 *
 * Window (weft_window.c). Each subflow has one beside its congestion window. It keeps
 * the queue on the subflow's path short. Connections with less data left have larger
 * windows (weft_size.c). To know what is left, the scheduler lets send buffers be as
 * large as tcp_wmem allows from the start (weft_buffer.c). Where other traffic fills the
 * queue and does not give way (weft_contention.c), only the congestion window counts: a
 * connection then gets what it would get with upstream's scheduler. To take no more than
 * one TCP connection at a shared bottleneck, use a coupled congestion control
 * (congestion/).
 *
 * Path (weft_choose.c). Of the subflows with room, a packet takes the one on which it
 * arrives first. Where queues are long, a connection uses only some of its subflows
 * (weft_crowd.c).
 *
 * Rescue (weft_rescue.c). What a subflow holds up without getting anything through is
 * sent again on another one, after milliseconds.
 *
 * Controller. Its patterns say what the network has measured of a path, with queues
 * and without. A subflow that has had no ACK recently goes by that. A subflow whose
 * path the controller excludes gets nothing while there is another.
 */
#include <linux/moduleparam.h>
#include <net/tcp.h>

#include "weft.h"
#include "weft_buffer.h"
#include "weft_rescue.h"
#include "weft_sched.h"

static bool weft_listen = true;
module_param(weft_listen, bool, 0644);
MODULE_PARM_DESC(weft_listen, "weft: use what the controller says about paths (1)");

/*
 * What a subflow of a large connection gets at once beside other traffic: three times
 * the limit of upstream's scheduler (MPTCP_SEND_BURST_SIZE), which looks at that only
 * between fragments and so exceeds it. With 1, 2, 3, 4 times, a connection over BBR gets
 * 0.85, 0.91, 1.0, 1.08 of what upstream's gets in a queue of its host.
 */
#define BURST_BYTES	(3 * (64 * 1024 - 40 - 68))

/*
 * Timeouts in a row after which other subflows carry the data instead. Where packets wait
 * long behind those of others, the first ones are often wrong, and a window on another
 * subflow would wait as long. Links that have failed are weft_rescue.c's.
 */
#define TAKEOVER_TIMEOUTS	3

/*
 * What the controller has measured of queues is outdated after this time; a pattern that is only
 * renewed is older. New connections know nothing else of their paths, and their handshake does
 * not wait in queues where switches serve classes. All would take the path that once had the
 * shortest queue, and keep it full: with 17 kB flows at a load of 0.7 and 100 Mbit/s they took 2
 * to 4 times as long. After 10 ms already, some mixes without classes took up to a fifth longer.
 */
#define QUEUES_LIFE_NS	(200 * NSEC_PER_MSEC)

/**
 * struct weft_sched_conn - state of a connection
 * @sched: what the decision needs; first, since the decision gets a pointer to it
 * @rescue: sends missing data again
 * @advice_expires: jiffies until which @sched.advice is valid
 * @watch: whether the pattern table has something new
 */
struct weft_sched_conn {
	struct weft_sched	sched;
	struct weft_rescue	rescue;
	unsigned long		advice_expires;
	struct weft_watch	watch;
};

static u32 ns_to_us(u64 ns)
{
	return min_t(u64, div_u64(ns, NSEC_PER_USEC), U32_MAX);
}

/* Look up what the controller says about one subflow's path; RCU read section. */
static void look_up_path(struct weft_sched_conn *conn, const struct sock *ssk, int slot)
{
	struct weft_table *table = weft_table(sock_net(ssk));
	struct weft_window *window = &conn->sched.window[slot];
	struct weft_advice *advice = &conn->sched.advice;
	const struct weft_pattern *pattern;
	u64 now_ns = ktime_get_ns();
	__be32 local, remote;
	unsigned long expires;
	u64 expires_ns;
	int path;

	advice->known |= BIT(slot);
	if (!weft_endpoints(ssk, &local, &remote))
		return;
	pattern = weft_table_find(table, remote, now_ns, &conn->watch);
	if (!pattern)
		return;
	path = weft_pattern_path(pattern, ssk);
	if (path < 0)
		return;
	expires_ns = weft_pattern_expires_ns(pattern);
	if (now_ns - pattern->decided_ns < QUEUES_LIFE_NS) {
		window->controller_rtt_us = ns_to_us(pattern->path[path].rtt_ns);
		expires_ns = min(expires_ns, pattern->decided_ns + QUEUES_LIFE_NS);
	}
	window->controller_min_rtt_us = ns_to_us(pattern->path[path].lowest_rtt_ns);
	window->ack_wait_unit_ns = pattern->wait_unit_ns;
	if (!pattern->path[path].gap)
		advice->excluded |= BIT(slot);
	expires = jiffies + nsecs_to_jiffies(min_t(u64, expires_ns - now_ns,
						   NSEC_PER_SEC));
	if (time_before(expires, conn->advice_expires))
		conn->advice_expires = expires;
}

static void forget_path(struct weft_window *window)
{
	window->controller_rtt_us = 0;
	window->controller_min_rtt_us = 0;
	window->ack_wait_unit_ns = 0;
}

/* Look the controller's patterns up again when they or the subflows may have changed. */
static void refresh_advice(struct weft_sched_conn *conn, struct mptcp_sock *msk)
{
	const struct weft_table *table = weft_table(sock_net((struct sock *)msk));
	struct weft_advice *advice = &conn->sched.advice;
	struct mptcp_subflow_context *subflow;
	unsigned int i;

	if (!advice->is_incomplete && weft_watch_is_current(&conn->watch, table) &&
	    time_before(jiffies, conn->advice_expires))
		return;
	memset(advice, 0, sizeof(*advice));
	for (i = 0; i < WEFT_PATHS_MAX; i++)
		forget_path(&conn->sched.window[i]);
	weft_watch_begin(&conn->watch, table);
	conn->advice_expires = jiffies + HZ;
	if (!READ_ONCE(weft_listen)) {
		advice->known = U32_MAX;
		return;
	}
	rcu_read_lock();
	mptcp_for_each_subflow(msk, subflow) {
		int slot = weft_slot(weft_conn(msk), subflow);

		if (slot >= 0)
			look_up_path(conn, mptcp_subflow_tcp_sock(subflow), slot);
	}
	rcu_read_unlock();
}

static struct mptcp_subflow_context *picked_subflow(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;

	mptcp_for_each_subflow(msk, subflow)
		if (weft_slot(weft_conn(msk), subflow) == weft_conn(msk)->picked)
			return subflow;
	return NULL;
}

/* Whether it is this host that limits the rate: its queue, or a sender that is paced. */
static bool waits_in_host(const struct sock *ssk)
{
	return test_bit(TSQ_THROTTLED, &ssk->sk_tsq_flags) ||
	       READ_ONCE(ssk->sk_pacing_status) != SK_PACING_NONE;
}

/*
 * Beside other traffic, decide about many packets at once, as upstream's scheduler does.
 * A burst takes a larger part of a queue than the same packets one by one, which find it
 * full. And TCP small queues lets a socket have two buffers in the host's own queue: of
 * one packet each, or of 64 kB as those of other sockets. Only where the host limits the
 * rate is that worth it for a connection with little left, whose bursts would delay
 * others of its size.
 */
static void extend_decision(struct weft_sched_conn *conn, struct mptcp_sock *msk)
{
	u8 slot = weft_conn(msk)->picked;
	const struct weft_window *window = &conn->sched.window[slot];
	struct mptcp_subflow_context *subflow;

	if (weft_window_counts(window))
		return;
	subflow = picked_subflow(msk);
	if (subflow && (window->weight == WEFT_WEIGHT_MIN ||
			waits_in_host(mptcp_subflow_tcp_sock(subflow))))
		weft_grant(msk, subflow, slot, BURST_BYTES);
}

static int weft_sched_get_send(struct mptcp_sock *msk)
{
	bool was_idle = weft_snd_una(msk) == msk->snd_nxt;
	struct weft_sched_conn *conn = weft_peek_state(msk);
	int err;

	if (conn) {
		/* a new subflow has a buffer of its own */
		if (conn->sched.advice.is_incomplete)
			weft_raise_send_buffers(msk);
		refresh_advice(conn, msk);
	}
	err = weft_send_packet(msk, sizeof(*conn), weft_sched_choose);
	conn = weft_peek_state(msk);
	if ((err && err != -EAGAIN) || !conn)
		return err;
	weft_conn(msk)->takeover_timeouts = TAKEOVER_TIMEOUTS;
	if (!err)
		extend_decision(conn, msk);
	weft_rescue_data_sent(&conn->rescue, msk, was_idle,
			      weft_size_written(&conn->sched.size));
	return err;
}

/* What switches have written into a packet: how long it waited on its way here. */
static u32 ack_wait(const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IPV6))
		return be32_to_cpu(ip6_flowlabel(ipv6_hdr(skb)));
	return be16_to_cpu(ip_hdr(skb)->id);
}

/* Switches write only into ACKs without data. */
static void note_ack_wait(struct weft_sched_conn *conn, struct mptcp_sock *msk,
			  const struct sock *ssk, const struct sk_buff *skb)
{
	bool has_data = TCP_SKB_CB(skb)->seq != TCP_SKB_CB(skb)->end_seq;
	int slot = weft_slot(weft_conn(msk), mptcp_subflow_ctx(ssk));

	if (slot >= 0)
		WRITE_ONCE(conn->sched.window[slot].ack_wait,
			   has_data ? 0 : ack_wait(skb));
}

static void weft_sched_data_acked(struct mptcp_sock *msk, struct sock *ssk,
				  const struct sk_buff *skb, u64 snd_una)
{
	struct weft_sched_conn *conn = weft_peek_state(msk);

	weft_data_acked(msk, ssk, skb, snd_una);
	if (conn) {
		note_ack_wait(conn, msk, ssk, skb);
		weft_rescue_data_acked(&conn->rescue, msk, snd_una);
	}
}

static int weft_sched_get_retrans(struct mptcp_sock *msk)
{
	struct weft_sched_conn *conn = weft_peek_state(msk);
	int blocking_slot;

	if (!conn)
		return weft_get_retrans(msk);
	blocking_slot = weft_sched_carrier(&conn->sched, weft_snd_una(msk),
					   weft_conn(msk)->picked);
	return weft_rescue_get_retrans(&conn->rescue, msk, blocking_slot);
}

static void weft_sched_release(struct mptcp_sock *msk)
{
	struct weft_sched_conn *conn = weft_peek_state(msk);

	if (conn)
		weft_rescue_end(&conn->rescue);
	weft_conn_release(msk);
}

WEFT_SCHED_CALLBACKS_RETRANS(weft_sched_get_send, weft_sched_get_retrans)

struct mptcp_sched_ops weft_sched = {
	WEFT_SCHED_OPS_RETRANS(weft_sched_get_send, weft_sched_get_retrans),
	.init		= weft_conn_init,
	.release	= weft_sched_release,
	.data_acked	= weft_sched_data_acked,
	.exact_burst	= true,
	.name		= "weft",
	.owner		= THIS_MODULE,
};
