// SPDX-License-Identifier: GPL-2.0
/*
 * weft: data wait in the connection, where they can still take any path, instead of
 * in a switch's queue, where they can be lost; and what is lost is sent again on
 * another path at once.
 *
 * Window. Each subflow has one beside that of its congestion control, which keeps the
 * queue on its path short, and gives way to it where others fill the queue
 * (weft_window.h). There one subflow at a time competes, so that the connection gets
 * what one TCP connection gets, whatever number of its subflows the bottleneck has
 * (goals 1 and 2 of RFC 6356, section 2). Connections with less left to send have larger
 * windows than those with more; to know what is left, send buffers are as large from the
 * start as tcp_wmem lets them become.
 *
 * Path. Of the subflows with room the packet takes that on which it arrives first
 * (weft_path.h).
 *
 * Rescue. When no Data ACK has moved the left edge for weft_rescue_ms and two round
 * trips, what lies there is sent again on another subflow, and so on for every hole
 * among the data that are as old; the core then asks anew where to put what waits,
 * which is not where no ACK has come for four round trips. TCP's own timeout is 200 ms,
 * and so is MPTCP's.
 *
 * Controller. Its patterns say what the network has measured of a path, with the queues
 * on it and without. A subflow that has not had an ACK of late goes by that, and one
 * whose path the controller has taken out gets nothing while there is another.
 */
#include <linux/moduleparam.h>
#include <linux/timer.h>
#include <net/tcp.h>

#include "weft.h"
#include "weft_path.h"

module_param(weft_first_window_packets, uint, 0644);
MODULE_PARM_DESC(weft_first_window_packets,
		 "weft: packets before the first ACK after an idle time (6)");
module_param(weft_queue_packets, uint, 0644);
MODULE_PARM_DESC(weft_queue_packets,
		 "weft: packets of a connection that may wait in queues (4)");
module_param(weft_even_kb, uint, 0644);
MODULE_PARM_DESC(weft_even_kb,
		 "weft: a connection with less left to send may have up to four times as much in queues, one with more down to half; 0: sizes do not count (4000)");
module_param(weft_slack_percent, uint, 0644);
MODULE_PARM_DESC(weft_slack_percent,
		 "weft: RTT beyond the lowest that is no queue yet, in percent of it, up to 100 us (50)");
module_param(weft_way_back, bool, 0644);
MODULE_PARM_DESC(weft_way_back,
		 "weft: queues that ACKs have met are none on the way of data (1)");
module_param(weft_patience_ms, uint, 0644);
MODULE_PARM_DESC(weft_patience_ms,
		 "weft: a queue that is never empty for so long is not ours alone (50)");

static unsigned int weft_rescue_ms = 5;
module_param(weft_rescue_ms, uint, 0644);
MODULE_PARM_DESC(weft_rescue_ms,
		 "weft: time without a Data ACK, beside two RTTs, until what is missing is sent again; 0: never (5)");

static bool weft_listen = true;
module_param(weft_listen, bool, 0644);
MODULE_PARM_DESC(weft_listen, "weft: go by what the controller says of paths (1)");

static bool weft_send_buffer = true;
module_param(weft_send_buffer, bool, 0644);
MODULE_PARM_DESC(weft_send_buffer,
		 "weft: send buffers are as large as tcp_wmem allows at once, unless SO_SNDBUF is set, so that it is known what is left to send (1)");

/**
 * struct weft_rescue - state of a connection, with what needs the kernel
 * @weft: first, what the decision keeps
 * @msk: the connection
 * @timer: looks after the left edge while data are unacknowledged
 * @moved: jiffies when the left edge moved last
 * @wait: jiffies without a Data ACK until the next rescue
 * @moved_nxt: what had been sent when the left edge moved last
 * @until_seq: a rescue goes on for holes up to here
 * @heard_until: jiffies until which @weft.told holds
 * @generation: of the controller's patterns behind it
 * @is_under_way: until the left edge has come to @until_seq
 * @is_due: the worker is to send what lies at the left edge
 */
struct weft_rescue {
	struct weft_weft	weft;
	struct mptcp_sock	*msk;
	struct timer_list	timer;
	unsigned long		moved;
	unsigned long		wait;
	u64			moved_nxt;
	u64			until_seq;
	unsigned long		heard_until;
	u32			generation;
	bool			is_under_way;
	bool			is_due;
};

static struct weft_rescue *rescue_of(struct mptcp_sock *msk)
{
	struct weft_conn *conn = weft_conn(msk);

	return conn ? conn->state : NULL;
}

/* How long no news is no bad news. */
static unsigned long patience(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;
	u32 srtt_us = 0;

	mptcp_for_each_subflow(msk, subflow)
		srtt_us = max(srtt_us,
			      READ_ONCE(tcp_sk(mptcp_subflow_tcp_sock(subflow))->srtt_us) >> 3);
	return msecs_to_jiffies(READ_ONCE(weft_rescue_ms)) +
	       usecs_to_jiffies(2 * srtt_us) + 1;
}

