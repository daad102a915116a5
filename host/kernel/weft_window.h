/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The windows of the scheduler weft: how much a subflow may have under way.
 *
 * A window stands beside that of the subflow's congestion control, and keeps the queue
 * on its path short. Of its packets
 *
 *	queue = window (rtt - base) / (rtt + back)
 *
 * are in queues (Little's law, as in TCP Vegas), where base is the lowest RTT ever with
 * some slack, and rtt the lowest of four ACKs, so that a host's own scheduling noise is
 * no queue: of four, not of a round trip, in which a large window has more to choose
 * from, sees shorter queues than others and grows at their cost. What the ACK itself has
 * waited is not in rtt but back, if switches tell (p4/src/stages/waits.p4): queues on the
 * way back are not those that data fill. Once a round trip the window goes half the way to
 * where queue is the subflow's share of weft_queue_packets (as in FAST TCP: Jin, Wei,
 * Low, INFOCOM 2004). Before the first ACK after an idle time nothing is known: all
 * subflows together begin with weft_first_window_packets, and each ACK lets two more
 * out, until there is a queue. An incast of sixteen connections so fits in a queue of a
 * hundred packets, and what follows comes as room is made.
 *
 * Competition. Others may fill the queue all the time and not give way (TCP's usual
 * congestion controls); with a short queue of its own a connection would starve among
 * them. So where packets are lost, and the queue has not been empty for
 * weft_patience_ms, a path is contested, and the congestion window alone may count.
 *
 * Sizes. Who has little left to send gets a larger share of queues, and so of links, than
 * who has much: mean completion times are the shorter the more is done first of what is
 * nearly done (the order of pFabric: Alizadeh et al., SIGCOMM 2013), and nobody stands
 * still. What is left is what the application has written and no subflow has; what it
 * waits to write counts as much.
 */
#ifndef _WEFT_WINDOW_H
#define _WEFT_WINDOW_H

#include "view.h"

/* Windows are kept in sixteenths of a packet, so that they can creep. */
#define WEFT_WINDOW_UNIT	16U

/* A hundred packets' time at 1 Gbit/s, and some. */
#define WEFT_LONG_RTT_US	2000U

/* What slack is for does not take longer where the way is longer. */
#define WEFT_SLACK_MAX_US	100U

/* The lowest RTT of so many ACKs counts. */
#define WEFT_GROUP_ACKS		4

/* Round trips without an ACK after which what was seen of a queue is old. */
#define WEFT_MEMORY_RTTS	4ULL

/* What sizes make of a share: down to half of it, and up to four times as much. */
#define WEFT_WEIGHT_MIN		(WEFT_WINDOW_UNIT / 2)
#define WEFT_WEIGHT_MAX		(4 * WEFT_WINDOW_UNIT)

static unsigned int weft_first_window_packets = 6;
static unsigned int weft_queue_packets = 4;
static unsigned int weft_even_kb = 4000;
static unsigned int weft_slack_percent = 50;
static unsigned int weft_patience_ms = 50;
static bool weft_way_back = true;

/**
 * struct weft_path_state - what is remembered of a subflow
 * @delivered: packets acknowledged when it was looked at last
 * @lost: packets taken for lost then
 * @round_end: when so many packets are acknowledged the round trip is over
 * @rtt_us: RTT of the last round trip without queues on the way back: the mean of the
 *	lowest of each group of ACKs; 0 before the first
 * @group_rtt_us: the lowest of this group so far, 0 before the first
 * @group_sum_us: those of the groups in this round trip, together
 * @groups: how many they are
 * @group_acks: how many ACKs this group has
 * @back_us: wait of the last ACK in queues
 * @window: packets it may have under way, in WEFT_WINDOW_UNIT
 * @weight: of its connection's size (size_weight())
 * @is_known: whether the above are valid
 * @is_starting: whether each packet acknowledged lets two out
 * @is_limited: whether @window has kept a packet back in this round trip
 * @has_lost: whether packets were lost since @queue_since_us
 * @seen_us: when packets were acknowledged last
 * @idle_us: when nothing was under way last
 * @queue_since_us: since when the queue has never been empty; 0: it was just now
 * @told_rtt_us: the path's RTT as the controller has it, with the queues on the way;
 *	0 while it has not said
 * @told_lowest_us: the same without queues
 * @wait_unit_ns: in which ACKs tell their waits; 0: they do not
 * @waited: by the last ACK, in this unit
 */
struct weft_path_state {
	u32	delivered;
	u32	lost;
	u32	round_end;
	u32	rtt_us;
	u32	group_rtt_us;
	u32	group_sum_us;
	u32	groups;
	u32	group_acks;
	u32	back_us;
	u32	window;
	u32	weight;
	bool	is_known;
	bool	is_starting;
	bool	is_limited;
	bool	has_lost;
	u64	seen_us;
	u64	idle_us;
	u64	queue_since_us;
	u32	told_rtt_us;
	u32	told_lowest_us;
	u32	wait_unit_ns;
	u32	waited;
};

