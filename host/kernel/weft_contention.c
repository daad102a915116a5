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
 *	- some of the packets are marked in it, but not nearly all: DCTCP keeps the queue
 *	  about where marks begin. (Beside it 13 to 45 % of weft's packets were marked.)
 *	  Where many connections of weft have pushed the queue beyond, nobody gives way to
 *	  marks, and almost all packets have one;
 *	- packets were lost in it, which weft's windows avoid, unless connections are so many
 *	  that there is no room for two packets of each; or
 *	- it is longer than what weft's windows add up to: LONG_QUEUE_RTTS round trips,
 *	  beyond which each connection has two packets in it at most. Neither the host's
 *	  own queue nor a deep buffer loses or marks anything.
 *
 * Patience. The longer the queue, the sooner it counts: a connection has to wait for
 *
 *	sum of (weight * time * queueing delay / RTT without queues) > weft_patience_ms,
 *
 * so that connections of weft that only meet for a moment do not compete and fill the
 * buffer that their windows keep free. A queue that has lost packets is a full one, however
 * short the buffer is, and counts as one of FULL_RTTS at least: patience ends after 25 ms.
 * (Not where packets have a class: full buffers lose those of the lowest one first.)
 *
 * Where a share of the packets is marked, the weight is MARKED_WEIGHT share (1 - share)
 * times the queueing delay in RTTs: to compete costs little there, because the congestion
 * control keeps the queue where it is. (At DCTCP's threshold of 20 packets patience ends
 * after some 50 ms.)
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
 * everything begins again.
 */
#include "weft_contention.h"

/* Connections of weft alone would have to be about 25 at one link for such a queue. */
#define LONG_QUEUE_RTTS	4

/* Where it costs little to compete, or other traffic is certain, patience ends sooner. */
#define MARKED_WEIGHT	28
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

/* A round trip counts for so many times its RTT at most: the subflow may not be in use. */
#define ROUND_RTTS	2

/* Shares and weights are in 1 / ONE. */
#define ONE		4096U

static unsigned int weft_patience_ms = 600;

/**
 * weft_contention_clear() - the queue is empty
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

/* The share of packets that are marked, with those of the round trip that has ended. */
static u32 marked_share(const struct weft_contention *contention,
			const struct weft_subflow_view *view)
{
	u32 marked = view->marked_packets - contention->marked_packets;
	u32 delivered = view->delivered_packets - contention->delivered_packets;
	u32 share;

	if (!delivered)
		return contention->marked_share;
	share = min(marked, delivered) * ONE / delivered;
	return ((SHARE_ROUNDS - 1) * contention->marked_share + share) / SHARE_ROUNDS;
}

static bool has_lost(const struct weft_contention *contention,
		     const struct weft_subflow_view *view)
{
	return view->lost_packets != contention->lost_packets;
}

/* How much a round trip tells of other traffic, in 1 / ONE. */
static u32 weight(const struct weft_contention *contention,
		  const struct weft_subflow_view *view, u32 base_us, u32 queueing_us)
{
	u32 share = contention->marked_share;
	u32 by_marks = div_u64((u64)min(queueing_us, LONG_QUEUE_RTTS * base_us) *
			       (MARKED_WEIGHT * share * (ONE - share) / ONE), max(base_us, 1U));
	bool is_long = queueing_us > LONG_QUEUE_RTTS * base_us;

	if (!share && is_long && !view->has_class)
		return UNMARKED_WEIGHT * ONE;
	if (!share && queueing_us > CERTAIN_RTTS * base_us)
		return CERTAIN_WEIGHT * ONE;
	if (has_lost(contention, view) || is_long)
		return max(by_marks, ONE);
	return by_marks;
}

/**
 * weft_contention_add_round() - a round trip is over
 * @contention: of the subflow
 * @view: subflow
 * @base_us: RTT without queues
 * @queueing_us: queueing delay in that round trip; 0 when the queue was empty
 * @now_us: monotonic time
 */
void weft_contention_add_round(struct weft_contention *contention,
			       const struct weft_subflow_view *view, u32 base_us,
			       u32 queueing_us, u64 now_us)
{
	u64 time_us = contention->since_us ? now_us - contention->since_us : 0;
	u64 weighted_us;

	if (!queueing_us || view->goes_first) {
		weft_contention_clear(contention, view);
		return;
	}
	contention->since_us = max(now_us, 1);
	contention->marked_share = marked_share(contention, view);
	contention->marked_packets = view->marked_packets;
	contention->delivered_packets = view->delivered_packets;
	time_us = min_t(u64, time_us, ROUND_RTTS * (u64)(base_us + queueing_us));
	weighted_us = div_u64(time_us * weight(contention, view, base_us, queueing_us), ONE);
	if (has_lost(contention, view) && !contention->marked_share && !view->has_class)
		queueing_us = max(queueing_us, FULL_RTTS * base_us);
	contention->score_us += div_u64(weighted_us * queueing_us, max(base_us, 1U));
}

/**
 * weft_contention_is_proven() - whether only the congestion window may limit the subflow
 * @contention: of the subflow
 *
 * Return: true when traffic that does not give way fills the queue.
 */
bool weft_contention_is_proven(const struct weft_contention *contention)
{
	return contention->score_us > READ_ONCE(weft_patience_ms) * 1000ULL;
}

#ifdef __KERNEL__
#include <linux/moduleparam.h>

module_param(weft_patience_ms, uint, 0644);
MODULE_PARM_DESC(weft_patience_ms,
		 "weft: a queue as long as one RTT, not empty for so long, is filled by other traffic too; a longer one sooner (600)");
#endif /* __KERNEL__ */
