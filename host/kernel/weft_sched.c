// SPDX-License-Identifier: GPL-2.0-only
/*
 * weft: data wait in the connection, where they can still take any path. In a
 * switch's queue they could not, and might be dropped. Lost data are sent again on
 * another path at once.
 *
 * Window (weft_window.c). Each subflow has one beside its congestion window. It keeps
 * the queue on the subflow's path short, except where other traffic fills that queue
 * and does not give way. There one subflow at a time competes, so that the connection
 * gets what one TCP connection gets, however many of its subflows share the bottleneck
 * (goals 1 and 2 of RFC 6356, section 2). Connections with less data left have larger
 * windows. To know what is left, the scheduler lets send buffers be as large as
 * tcp_wmem allows from the start.
 *
 * Path (weft_choose.c). Of the subflows with room, a packet takes the one on which it
 * arrives first.
 *
 * Rescue. When the left edge of the send window has not moved for weft_rescue_ms and
 * two round trips, the data there are sent again on another subflow. The same follows
 * for every other hole among the data that had been sent by then. Meanwhile a subflow
 * without an ACK for four round trips gets no new data. TCP's own timeout is 200 ms at
 * least, and so is MPTCP's.
 *
 * Controller. Its patterns say what the network has measured of a path, with queues
 * and without. A subflow that has had no ACK recently goes by that. A subflow whose
 * path the controller excludes gets nothing while there is another.
 */
#include <linux/moduleparam.h>
#include <linux/timer.h>
#include <net/tcp.h>

#include "weft.h"
#include "weft_sched.h"

static unsigned int weft_rescue_ms = 5;
module_param(weft_rescue_ms, uint, 0644);
MODULE_PARM_DESC(weft_rescue_ms,
		 "weft: time without a Data ACK, on top of two RTTs, after which missing data are sent again; 0: never (5)");

static bool weft_listen = true;
module_param(weft_listen, bool, 0644);
MODULE_PARM_DESC(weft_listen, "weft: use what the controller says about paths (1)");

static bool weft_send_buffer = true;
module_param(weft_send_buffer, bool, 0644);
MODULE_PARM_DESC(weft_send_buffer,
		 "weft: send buffers are as large as tcp_wmem allows from the start, unless SO_SNDBUF is set, so that the data left to send are known (1)");

/**
 * struct weft_sched_conn - state of a connection
 * @sched: what the decision needs; first, since the decision gets a pointer to it
 * @msk: the connection; NULL while @timer is not set up
 * @timer: checks the left edge while data are unacknowledged
 * @una_jiffies: jiffies when the left edge last moved
 * @timeout: jiffies without a Data ACK until the next rescue
 * @sent_seq: end of the data that had been sent when the left edge last moved
 * @rescue_end_seq: a rescue goes on for holes before this
 * @advice_expires: jiffies until which @sched.advice is valid
 * @generation: of the pattern table when @sched.advice was looked up
 * @is_rescuing: until the left edge reaches @rescue_end_seq
 * @is_due: the worker has to reinject the data at the left edge
 */
struct weft_sched_conn {
	struct weft_sched	sched;
	struct mptcp_sock	*msk;
	struct timer_list	timer;
	unsigned long		una_jiffies;
	unsigned long		timeout;
	u64			sent_seq;
	u64			rescue_end_seq;
	unsigned long		advice_expires;
	u32			generation;
	bool			is_rescuing;
	bool			is_due;
};

static struct weft_sched_conn *sched_conn(struct mptcp_sock *msk)
{
	struct weft_conn *conn = weft_conn(msk);

	return conn ? conn->state : NULL;
}

/* How long the left edge may stay where it is before data count as missing. */
static unsigned long rescue_timeout(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;
	u32 srtt_us = 0;

	mptcp_for_each_subflow(msk, subflow)
		srtt_us = max(srtt_us,
			      READ_ONCE(tcp_sk(mptcp_subflow_tcp_sock(subflow))->srtt_us) >> 3);
	return msecs_to_jiffies(READ_ONCE(weft_rescue_ms)) +
	       usecs_to_jiffies(2 * srtt_us) + 1;
}