static u32 under_way(const struct weft_view *view)
{
	return view->in_flight_packets + view->queued_packets;
}

/*
 * The RTT without queues. A connection that has never been without them would take them
 * for a part of the way, and put its own share on top: it has the controller's.
 */
static u32 lowest_rtt_us(const struct weft_path_state *path,
			 const struct weft_view *view)
{
	return path->told_lowest_us ? min(view->rtt_min_us, path->told_lowest_us) :
				      view->rtt_min_us;
}

/*
 * The RTT up to which there is no queue to speak of. The lowest RTT that TCP has seen
 * is that of short packets, and packets of other flows that merely cross, or an ACK
 * that waits for its second packet, are no standing queue. All that share a queue see
 * the same slack, so that it does not add up.
 */
static u32 base_rtt_us(const struct weft_path_state *path,
		       const struct weft_view *view)
{
	u32 lowest_us = lowest_rtt_us(path, view);
	u32 slack_us = div_u64((u64)lowest_us * READ_ONCE(weft_slack_percent), 100);

	return lowest_us + min(slack_us, WEFT_SLACK_MAX_US);
}

/* How long the last ACK has waited on its way: no longer than its RTT says. */
static u32 way_back_us(const struct weft_path_state *path,
		       const struct weft_view *view)
{
	u64 back_us = div_u64((u64)READ_ONCE(path->waited) * path->wait_unit_ns, 1000);
	u32 lowest_us = lowest_rtt_us(path, view);

	if (!READ_ONCE(weft_way_back) || view->rtt_us <= lowest_us)
		return 0;
	return min_t(u64, back_us, view->rtt_us - lowest_us);
}

/*
 * The RTT with its standing queues, without the noise of a host. A subflow that has not
 * seen it itself of late has the controller's, which knows what others have queued.
 */
static u32 standing_rtt_us(const struct weft_path_state *path,
			   const struct weft_view *view)
{
	u32 seen_us = path->rtt_us | path->group_rtt_us;

	if (path->rtt_us && path->group_rtt_us)
		seen_us = min(path->rtt_us, path->group_rtt_us);
	if (seen_us)
		seen_us += path->back_us;
	return max(seen_us ? seen_us : path->told_rtt_us, base_rtt_us(path, view));
}

/* Packets of a window that wait in queues ahead, in WEFT_WINDOW_UNIT. */
static u32 queued(const struct weft_path_state *path, u32 rtt_us, u32 base_us)
{
	return rtt_us > base_us ?
	       (u32)div_u64((u64)path->window * (rtt_us - base_us),
			    rtt_us + path->back_us) : 0;
}

/*
 * What a connection's share of queues is multiplied by, in WEFT_WINDOW_UNIT: in inverse
 * proportion to what is left to send.
 */
static u32 size_weight(const struct weft_outlook *outlook)
{
	u64 even = 1000ULL * READ_ONCE(weft_even_kb) * WEFT_WINDOW_UNIT;

	if (!even)
		return WEFT_WINDOW_UNIT;
	/* nobody knows how much */
	if (outlook->more_follows)
		return WEFT_WEIGHT_MIN;
	return clamp_t(u64, div64_u64(even, outlook->unsent_bytes + 1),
		       WEFT_WEIGHT_MIN, WEFT_WEIGHT_MAX);
}

/*
 * What a subflow may keep in queues, in WEFT_WINDOW_UNIT: its share as long as the
 * wait there is no more than two RTTs, beyond that in inverse proportion to the wait,
 * so that the queue grows with the square root of the number of those that share it.
 *
 * Sizes count beside that: as long as the wait is below half an RTT nobody has less than
 * the share, which a slow link may need lest it idle; beyond, all weights fall with the
 * wait, that of who has little left to one, that of who has much below. So the queue is
 * no longer than it takes to tell them apart.
 */
static u32 queue_share(const struct weft_path_state *path, unsigned int n,
		       u32 rtt_us, u32 base_us)
{
	u32 wait_us = rtt_us > base_us ? rtt_us - base_us : 0;
	u32 weight = max(path->weight, WEFT_WINDOW_UNIT), share;

	if (wait_us > base_us / 2)
		weight = (u32)div_u64((u64)weight * (base_us / 2), wait_us);
	weight = max(weight, min(path->weight, WEFT_WINDOW_UNIT));
	share = max(READ_ONCE(weft_queue_packets) / n, 2U) * weight;
	if (wait_us > 2 * base_us)
		share = (u32)div_u64(2ULL * share * base_us, wait_us);
	return max(share, WEFT_WINDOW_UNIT);
}