static void call_worker(struct weft_rescue *rescue)
{
	WRITE_ONCE(rescue->is_due, true);
	set_bit(MPTCP_WORK_RTX, &rescue->msk->flags);
	mptcp_schedule_work((struct sock *)rescue->msk);
}

static void on_timer(struct timer_list *timer)
{
	struct weft_rescue *rescue = container_of(timer, struct weft_rescue, timer);
	unsigned long due = READ_ONCE(rescue->moved) + READ_ONCE(rescue->wait);
	struct mptcp_sock *msk = rescue->msk;

	if (READ_ONCE(msk->snd_una) == READ_ONCE(msk->write_seq))
		return;
	if (time_before(jiffies, due)) {
		mod_timer(timer, due);
		return;
	}
	WRITE_ONCE(rescue->until_seq, READ_ONCE(rescue->moved_nxt));
	WRITE_ONCE(rescue->is_under_way, true);
	call_worker(rescue);
	/* TCP's own timeouts are about to take over */
	WRITE_ONCE(rescue->wait, min_t(unsigned long, 2 * rescue->wait, TCP_RTO_MAX));
	mod_timer(timer, jiffies + rescue->wait);
}

static void widen(struct sock *sk)
{
	int most = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_wmem[2]);

	if (READ_ONCE(sk->sk_sndbuf) < most)
		WRITE_ONCE(sk->sk_sndbuf, most);
}

/*
 * Let the application write all that it has: what it keeps can't be counted. A send buffer
 * otherwise grows with the congestion window, when a short flow is long over. That of a
 * connection is what its subflows have together (__mptcp_sync_sndbuf()).
 */
static void widen_buffers(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;
	struct sock *sk = (struct sock *)msk;

	if (!READ_ONCE(weft_send_buffer) || sk->sk_userlocks & SOCK_SNDBUF_LOCK)
		return;
	widen(sk);
	mptcp_for_each_subflow(msk, subflow)
		widen(mptcp_subflow_tcp_sock(subflow));
}

static u32 told_us(u64 ns)
{
	return min_t(u64, div_u64(ns, NSEC_PER_USEC), U32_MAX);
}

/* What the controller says of one subflow's path; RCU read section. */
static void hear(struct weft_rescue *rescue, const struct sock *ssk, int slot)
{
	const struct weft_table *table = weft_table(sock_net(ssk));
	struct weft_path_state *state = &rescue->weft.path[slot];
	struct weft_told *told = &rescue->weft.told;
	const struct weft_pattern *pattern;
	u64 now_ns = ktime_get_ns();
	__be32 local, remote;
	unsigned long until;
	int path;

	told->slots |= BIT(slot);
	if (!weft_ends(ssk, &local, &remote))
		return;
	pattern = weft_table_find(table, remote, now_ns);
	if (!pattern)
		return;
	path = weft_pattern_path(pattern, ssk);
	if (path < 0)
		return;
	state->told_rtt_us = told_us(pattern->path[path].rtt_ns);
	state->told_lowest_us = told_us(pattern->path[path].lowest_rtt_ns);
	state->wait_unit_ns = pattern->wait_unit_ns;
	if (!pattern->path[path].gap)
		told->out |= BIT(slot);
	until = jiffies + nsecs_to_jiffies(min_t(u64, weft_pattern_dies_ns(pattern) - now_ns,
						 NSEC_PER_SEC));
	if (time_before(until, rescue->heard_until))
		rescue->heard_until = until;
}

static void forget(struct weft_path_state *path)
{
	path->told_rtt_us = 0;
	path->told_lowest_us = 0;
	path->wait_unit_ns = 0;
}

/* Ask the controller's patterns again, when they or the subflows may have changed. */
static void listen(struct weft_rescue *rescue, struct mptcp_sock *msk)
{
	u32 generation = READ_ONCE(weft_table(sock_net((struct sock *)msk))->generation);
	struct weft_told *told = &rescue->weft.told;
	struct mptcp_subflow_context *subflow;
	unsigned int i;

	if (!told->is_wanted && generation == rescue->generation &&
	    time_before(jiffies, rescue->heard_until))
		return;
	memset(told, 0, sizeof(*told));
	for (i = 0; i < WEFT_PATHS_MAX; i++)
		forget(&rescue->weft.path[i]);
	rescue->generation = generation;
	rescue->heard_until = jiffies + HZ;
	if (!READ_ONCE(weft_listen)) {
		told->slots = U32_MAX;
		return;
	}
	rcu_read_lock();
	mptcp_for_each_subflow(msk, subflow) {
		int slot = weft_slot(weft_conn(msk), subflow);

		if (slot >= 0)
			hear(rescue, mptcp_subflow_tcp_sock(subflow), slot);
	}
	rcu_read_unlock();
}