static void call_worker(struct weft_sched_conn *conn)
{
	WRITE_ONCE(conn->is_due, true);
	set_bit(MPTCP_WORK_RTX, &conn->msk->flags);
	mptcp_schedule_work((struct sock *)conn->msk);
}

static void on_timer(struct timer_list *timer)
{
	struct weft_sched_conn *conn = container_of(timer, struct weft_sched_conn, timer);
	unsigned long due = READ_ONCE(conn->una_jiffies) + READ_ONCE(conn->timeout);
	struct mptcp_sock *msk = conn->msk;

	if (READ_ONCE(msk->snd_una) == READ_ONCE(msk->write_seq))
		return;
	if (time_before(jiffies, due)) {
		mod_timer(timer, due);
		return;
	}
	WRITE_ONCE(conn->rescue_end_seq, READ_ONCE(conn->sent_seq));
	WRITE_ONCE(conn->is_rescuing, true);
	call_worker(conn);
	/* TCP's own timeouts are about to take over */
	WRITE_ONCE(conn->timeout, min_t(unsigned long, 2 * conn->timeout, TCP_RTO_MAX));
	mod_timer(timer, jiffies + conn->timeout);
}

static void raise_sndbuf(struct sock *sk)
{
	int most = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_wmem[2]);

	if (READ_ONCE(sk->sk_sndbuf) < most)
		WRITE_ONCE(sk->sk_sndbuf, most);
}

/*
 * Let the application write all its data, since data that it keeps cannot be counted.
 * A send buffer otherwise grows with the congestion window, which comes too late for a
 * short flow. The buffer of a connection is the sum of those of its subflows
 * (__mptcp_sync_sndbuf()).
 */
static void raise_send_buffers(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;
	struct sock *sk = (struct sock *)msk;

	if (!READ_ONCE(weft_send_buffer) || sk->sk_userlocks & SOCK_SNDBUF_LOCK)
		return;
	raise_sndbuf(sk);
	mptcp_for_each_subflow(msk, subflow)
		raise_sndbuf(mptcp_subflow_tcp_sock(subflow));
}

static u32 ns_to_us(u64 ns)
{
	return min_t(u64, div_u64(ns, NSEC_PER_USEC), U32_MAX);
}