/* The end of a round trip: FAST's step towards the share of the queue. */
static void end_round(struct weft_path_state *path, const struct weft_view *view,
		      unsigned int n, u64 now_us)
{
	u32 rtt_us = path->group_sum_us / path->groups;
	u32 base_us = base_rtt_us(path, view);
	u32 queue = queued(path, rtt_us, base_us);
	u32 share = queue_share(path, n, rtt_us, base_us);

	if (queue) {
		if (!path->queue_since_us)
			path->queue_since_us = max(now_us, 1);
	} else {
		path->queue_since_us = 0;
		path->has_lost = false;
	}
	if (queue < share / 2 && path->is_limited)
		path->is_starting = true;
	else if (queue > share || path->is_limited)
		path->window -= ((s32)queue - (s32)share) / 2;
	path->rtt_us = rtt_us;
	path->group_sum_us = 0;
	path->groups = 0;
	path->is_limited = false;
	path->round_end = view->delivered_packets + max(under_way(view), 1U);
}

/*
 * The receiver may delay the ACK of a packet by 40 ms until a second one comes. On a slow
 * link a packet takes longer than the way, and a third keeps it from idling while the ACK
 * of two is under way.
 */
static u32 least_window(u32 rtt_us)
{
	return (rtt_us >= WEFT_LONG_RTT_US ? 3 : 2) * WEFT_WINDOW_UNIT;
}

/* ACKs have come since the last look. */
static void take_acks(struct weft_path_state *path, const struct weft_view *view,
		      u32 acked, unsigned int n, u64 now_us)
{
	u32 base_us = base_rtt_us(path, view);
	u32 rtt_us, queue, share;

	path->back_us = way_back_us(path, view);
	rtt_us = view->rtt_us - path->back_us;
	queue = queued(path, rtt_us, base_us);
	share = queue_share(path, n, rtt_us, base_us);
	path->seen_us = now_us;
	if (!path->group_rtt_us || rtt_us < path->group_rtt_us)
		path->group_rtt_us = rtt_us;
	if (++path->group_acks == WEFT_GROUP_ACKS) {
		path->group_sum_us += path->group_rtt_us;
		path->groups++;
		path->group_rtt_us = 0;
		path->group_acks = 0;
	}
	if (path->is_starting && queue < share) {
		path->window += acked * WEFT_WINDOW_UNIT;
	} else if (path->is_starting) {
		path->is_starting = false;
		path->window += share - queue;
	}
	if ((s32)(view->delivered_packets - path->round_end) >= 0 && path->groups)
		end_round(path, view, n, now_us);
	path->window = clamp(path->window, least_window(rtt_us),
			     (view->cwnd_packets + 1) * WEFT_WINDOW_UNIT);
}

/*
 * What is sent before the first ACK. Where a round trip is longer than a switch's queue
 * takes to empty, initial windows do not add up there, and RFC 6928's stands.
 */
static u32 first_window(const struct weft_view *view, unsigned int n)
{
	u32 packets = READ_ONCE(weft_first_window_packets) / n;

	if (view->rtt_min_us >= WEFT_LONG_RTT_US)
		packets = 10;
	return max(packets, 1U) * WEFT_WINDOW_UNIT;
}

/*
 * Take in what has happened to a subflow since the last look, and what its connection's
 * size weighs; whether it is new, or has taken the slot of another.
 */
static bool observe(struct weft_path_state *path, const struct weft_view *view,
		    unsigned int n, u32 weight, u64 now_us)
{
	u32 acked = view->delivered_packets - path->delivered;
	bool is_new = !path->is_known || (s32)acked < 0;

	if (is_new) {
		memset(path, 0, sizeof(*path));
		path->is_known = true;
		path->lost = view->lost_packets;
		acked = 0;
	}
	path->weight = weight;
	path->delivered = view->delivered_packets;
	if (view->lost_packets != path->lost) {
		path->lost = view->lost_packets;
		path->has_lost = true;
	}
	if (acked && view->rtt_us)
		take_acks(path, view, acked, n, now_us);
	if (under_way(view) && path->window)
		return is_new;
	path->idle_us = now_us;
	/* one ACK has emptied a small window: no idle time, after which it begins anew */
	if (path->window && now_us - view->acked_us <= standing_rtt_us(path, view))
		return is_new;
	path->window = first_window(view, n);
	path->is_starting = true;
	path->round_end = view->delivered_packets + 1;
	/* queues do not last */
	if (now_us - path->seen_us > WEFT_MEMORY_RTTS * path->rtt_us) {
		path->rtt_us = 0;
		path->group_rtt_us = 0;
		path->group_sum_us = 0;
		path->groups = 0;
		path->group_acks = 0;
		path->back_us = 0;
		path->queue_since_us = 0;
	}
	return is_new;
}

/* Whether ACKs are overdue, as when its link fails: not a subflow to wait for. */
static bool is_silent(const struct weft_path_state *path,
		      const struct weft_view *view, u64 now_us)
{
	u64 patience_us = WEFT_MEMORY_RTTS * standing_rtt_us(path, view) + 1000;

	return under_way(view) &&
	       now_us - max(path->seen_us, path->idle_us) > patience_us;
}

/* Whether others fill the queue on a path and do not give way. */
static bool is_contested(const struct weft_path_state *path, u64 now_us)
{
	return path->has_lost && path->queue_since_us &&
	       now_us - path->queue_since_us >
	       READ_ONCE(weft_patience_ms) * 1000ULL;
}

#endif /* _WEFT_WINDOW_H */
