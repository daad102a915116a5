// SPDX-License-Identifier: GPL-2.0-only
/*
 * The windows of the scheduler weft: how much a subflow may have outstanding.
 *
 * A subflow has this window beside the congestion window of its congestion control,
 * and the smaller one counts. It keeps the queue on the subflow's path short. Of a
 * window's packets
 *
 *	queue = window (rtt - base) / (rtt + ack_queueing)
 *
 * wait in queues (Little's law, as in TCP Vegas). base is the lowest RTT of the last ten
 * seconds (a route may become longer), plus some slack, see weft_rtt.c. rtt is the minimum
 * of four ACKs, which removes the scheduling noise of hosts. The minimum over a whole round
 * trip would favour large windows: they have more ACKs to choose from, so they would see
 * shorter queues and grow at the cost of small ones.
 *
 * Switches may write into an ACK how long it waited (p4/src/stages/waits.p4). That
 * time is in ack_queueing and not in rtt, because data do not fill the queues on the
 * way back.
 *
 * Once per round trip the window moves half of the way to the size at which queue is
 * the subflow's share of weft_queue_packets (as in FAST TCP: Jin, Wei, Low, INFOCOM
 * 2004).
 *
 * Slow start. Nothing is known of the path before the first ACK after an idle time.
 * A connection then begins on one subflow (weft_crowd.c), and each acknowledged packet
 * lets two more out until there is a queue. It sends all at once if that is not more than
 * any TCP connection sends at once. It begins with weft_first_window_packets if it has
 * little to send. With more to send it begins with fewer, which costs it little: down to
 * two packets, so that the first windows of an incast of fifty connections fit in a queue
 * of a hundred packets.
 *
 * Many connections. What they may have outstanding together grows with their number, and
 * so does the queue, but not with their subflows: a subflow's window may be smaller than
 * the two packets that the connection may have at least, and subflows take turns then
 * (weft_choose.c).
 *
 * Competition. Where other traffic fills the queue and does not give way
 * (weft_contention.c), the congestion window alone decides. So it does with BBR: what this
 * window held back, BBR would take for more than the path can carry. While other traffic is
 * only suspected, a connection keeps no more than two packets in the queue.
 *
 * Sizes. The share of a connection in queues depends on how much it has left to send
 * (weft_size.c).
 */
#include "weft_rtt.h"
#include "weft_window.h"

/* At least the time that a queue of a hundred packets takes to empty at 1 Gbit/s. */
#define LONG_RTT_US	2000U

/* The minimum of this many ACKs is one RTT sample. */
#define GROUP_ACKS	4

/* Without an ACK for this many round trips, what was measured of a queue is outdated. */
#define MEMORY_RTTS	4ULL
/* And for this time on top, as packets may wait behind those of others. */
#define MEMORY_US	1000U

/*
 * Queues are long from four RTTs without them, which a few connections do not cause: where
 * some of these use fewer subflows, the others get more than their share. Jammed are queues
 * that one path alone seldom has.
 */
#define LONG_RTTS	4
#define JAMMED_RTTS	8

/* Time without an ACK, on top of round trips, after which a subflow counts as silent. */
#define PATIENCE_US	3000U

/* The initial window of TCP (RFC 6928, section 2). */
#define INITIAL_WINDOW_PACKETS	10U
#define INITIAL_WINDOW_BYTES	14600U

/*
 * A connection begins with a half of the packets from so much on that it has to send, and
 * with a third from twice as much on.
 */
#define FIRST_WINDOW_BYTES	64000U
#define FIRST_WINDOW_DIVISOR	3U

static unsigned int weft_first_window_packets = 6;
static unsigned int weft_queue_packets = 4;

/* Packets of a window that wait in queues on the way of data, in 1 / WEFT_WINDOW_ONE. */
static u32 queued(const struct weft_window *window, u32 rtt_us, u32 base_us)
{
	return rtt_us > base_us ?
	       (u32)div_u64((u64)window->size * (rtt_us - base_us),
			    rtt_us + window->ack_queueing_us) : 0;
}

/*
 * The part of a subflow in what its connection may keep in queues, in 1 / WEFT_WINDOW_ONE.
 *
 * Up to a queueing delay of two RTTs that is the subflow's share of weft_queue_packets.
 * Beyond, it falls in inverse proportion to the delay. The queue then grows with the
 * square root of the number of connections that share it.
 *
 * The weight of the connection's size applies on top. Below a delay of half an RTT no
 * connection has less than the share, because a slow link may need all of it to stay
 * busy. Beyond, all weights fall with the delay: down to one for connections with
 * little data left, and below one for those with much left. So the queue is just long
 * enough to distinguish them.
 */
static u32 queue_share(const struct weft_window *window, unsigned int n,
		       u32 rtt_us, u32 base_us)
{
	u32 wait_us = rtt_us > base_us ? rtt_us - base_us : 0;
	u32 weight = max(window->weight, WEFT_WEIGHT_ONE), share;

	if (wait_us > base_us / 2)
		weight = (u32)div_u64((u64)weight * (base_us / 2), wait_us);
	weight = max(weight, min(window->weight, WEFT_WEIGHT_ONE));
	share = READ_ONCE(weft_queue_packets) * WEFT_WINDOW_ONE * weight / WEFT_WEIGHT_ONE / n;
	if (wait_us > 2 * base_us)
		share = (u32)div_u64(2ULL * share * base_us, wait_us);
	return share;
}

