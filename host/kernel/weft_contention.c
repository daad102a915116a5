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
 *	- packets were lost or marked in it, which weft's windows avoid, or
 *	- it is longer than what weft's windows add up to: LONG_QUEUE_RTTS round trips,
 *	  beyond which each connection has two packets in it at most. Neither the host's
 *	  own queue nor a deep buffer loses or marks anything.
 *
 * Patience. The longer the queue, the sooner it counts: a connection has to wait for
 *
 *	sum of (time * queueing delay / RTT without queues) > weft_patience_ms
 *
 * In a full drop-tail queue of 100 packets at 1 Gbit/s that takes about 75 ms. An incast
 * of weft's own is over by then; if it competed, it would fill the buffer that its
 * windows have just kept free. Time counts MARKED_WEIGHT times where packets are marked,
 * because there to compete costs little: the congestion control keeps the queue where
 * it is. (At DCTCP's threshold of 20 packets it takes about 120 ms.) More would let few
 * connections of weft take each other for other traffic. Where nothing is marked, it
 * counts CERTAIN_WEIGHT times in a queue of CERTAIN_RTTS and more, which no incast of
 * weft's own makes. When the queue has been empty for a round trip, everything begins
 * again.
 */
#include "weft_contention.h"

/* Connections of weft alone would have to be about 25 at one link for such a queue. */
#define LONG_QUEUE_RTTS	4

/* Where it costs little to compete, or other traffic is certain, patience ends sooner. */
#define MARKED_WEIGHT	3
#define CERTAIN_RTTS	16
#define CERTAIN_WEIGHT	6

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
	};
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
	bool is_marked = view->marked_packets != contention->marked_packets;
	bool has_loss = view->lost_packets != contention->lost_packets;

	if (!queueing_us) {
		weft_contention_clear(contention, view);
		return;
	}
	contention->since_us = max(now_us, 1);
	if (is_marked)
		time_us *= MARKED_WEIGHT;
	else if (queueing_us > CERTAIN_RTTS * base_us)
		time_us *= CERTAIN_WEIGHT;
	if (is_marked || has_loss || queueing_us > LONG_QUEUE_RTTS * base_us)
		contention->score_us += div_u64(time_us * queueing_us, max(base_us, 1U));
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
