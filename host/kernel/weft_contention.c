// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether traffic that does not give way fills the queue on a subflow's path.
 *
 * TCP's usual congestion controls keep a queue in front of the slowest link all the
 * time: CUBIC and Reno all the buffer, DCTCP what the switch allows before it marks
 * packets, BBR about a round trip. Beside them, a connection that keeps queues short
 * would starve.
 *
 * Connections of weft keep a queue too, when many of them share a link. What shows
 * other traffic is that the queue has not been empty for long although
 *
 *	- the connection keeps two packets in it at most, and still some are marked, but not
 *	  nearly all: DCTCP keeps the queue about where marks begin. (Beside it 13 to 45 %
 *	  of weft's packets were marked.) Where many connections of weft have pushed the queue
 *	  beyond, nobody gives way to marks, and almost all packets have one;
 *	- packets were lost in it, which weft's windows avoid, unless connections are so many
 *	  that there is no room for two packets of each; or
 *	- it is longer than what weft's windows add up to: LONG_QUEUE_RTTS round trips,
 *	  beyond which each connection has two packets in it at most. Neither the host's
 *	  own queue nor a deep buffer loses or marks anything.
 *
 * Marks. Five connections of weft with four packets each keep a queue where DCTCP's marks
 * begin, too. So from one marked packet in SUSPECT_PARTS on, a connection keeps two in the
 * queue at most (weft_window.c), until there is only one in CLEAR_PARTS. If all connections are
 * of weft, the marks end with that, and everything begins again. If they do not end, other
 * traffic is proven when
 *
 *	sum of (4 share (1 - share) * (queueing delay / RTT without queues)^2)
 *
 * over the round trips is more than weft_marked_rounds: after 6 to 13 round trips in a queue of
 * 20 packets at 500 Mbit/s, and 24 to 52 at 1 Gbit/s. (When weft did not first see if marks
 * end, its connections took each other for other traffic in Web Search at load 0.4 with some
 * seeds, and their short flows took 1.9 ms in the mean instead of 0.8.)
 *
 * Patience. Without marks, a connection has to wait for
 *
 *	sum of (weight * time * queueing delay / RTT without queues) > weft_patience_ms,
 *
 * so that connections of weft that only meet for a moment do not compete and fill the
 * buffer that their windows keep free. A queue that has lost packets is a full one, however
 * short the buffer is, and counts as one of FULL_RTTS at least: patience ends after 25 ms.
 * (Not where packets have a class: full buffers lose those of the lowest one first.)
 *
 * Where nothing is marked, the weight is UNMARKED_WEIGHT in a queue of LONG_QUEUE_RTTS and
 * more: a few milliseconds, for who comes late has to win each packet of a full buffer
 * from others. (With a weight of 1 weft got 0.71 of its share within a second beside CUBIC
 * in a queue of 100 packets, with 20 0.98.) Incasts over CUBIC gain by that too. Packets
 * that have a class may wait for those of others, however short their queue is. There the
 * weight is CERTAIN_WEIGHT in a queue of CERTAIN_RTTS and more. Else it is 1. Where the class
 * of the packets is served before those that leaves give long flows of hosts without Weft
 * (by_sent() in controller/src/classes.rs), nobody is there who does not give way.
 *
 * Only time in which ACKs come counts. When the queue has been empty for a round trip,
 * everything begins again. Once other traffic is proven, that takes EMPTY_ROUNDS in a row:
 * DCTCP's queue is empty now and then.
 */
#include "weft_contention.h"

/* Connections of weft alone would have to be about 25 at one link for such a queue. */
#define LONG_QUEUE_RTTS	4

/* Where other traffic is certain, patience ends sooner. */
#define CERTAIN_RTTS	16
#define CERTAIN_WEIGHT	6
#define UNMARKED_WEIGHT	20

/*
 * A full queue that marks nothing counts as one of so many RTTs at least. With 8, weft got 0.84
 * of the share of the default scheduler beside Reno in buffers of 25 packets, with 80 no more.
 */
#define FULL_RTTS	24

/* The share of marked packets is a moving average over about so many round trips. */
#define SHARE_ROUNDS	8

/* From one marked packet in so many on, they may be of other traffic... */
#define SUSPECT_PARTS	16
/* ... and from one in so many down they are not. */
#define CLEAR_PARTS	64

/* Round trips in a row without a queue after which no other traffic is there any more. */
#define EMPTY_ROUNDS	3

/* A round trip counts for so many times its RTT at most: the subflow may not be in use. */
#define ROUND_RTTS	2

/* Shares and weights are in 1 / ONE. */
#define ONE		4096U

static unsigned int weft_patience_ms = 600;
static unsigned int weft_marked_rounds = 60;

/**
 * weft_contention_clear() - nothing is known of the queue
 * @contention: of the subflow
 * @view: subflow
 */
void weft_contention_clear(struct weft_contention *contention,
			   const struct weft_subflow_view *view)
{
	*contention = (struct weft_contention){
		.lost_packets = view->lost_packets,
		.marked_packets = view->marked_packets,
		.delivered_packets = view->delivered_packets,
	};
}

/* A round trip is over; the share of its packets that were marked, in 1 / ONE. */
static u32 take_marks(struct weft_contention *contention,
		      const struct weft_subflow_view *view)
{
	u32 marked = view->marked_packets - contention->marked_packets;
	u32 delivered = view->delivered_packets - contention->delivered_packets;
	u32 share;

	if (!delivered)
		return contention->marked_share;
	share = min(marked, delivered) * ONE / delivered;
	contention->marked_share =
		((SHARE_ROUNDS - 1) * contention->marked_share + share) / SHARE_ROUNDS;
	contention->marked_packets = view->marked_packets;
	contention->delivered_packets = view->delivered_packets;
	return share;
}

/* A round trip without a queue is over. */
static void add_empty_round(struct weft_contention *contention,
			    const struct weft_subflow_view *view)
{
	contention->since_us = 0;
	contention->lost_packets = view->lost_packets;
	if (!weft_contention_is_proven(contention) ||
	    ++contention->empty_rounds == EMPTY_ROUNDS) {
		contention->score_us = 0;
		contention->marked_rounds = 0;
		contention->empty_rounds = 0;
	}
}

static bool has_lost(const struct weft_contention *contention,
		     const struct weft_subflow_view *view)
{
	return view->lost_packets != contention->lost_packets;
}

/* How much a round trip with a queue tells of other traffic by its length, in 1 / ONE. */
static u32 weight(const struct weft_contention *contention,
		  const struct weft_subflow_view *view,
		  const struct weft_contention_round *round)
{
	bool is_long = round->queueing_us > LONG_QUEUE_RTTS * round->base_us;
	bool is_certain = round->queueing_us > CERTAIN_RTTS * round->base_us;

	if (!contention->marked_share && is_long && !view->has_class)
		return UNMARKED_WEIGHT * ONE;
	if (!contention->marked_share && is_certain)
		return CERTAIN_WEIGHT * ONE;
	return has_lost(contention, view) || is_long ? ONE : 0;
}

/*
 * What a round trip tells of other traffic by its marks; @share of its packets has one. They
 * are all marked where nobody gives way.
 */
static void add_marks(struct weft_contention *contention,
		      const struct weft_contention_round *round, u32 share)
{
	u32 mean = contention->marked_share;
	u64 rtts, evidence;

	if (mean >= ONE / SUSPECT_PARTS)
		contention->is_suspected = true;
	else if (mean < ONE / CLEAR_PARTS)
		contention->is_suspected = false;
	if (!contention->is_suspected)
		contention->marked_rounds = 0;
	if (!contention->is_suspected || !round->is_least || share == ONE)
		return;
	rtts = div_u64((u64)ONE * round->queueing_us, max(round->base_us, 1U));
	rtts = min_t(u64, rtts, LONG_QUEUE_RTTS * ONE);
	evidence = 4 * mean * (ONE - mean) / ONE * (rtts * rtts / ONE) / ONE;
	contention->marked_rounds += evidence;
}

/**
 * weft_contention_add_round() - a round trip is over
 * @contention: of the subflow
 * @view: subflow
 * @round: the round trip
 * @now_us: monotonic time
 */
void weft_contention_add_round(struct weft_contention *contention,
			       const struct weft_subflow_view *view,
			       const struct weft_contention_round *round, u64 now_us)
{
	u64 time_us = contention->since_us ? now_us - contention->since_us : 0;
	u32 queueing_us = round->queueing_us, share;
	u64 weighted_us;

	if (view->goes_first) {
		weft_contention_clear(contention, view);
		return;
	}
	share = take_marks(contention, view);
	add_marks(contention, round, share);
	if (!queueing_us) {
		add_empty_round(contention, view);
		return;
	}
	contention->since_us = max(now_us, 1);
	contention->empty_rounds = 0;
	time_us = min_t(u64, time_us, ROUND_RTTS * (u64)(round->base_us + queueing_us));
	weighted_us = div_u64(time_us * weight(contention, view, round), ONE);
	if (has_lost(contention, view) && !contention->marked_share && !view->has_class)
		queueing_us = max(queueing_us, FULL_RTTS * round->base_us);
	contention->score_us += div_u64(weighted_us * queueing_us, max(round->base_us, 1U));
}

/**
 * weft_contention_is_proven() - whether only the congestion window may limit the subflow
 * @contention: of the subflow
 *
 * Return: true when traffic that does not give way fills the queue.
 */
bool weft_contention_is_proven(const struct weft_contention *contention)
{
	return contention->score_us > READ_ONCE(weft_patience_ms) * 1000ULL ||
	       contention->marked_rounds > READ_ONCE(weft_marked_rounds) * (u64)ONE;
}

#ifdef __KERNEL__
#include <linux/moduleparam.h>

module_param(weft_marked_rounds, uint, 0644);
MODULE_PARM_DESC(weft_marked_rounds,
		 "weft: round trips in a queue as long as one RTT, half of whose packets stay marked, after which other traffic fills it; a longer one sooner (60)");
module_param(weft_patience_ms, uint, 0644);
MODULE_PARM_DESC(weft_patience_ms,
		 "weft: a queue as long as one RTT, not empty for so long, is filled by other traffic too; a longer one sooner (600)");
#endif /* __KERNEL__ */