/* The least that a subflow may keep in queues: two packets of a connection, one of its own. */
static u32 least_share(unsigned int n)
{
	return min(2 * WEFT_WINDOW_ONE / n, WEFT_WINDOW_ONE);
}

/* What a subflow may keep in queues; while marks may be of other traffic, only the least. */
static u32 queue_target(const struct weft_window *window, unsigned int n,
			u32 rtt_us, u32 base_us)
{
	if (window->contention.is_suspected)
		return least_share(n);
	return max(queue_share(window, n, rtt_us, base_us), least_share(n));
}

/**
 * weft_window_queue() - how long the queue on a subflow's path is
 * @window: window of the subflow, updated
 * @view: subflow
 * @now_us: monotonic time
 *
 * Return: what its last ACK says, if that is recent.
 */
enum weft_queue weft_window_queue(const struct weft_window *window,
				  const struct weft_subflow_view *view, u64 now_us)
{
	u32 rtt_us = weft_rtt_last_us(window, view);

	if (!window->sampled_us ||
	    now_us - window->sampled_us > MEMORY_RTTS * view->rtt_us + MEMORY_US)
		return WEFT_QUEUE_UNKNOWN;
	if (rtt_us < LONG_RTTS * weft_rtt_base_us(window, view))
		return WEFT_QUEUE_SHORT;
	if (rtt_us <= JAMMED_RTTS * weft_rtt_lowest_us(window, view))
		return WEFT_QUEUE_LONG;
	return WEFT_QUEUE_JAMMED;
}

/**
 * weft_window_share() - what a subflow may add to the queue, however little that is
 * @window: window of the subflow, updated
 * @view: subflow with an RTT
 * @n: usable subflows of its connection
 *
 * Return: in 1 / WEFT_WINDOW_ONE.
 */
u32 weft_window_share(const struct weft_window *window,
		      const struct weft_subflow_view *view, unsigned int n)
{
	return queue_share(window, n, weft_rtt_last_us(window, view),
			   weft_rtt_base_us(window, view));
}

/*
 * A subflow's part in the least that its connection may have outstanding; else connections
 * with more subflows would keep longer queues where all these share a link. On a slow link
 * a packet takes longer to send than to propagate; a third one keeps the link busy while
 * the ACK of two comes back.
 */
static u32 least_window(u32 rtt_us, unsigned int n)
{
	return (WEFT_LEAST_PACKETS + (rtt_us >= LONG_RTT_US)) * WEFT_WINDOW_ONE / n;
}

/* The end of a round trip: FAST's step towards the share of the queue. */
static void end_round(struct weft_window *window,
		      const struct weft_subflow_view *view,
		      const struct weft_window_conn *conn)
{
	u32 rtt_us = window->group_sum_us / window->groups;
	u32 base_us = weft_rtt_base_us(window, view);
	u32 queue = queued(window, rtt_us, base_us);
	u32 share = queue_target(window, conn->n, rtt_us, base_us);
	struct weft_contention_round round = {
		.base_us = base_us,
		.queueing_us = queue ? rtt_us - base_us : 0,
		.is_least = queue <= least_share(conn->n) * 3 / 2 ||
			    window->size <= least_window(rtt_us, conn->n),
	};

	weft_contention_add_round(&window->contention, view, &round, conn->now_us);
	if (queue < share / 2 && window->is_limiting)
		window->is_slow_start = true;
	else if (queue > share || window->is_limiting)
		window->size -= ((s32)queue - (s32)share) / 2;
	weft_rtt_take_round(window, rtt_us);
	window->is_limiting = false;
	window->round_end = view->delivered_packets +
			    max(weft_outstanding(view), 1U);
}

/* ACKs have come since the last update. */
static void take_acks(struct weft_window *window,
		      const struct weft_subflow_view *view, u32 acked,
		      const struct weft_window_conn *conn)
{
	u32 base_us, rtt_us, queue, share;

	weft_rtt_take_lowest(window, view, conn->now_us);
	base_us = weft_rtt_base_us(window, view);
	window->ack_queueing_us = weft_rtt_ack_queueing_us(window, view);
	rtt_us = weft_rtt_last_us(window, view);
	queue = queued(window, rtt_us, base_us);
	share = queue_target(window, conn->n, rtt_us, base_us);
	window->acked_us = conn->now_us;
	window->sampled_us = view->acked_us;
	if (!window->group_rtt_us || rtt_us < window->group_rtt_us)
		window->group_rtt_us = rtt_us;
	if (++window->group_acks == GROUP_ACKS) {
		window->group_sum_us += window->group_rtt_us;
		window->groups++;
		window->group_rtt_us = 0;
		window->group_acks = 0;
	}
	if (window->is_slow_start && queue < share) {
		window->size += acked * WEFT_WINDOW_ONE;
	} else if (window->is_slow_start) {
		window->is_slow_start = false;
		window->size += share - queue;
	}
	if ((s32)(view->delivered_packets - window->round_end) >= 0 && window->groups)
		end_round(window, view, conn);
	window->size = clamp(window->size, least_window(rtt_us, conn->n),
			     (view->cwnd_packets + 1) * WEFT_WINDOW_ONE);
}