static int weft_weft_get_send(struct mptcp_sock *msk)
{
	struct weft_rescue *rescue = rescue_of(msk);
	int err;

	if (rescue) {
		/* of a new subflow, too */
		if (rescue->weft.told.is_wanted)
			widen_buffers(msk);
		listen(rescue, msk);
	}
	err = weft_send_packet(msk, sizeof(*rescue), weft_weft_choose);
	rescue = rescue_of(msk);
	if ((err && err != -EAGAIN) || !rescue || !READ_ONCE(weft_rescue_ms))
		return err;
	if (!rescue->msk) {
		rescue->msk = msk;
		timer_setup(&rescue->timer, on_timer, 0);
	}
	if (!timer_pending(&rescue->timer)) {
		rescue->moved = jiffies;
		rescue->moved_nxt = READ_ONCE(msk->snd_nxt);
		rescue->wait = patience(msk);
		mod_timer(&rescue->timer, jiffies + rescue->wait);
	}
	return err;
}

/* How long a packet has waited on its way here, as switches have written into it. */
static u32 waited(const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IPV6))
		return be32_to_cpu(ip6_flowlabel(ipv6_hdr(skb)));
	return be16_to_cpu(ip_hdr(skb)->id);
}

/* Switches write into ACKs without data. */
static void note_wait(const struct weft_conn *conn, const struct sock *ssk,
		      const struct sk_buff *skb)
{
	bool has_data = TCP_SKB_CB(skb)->seq != TCP_SKB_CB(skb)->end_seq;
	struct weft_rescue *rescue = conn->state;
	int slot = weft_slot(conn, mptcp_subflow_ctx(ssk));

	if (slot >= 0)
		WRITE_ONCE(rescue->weft.path[slot].waited, has_data ? 0 : waited(skb));
}

static void weft_weft_data_acked(struct mptcp_sock *msk, struct sock *ssk,
				 const struct sk_buff *skb, u64 snd_una)
{
	struct weft_rescue *rescue = rescue_of(msk);

	weft_data_acked(msk, ssk, skb, snd_una);
	if (rescue)
		note_wait(weft_conn(msk), ssk, skb);
	if (!rescue || !rescue->msk || !after64(snd_una, msk->snd_una))
		return;
	WRITE_ONCE(rescue->moved, jiffies);
	WRITE_ONCE(rescue->moved_nxt, READ_ONCE(msk->snd_nxt));
	/* the next hole of those that a rescue began with */
	if (READ_ONCE(rescue->is_under_way) &&
	    before64(snd_una, READ_ONCE(rescue->until_seq))) {
		call_worker(rescue);
		return;
	}
	WRITE_ONCE(rescue->is_under_way, false);
	if (!sock_owned_by_user((struct sock *)msk))
		WRITE_ONCE(rescue->wait, patience(msk));
}

/* The fastest subflow with room, not the one that holds the left edge. */
static struct mptcp_subflow_context *helper(struct mptcp_sock *msk, int blocker)
{
	struct mptcp_subflow_context *subflow, *best = NULL;
	u32 best_rtt = 0;

	mptcp_for_each_subflow(msk, subflow) {
		const struct sock *ssk = mptcp_subflow_tcp_sock(subflow);
		u32 rtt = READ_ONCE(tcp_sk(ssk)->srtt_us);

		if (weft_rank(subflow) > WEFT_RANK_REGULAR ||
		    weft_slot(weft_conn(msk), subflow) == blocker ||
		    !weft_window_space(ssk))
			continue;
		if (!best || rtt < best_rtt) {
			best = subflow;
			best_rtt = rtt;
		}
	}
	return best;
}

static int weft_weft_get_retrans(struct mptcp_sock *msk)
{
	struct weft_rescue *rescue = rescue_of(msk);
	struct mptcp_subflow_context *best;

	if (!rescue || !rescue->is_due)
		return weft_get_retrans(msk);
	rescue->is_due = false;
	best = helper(msk, weft_trail_find(&rescue->weft.trail,
					   READ_ONCE(msk->snd_una)));
	if (!best)
		return -EAGAIN;
	/* the receiver may delay the ACK of a single one by 40 ms */
	msk->rtx_burst = 2 * weft_packet_payload(mptcp_subflow_tcp_sock(best));
	mptcp_subflow_set_scheduled(best, true);
	return 0;
}

static void weft_weft_release(struct mptcp_sock *msk)
{
	struct weft_rescue *rescue = rescue_of(msk);

	if (rescue && rescue->msk)
		timer_shutdown_sync(&rescue->timer);
	weft_conn_release(msk);
}

WEFT_SCHED_CALLBACKS_RETRANS(weft_weft_get_send, weft_weft_get_retrans)

struct mptcp_sched_ops weft_weft = {
	WEFT_SCHED_OPS_RETRANS(weft_weft_get_send, weft_weft_get_retrans),
	.init		= weft_conn_init,
	.release	= weft_weft_release,
	.data_acked	= weft_weft_data_acked,
	.exact_burst	= true,
	.name		= "weft",
	.owner		= THIS_MODULE,
};