/* Look up what the controller says about one subflow's path; RCU read section. */
static void look_up_path(struct weft_sched_conn *conn, const struct sock *ssk, int slot)
{
	const struct weft_table *table = weft_table(sock_net(ssk));
	struct weft_window *window = &conn->sched.window[slot];
	struct weft_advice *advice = &conn->sched.advice;
	const struct weft_pattern *pattern;
	u64 now_ns = ktime_get_ns();
	__be32 local, remote;
	unsigned long expires;
	int path;

	advice->known |= BIT(slot);
	if (!weft_endpoints(ssk, &local, &remote))
		return;
	pattern = weft_table_find(table, remote, now_ns);
	if (!pattern)
		return;
	path = weft_pattern_path(pattern, ssk);
	if (path < 0)
		return;
	window->controller_rtt_us = ns_to_us(pattern->path[path].rtt_ns);
	window->controller_min_rtt_us = ns_to_us(pattern->path[path].lowest_rtt_ns);
	window->ack_wait_unit_ns = pattern->wait_unit_ns;
	if (!pattern->path[path].gap)
		advice->excluded |= BIT(slot);
	expires = jiffies + nsecs_to_jiffies(min_t(u64, weft_pattern_expires_ns(pattern) - now_ns,
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
	u32 generation = READ_ONCE(weft_table(sock_net((struct sock *)msk))->generation);
	struct weft_advice *advice = &conn->sched.advice;
	struct mptcp_subflow_context *subflow;
	unsigned int i;

	if (!advice->is_incomplete && generation == conn->generation &&
	    time_before(jiffies, conn->advice_expires))
		return;
	memset(advice, 0, sizeof(*advice));
	for (i = 0; i < WEFT_PATHS_MAX; i++)
		forget_path(&conn->sched.window[i]);
	conn->generation = generation;
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

static int weft_sched_get_send(struct mptcp_sock *msk)
{
	struct weft_sched_conn *conn = sched_conn(msk);
	int err;

	if (conn) {
		/* a new subflow has a buffer of its own */
		if (conn->sched.advice.is_incomplete)
			raise_send_buffers(msk);
		refresh_advice(conn, msk);
	}
	err = weft_send_packet(msk, sizeof(*conn), weft_sched_choose);
	conn = sched_conn(msk);
	if ((err && err != -EAGAIN) || !conn || !READ_ONCE(weft_rescue_ms))
		return err;
	if (!conn->msk) {
		conn->msk = msk;
		timer_setup(&conn->timer, on_timer, 0);
	}
	if (!timer_pending(&conn->timer)) {
		conn->una_jiffies = jiffies;
		conn->sent_seq = READ_ONCE(msk->snd_nxt);
		conn->timeout = rescue_timeout(msk);
		mod_timer(&conn->timer, jiffies + conn->timeout);
	}
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
static void note_ack_wait(const struct weft_conn *conn, const struct sock *ssk,
			  const struct sk_buff *skb)
{
	bool has_data = TCP_SKB_CB(skb)->seq != TCP_SKB_CB(skb)->end_seq;
	struct weft_sched_conn *state = conn->state;
	int slot = weft_slot(conn, mptcp_subflow_ctx(ssk));

	if (slot >= 0)
		WRITE_ONCE(state->sched.window[slot].ack_wait,
			   has_data ? 0 : ack_wait(skb));
}

static void weft_sched_data_acked(struct mptcp_sock *msk, struct sock *ssk,
				  const struct sk_buff *skb, u64 snd_una)
{
	struct weft_sched_conn *conn = sched_conn(msk);

	weft_data_acked(msk, ssk, skb, snd_una);
	if (conn)
		note_ack_wait(weft_conn(msk), ssk, skb);
	if (!conn || !conn->msk || !after64(snd_una, msk->snd_una))
		return;
	WRITE_ONCE(conn->una_jiffies, jiffies);
	WRITE_ONCE(conn->sent_seq, READ_ONCE(msk->snd_nxt));
	/* the left edge is at the next hole that the rescue is for */
	if (READ_ONCE(conn->is_rescuing) &&
	    before64(snd_una, READ_ONCE(conn->rescue_end_seq))) {
		call_worker(conn);
		return;
	}
	WRITE_ONCE(conn->is_rescuing, false);
	if (!sock_owned_by_user((struct sock *)msk))
		WRITE_ONCE(conn->timeout, rescue_timeout(msk));
}

/* The fastest subflow with room, except the one that holds up the left edge. */
static struct mptcp_subflow_context *rescue_target(struct mptcp_sock *msk,
						   int blocking_slot)
{
	struct mptcp_subflow_context *subflow, *best = NULL;
	u32 best_rtt = 0;

	mptcp_for_each_subflow(msk, subflow) {
		const struct sock *ssk = mptcp_subflow_tcp_sock(subflow);
		u32 rtt = READ_ONCE(tcp_sk(ssk)->srtt_us);

		if (weft_rank(subflow) > WEFT_RANK_REGULAR ||
		    weft_slot(weft_conn(msk), subflow) == blocking_slot ||
		    !weft_window_space(ssk))
			continue;
		if (!best || rtt < best_rtt) {
			best = subflow;
			best_rtt = rtt;
		}
	}
	return best;
}

static int weft_sched_get_retrans(struct mptcp_sock *msk)
{
	struct weft_sched_conn *conn = sched_conn(msk);
	struct mptcp_subflow_context *best;

	if (!conn || !conn->is_due)
		return weft_get_retrans(msk);
	conn->is_due = false;
	best = rescue_target(msk, weft_seq_map_find(&conn->sched.seq_map,
						    READ_ONCE(msk->snd_una)));
	if (!best)
		return -EAGAIN;
	/* the receiver may delay the ACK of a single packet by 40 ms */
	msk->rtx_burst = 2 * weft_packet_payload(mptcp_subflow_tcp_sock(best));
	mptcp_subflow_set_scheduled(best, true);
	return 0;
}

static void weft_sched_release(struct mptcp_sock *msk)
{
	struct weft_sched_conn *conn = sched_conn(msk);

	if (conn && conn->msk)
		timer_shutdown_sync(&conn->timer);
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
