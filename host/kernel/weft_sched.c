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
 * (goals 1 and 2 of RFC 6356, section 2).
 *
 * Path. Of the subflows with room the packet takes that on which it arrives first,
 *
 *	rtt / 2 + under_way rtt / window
 *
 * (rtt / 2 without what ACKs wait), unless so little is left to send that the fastest
 * would be done with it before, as in ecf. No packet waits because it might block the
 * send window, as in blest: that is short while it grows, and paths then stay idle.
 *
 * Rescue. When no Data ACK has moved the left edge for weft_rescue_ms and two round
 * trips, what lies there is sent again on another subflow, and so on for every hole
 * among the data that are as old; the core then asks anew where to put what waits,
 * which is not where no ACK has come for four round trips. TCP's own timeout is 200 ms,
 * and so is MPTCP's.
 *
 * Controller. Its patterns say what the network has measured of a path, with the queues
 * on it and without. A subflow that has not had an ACK of late goes by that, and one whose path the
 * controller has taken out gets nothing while there is another.
 */
#include "view.h"
#include "trail.h"
#include "weft_window.h"

/**
 * struct weft_told - what the controller says of the connection's paths, but for their
 *	RTTs, which are in struct weft_path_state
 * @slots: those that were asked for
 * @out: those whose paths are not to be used, as when a switch has failed
 * @is_wanted: there is a subflow that was not asked for yet
 */
struct weft_told {
	u32	slots;
	u32	out;
	bool	is_wanted;
};

/**
 * struct weft_weft - state of a connection
 * @told: by the controller
 * @path: by slot
 * @trail: which subflow has carried what
 * @last_seq: data sequence at the decision before
 * @competitor: slot plus one of the subflow that competes with others for a queue
 * @is_started: whether @last_seq is valid
 */
struct weft_weft {
	struct weft_told	told;
	struct weft_path_state	path[WEFT_PATHS_MAX];
	struct weft_trail	trail;
	u64			last_seq;
	u8			competitor;
	bool			is_started;
};

/* The subflow that competes: one, as long as there is need, the one that gets most. */
static void choose_competitor(struct weft_weft *weft, const struct weft_view *view,
			      unsigned int n, u64 now_us)
{
	u64 best_rate = 0;
	unsigned int i;

	if (weft->competitor &&
	    weft_find(view, n, weft->competitor - 1) >= 0 &&
	    is_contested(&weft->path[weft->competitor - 1], now_us))
		return;
	weft->competitor = 0;
	for (i = 0; i < n; i++) {
		u64 rate = div64_u64((u64)view[i].cwnd_packets << 20,
				     max(view[i].srtt_us, 1U));

		if (!is_contested(&weft->path[view[i].slot], now_us) ||
		    rate <= best_rate)
			continue;
		best_rate = rate;
		weft->competitor = view[i].slot + 1;
	}
}

/*
 * Whether one more packet may join those that a subflow has under way. Nagle's
 * algorithm would keep a short one until the one before is acknowledged, and the
 * receiver may delay that.
 */
static bool may_take(struct weft_weft *weft, const struct weft_view *view,
		     const struct weft_outlook *outlook)
{
	struct weft_path_state *path = &weft->path[view->slot];
	u32 packets = under_way(view);

	if (!view->space_bytes ||
	    (view->keeps_short && outlook->unsent_bytes < view->payload_bytes))
		return false;
	if (view->slot + 1 == weft->competitor || !packets)
		return true;
	if (packets * WEFT_WINDOW_UNIT < path->window)
		return !is_contested(path, outlook->now_us);
	path->is_limited = true;
	return false;
}

/* When a packet would arrive, in microseconds from now. */
static u64 arrival_us(const struct weft_path_state *path,
		      const struct weft_view *view)
{
	u64 rtt_us = standing_rtt_us(path, view);

	return (rtt_us - path->back_us) / 2 +
	       div_u64(under_way(view) * rtt_us * WEFT_WINDOW_UNIT, path->window);
}