/**
 * weft_window_first_packets() - what a subflow may send before its first ACK
 * @bytes_left: what its connection has left to send
 * @n: usable subflows of the connection
 * @is_idle: whether nothing of the connection is outstanding
 *
 * Return: packets, at least 2.
 */
u32 weft_window_first_packets(u64 bytes_left, unsigned int n, bool is_idle)
{
	u32 packets = READ_ONCE(weft_first_window_packets);
	u32 divisor;

	if (!is_idle)
		return max(packets / n, WEFT_LEAST_PACKETS);
	if (bytes_left <= INITIAL_WINDOW_BYTES)
		return max(packets, INITIAL_WINDOW_PACKETS);
	divisor = min_t(u64, 1 + div_u64(bytes_left, FIRST_WINDOW_BYTES), FIRST_WINDOW_DIVISOR);
	return max(packets / divisor, WEFT_LEAST_PACKETS);
}

/*
 * Where a round trip is longer than a switch's queue takes to empty, the first windows of
 * connections do not add up in that queue, and TCP's initial window applies.
 */
static u32 first_window(const struct weft_subflow_view *view, u32 packets)
{
	return (view->rtt_min_us >= LONG_RTT_US ? INITIAL_WINDOW_PACKETS : packets) *
	       WEFT_WINDOW_ONE;
}

/**
 * weft_window_update() - take in what has happened to a subflow
 * @window: its window
 * @view: subflow
 * @conn: its connection
 *
 * Return: true when the subflow is new, or has taken the slot of another.
 */
bool weft_window_update(struct weft_window *window,
			const struct weft_subflow_view *view,
			const struct weft_window_conn *conn)
{
	u32 acked = view->delivered_packets - window->delivered;
	bool is_new = !window->is_known || (s32)acked < 0;
	bool is_fresh;
	u32 first;

	if (is_new) {
		memset(window, 0, sizeof(*window));
		window->is_known = true;
		weft_contention_clear(&window->contention, view);
		acked = 0;
	}
	window->has_model = view->has_model;
	window->weight = conn->weight;
	window->delivered = view->delivered_packets;
	if (acked && view->rtt_us)
		take_acks(window, view, acked, conn);
	if (weft_outstanding(view) && window->size)
		return is_new;
	window->idle_us = conn->now_us;
	/* one ACK may empty a small window: that is no idle time to start again after */
	if (window->size &&
	    conn->now_us - view->acked_us <= weft_rtt_us(window, view))
		return is_new;
	/* while the connection only uses others, what is known of this one stays true */
	is_fresh = conn->is_idle || !window->size;
	first = first_window(view, conn->first_packets);
	window->size = is_fresh ? first : min(first, window->size);
	window->is_slow_start = is_fresh;
	window->round_end = view->delivered_packets + 1;
	/* the queue of back then is gone */
	if (conn->now_us - window->acked_us > MEMORY_RTTS * window->rtt_us) {
		weft_rtt_forget(window);
		weft_contention_clear(&window->contention, view);
	}
	return is_new;
}

/**
 * weft_window_counts() - whether a subflow has this window beside its congestion window
 * @window: window of the subflow, updated
 *
 * Return: false beside other traffic that does not give way, and with BBR.
 */
bool weft_window_counts(const struct weft_window *window)
{
	return !window->has_model && !weft_contention_is_proven(&window->contention);
}

/**
 * weft_window_is_silent() - whether ACKs are overdue, as when a link has failed
 * @window: window of the subflow
 * @view: subflow
 * @others: subflows of its connection that are silent
 * @now_us: monotonic time
 *
 * A packet that waits for long behind those of others looks like one on a link that has
 * failed, so the patience doubles with each subflow that is silent: to try them all
 * would fill the queue further.
 *
 * Return: true when the subflow should get nothing, and nothing should wait for it.
 */
bool weft_window_is_silent(const struct weft_window *window,
			   const struct weft_subflow_view *view, unsigned int others,
			   u64 now_us)
{
	u64 patience_us = MEMORY_RTTS * weft_rtt_us(window, view) +
			  ((u64)PATIENCE_US << others);

	return weft_outstanding(view) &&
	       now_us - max(window->acked_us, window->idle_us) > patience_us;
}

#ifdef __KERNEL__
#include <linux/moduleparam.h>

module_param(weft_first_window_packets, uint, 0644);
MODULE_PARM_DESC(weft_first_window_packets,
		 "weft: packets that a connection with little to send sends before the first ACK after an idle time; ten if that is all, down to a third with more than 128 kB (6)");
module_param(weft_queue_packets, uint, 0644);
MODULE_PARM_DESC(weft_queue_packets,
		 "weft: packets of a connection that may wait in queues (4)");
#endif /* __KERNEL__ */
