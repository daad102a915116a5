// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many of its subflows a connection of the scheduler weft uses where queues are long.
 *
 * Where many connections share a queue, as in an incast, the share of each is a few packets.
 * Spread over four subflows, these are one or two on each, and such a subflow learns of a
 * loss only from its timeout, which is often wrong where packets wait for long. So where
 * queues are long on all paths, a connection uses only as many subflows as its share has
 * packets for, weft_subflow_packets each: those with the lowest RTTs.
 *
 * Of a path without a recent RTT nothing is known, and it may be better. A connection finds
 * out with one such subflow at a time, the one first that the controller's RTT or the lowest
 * that it has seen itself speaks for. Where the queues that it knows are so long that only
 * many connections can have filled them, that would fill the others too, as in an incast. So
 * it waits there for TRY_RTTS round trips, and for eight times as long after each such subflow.
 * (It must not wait for ever: where one of four paths was jammed, connections that had begun
 * there kept it full for seconds.)
 *
 * Where other traffic fills the queue (weft_contention.c), a connection with much left uses
 * all of its subflows: each of them gets a part of it.
 */
#include "weft_rtt.h"
#include "weft_sched.h"

/*
 * A connection in a jam tries another subflow after so many round trips. (After one already, an
 * incast of 128 flows in classes took 2 % longer.) This time grows eightfold so often at most.
 */
#define TRY_RTTS	4
#define TRIES_MAX	3

static unsigned int weft_subflow_packets = 2;

/* The bit of the fastest or slowest one in @members, which is not empty. */
static u32 extreme(const u32 *rtt_us, unsigned int n, u32 members, bool is_fastest)
{
	unsigned int i, best = n;

	for (i = 0; i < n; i++)
		if (members & 1U << i &&
		    (best == n || (is_fastest ? rtt_us[i] < rtt_us[best] :
						rtt_us[i] > rtt_us[best])))
			best = i;
	return 1U << best;
}

/*
 * Whether a connection in a jam may try another subflow. @is_trying: it does, since the last
 * decision or longer.
 */
static bool may_try(struct weft_crowd *crowd, bool is_trying, u32 rtt_us, u64 now_us)
{
	if (!crowd->try_us) {
		crowd->tries = 0;
		crowd->try_us = now_us + TRY_RTTS * rtt_us;
	} else if (is_trying && now_us >= crowd->try_us) {
		crowd->tries = min(crowd->tries + 1, TRIES_MAX);
		crowd->try_us = now_us + ((u64)TRY_RTTS * rtt_us << 3 * crowd->tries);
	}
	return now_us >= crowd->try_us;
}

/**
 * weft_crowd_limit() - leave out subflows while queues are long on all paths
 * @crowd: of the connection, updated
 * @windows: windows by slot, updated
 * @view: usable subflows
 * @n: entries of @view
 * @members: bit per index: those that may get the next packet
 * @now_us: monotonic time
 *
 * Return: some of @members; at least one, unless @members is empty.
 */
u32 weft_crowd_limit(struct weft_crowd *crowd, const struct weft_window *windows,
		     const struct weft_subflow_view *view, unsigned int n, u32 members,
		     u64 now_us)
{
	u32 packets = READ_ONCE(weft_subflow_packets);
	u32 unknown = 0, exploring = 0, known = 0, share = 0;
	u32 rtt_us[WEFT_PATHS_MAX];
	unsigned int i, most, count = 0;
	u32 jam_rtt_us = 0;

	if (!packets)
		return members;
	for (i = 0; i < n; i++) {
		const struct weft_window *window = &windows[view[i].slot];

		if (!(members & 1U << i))
			continue;
		if (window->weight < WEFT_WEIGHT_ONE && !weft_window_counts(window))
			return members;
		switch (weft_window_queue(window, &view[i], now_us)) {
		case WEFT_QUEUE_SHORT:
			crowd->try_us = 0;
			return members;
		case WEFT_QUEUE_UNKNOWN:
			unknown |= 1U << i;
			rtt_us[i] = weft_rtt_guess_us(window, &view[i]);
			if (weft_outstanding(&view[i]))
				exploring |= 1U << i;
			continue;
		case WEFT_QUEUE_JAMMED:
			jam_rtt_us = max(jam_rtt_us, view[i].rtt_us);
			break;
		case WEFT_QUEUE_LONG:
			break;
		}
		known |= 1U << i;
		rtt_us[i] = view[i].srtt_us;
		count++;
		share += weft_window_share(window, &view[i], n);
	}

	most = max(share / (packets * WEFT_WINDOW_ONE), 1U);
	for (; count > most; count--)
		known &= ~extreme(rtt_us, n, known, false);
	if (!unknown || (jam_rtt_us && !may_try(crowd, exploring, jam_rtt_us, now_us)))
		return known;
	if (!exploring)
		return known | extreme(rtt_us, n, unknown, true);
	return known ? known : exploring;
}

#ifdef __KERNEL__
#include <linux/moduleparam.h>

module_param(weft_subflow_packets, uint, 0644);
MODULE_PARM_DESC(weft_subflow_packets,
		 "weft: where queues are long on all paths, use as many subflows as the connection's share of them has so many packets; 0: always all (2)");
#endif /* __KERNEL__ */