/* Whether the rest is done sooner by waiting for the fastest subflow. */
static bool is_worth_waiting(const struct weft_weft *weft,
			     const struct weft_view *fast,
			     const struct weft_view *slow,
			     const struct weft_outlook *outlook)
{
	u64 fast_us = standing_rtt_us(&weft->path[fast->slot], fast);
	u64 slow_us = standing_rtt_us(&weft->path[slow->slot], slow);
	u32 window = max(weft->path[fast->slot].window / WEFT_WINDOW_UNIT, 1U);
	u64 left = weft_packets(outlook->unsent_bytes, fast);

	/* the ACK of a single packet may be delayed */
	if (slow_us <= fast_us || under_way(fast) < 2)
		return false;
	/* the rest, one window after the other: half a round trip for the last */
	return !outlook->more_follows &&
	       div_u64(left * fast_us, window) + fast_us < slow_us;
}

/* The subflow on which the packet arrives first, of those that may take it. */
static int earliest(struct weft_weft *weft, const struct weft_view *view,
		    unsigned int n, u32 members, const struct weft_outlook *outlook)
{
	int best = WEFT_WAIT;
	u64 best_us = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		u64 us;

		if (!(members & 1U << i) || !may_take(weft, &view[i], outlook))
			continue;
		us = arrival_us(&weft->path[view[i].slot], &view[i]);
		if (best == WEFT_WAIT || us < best_us) {
			best = i;
			best_us = us;
		}
	}
	return best;
}

static int weft_weft_choose(void *state, const struct weft_view *view,
			    unsigned int n, const struct weft_outlook *outlook)
{
	int best, fast = WEFT_WAIT;
	struct weft_weft *weft = state;
	bool is_due = false;
	u32 members = 0;
	unsigned int i;

	if (outlook->placed >= 0)
		weft_trail_add(&weft->trail, weft->last_seq, outlook->next_seq,
			       outlook->placed);
	if (outlook->placed >= 0 || !weft->is_started)
		weft->last_seq = outlook->next_seq;
	weft->is_started = true;

	for (i = 0; i < n; i++) {
		struct weft_path_state *path = &weft->path[view[i].slot];

		if (observe(path, &view[i], n, outlook->now_us))
			weft->told.slots &= ~(1U << view[i].slot);
		weft->told.is_wanted |= !(weft->told.slots & 1U << view[i].slot);
		is_due |= weft_ack_is_due(&view[i]);
		if (weft->told.out & 1U << view[i].slot ||
		    is_silent(path, &view[i], outlook->now_us))
			continue;
		members |= 1U << i;
		if (fast == WEFT_WAIT || view[i].srtt_us < view[fast].srtt_us)
			fast = i;
	}
	choose_competitor(weft, view, n, outlook->now_us);

	best = earliest(weft, view, n, members, outlook);
	if (best == WEFT_WAIT && !members)
		best = earliest(weft, view, n, ~0U, outlook);
	if (best == WEFT_WAIT)
		return is_due ? WEFT_WAIT : weft_fastest(view, n, true);
	if (best == fast || fast == WEFT_WAIT ||
	    !is_worth_waiting(weft, &view[fast], &view[best], outlook))
		return best;
	return may_take(weft, &view[fast], outlook) ? fast : WEFT_WAIT;
}

#ifdef __KERNEL__
#include <linux/moduleparam.h>
#include <linux/timer.h>
#include <net/tcp.h>

#include "weft.h"

module_param(weft_first_window_packets, uint, 0644);
MODULE_PARM_DESC(weft_first_window_packets,
		 "weft: packets before the first ACK after an idle time (6)");
module_param(weft_queue_packets, uint, 0644);
MODULE_PARM_DESC(weft_queue_packets,
		 "weft: packets of a connection that may wait in queues (4)");
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

	if (rescue)
		listen(rescue, msk);
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
#endif /* __KERNEL__ */
