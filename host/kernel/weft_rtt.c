// SPDX-License-Identifier: GPL-2.0-only
/*
 * The RTTs of a subflow of the scheduler weft: the lowest one, up to where there is no standing
 * queue, and what part of the last one the ACK waited on its own way. Windows follow from
 * them (weft_window.c), and so does the choice of the path (weft_choose.c).
 */
#include "weft_rtt.h"

/* A lowest RTT is remembered for this long at most, and at least for half of it. */
#define LOWEST_RTT_US	(10U * 1000 * 1000)

/* The noise that slack is for does not grow with the length of the path. */
#define SLACK_MAX_US	100U

/* So much of the slack stays where RTTs have been lower: one part of so many. */
#define SLACK_LEAST_PART	4U

static unsigned int weft_slack_percent = 50;
static bool weft_way_back = true;

/* The lowest RTT that the connection itself has seen; before its first ACK, the handshake's. */
static u32 own_lowest_us(const struct weft_window *window,
			 const struct weft_subflow_view *view)
{
	return window->lowest_since_us ?
	       min(window->lowest_rtt_us[0], window->lowest_rtt_us[1]) : view->rtt_min_us;
}

/**
 * weft_rtt_lowest_us() - the RTT without queues
 * @window: window of the subflow
 * @view: subflow
 *
 * A connection that has always had queues on its path would take them for propagation
 * delay, and add its own share on top. The controller has measured the path without them.
 *
 * Return: microseconds.
 */
u32 weft_rtt_lowest_us(const struct weft_window *window,
		       const struct weft_subflow_view *view)
{
	u32 lowest_us = own_lowest_us(window, view);

	return window->controller_min_rtt_us ?
	       min(lowest_us, window->controller_min_rtt_us) : lowest_us;
}

/**
 * weft_rtt_take_lowest() - an ACK has come, perhaps with a new lowest RTT
 * @window: window of the subflow, updated
 * @view: subflow
 * @now_us: monotonic time
 *
 * TCP remembers its lowest RTT for five minutes (tcp_min_rtt_wlen); it is the first one.
 */
void weft_rtt_take_lowest(struct weft_window *window,
			  const struct weft_subflow_view *view, u64 now_us)
{
	if (!window->lowest_since_us) {
		window->lowest_rtt_us[0] = view->rtt_min_us;
		window->lowest_rtt_us[1] = view->rtt_min_us;
		window->lowest_since_us = max(now_us, 1);
	} else if (now_us - window->lowest_since_us > LOWEST_RTT_US / 2) {
		window->lowest_rtt_us[1] = window->lowest_rtt_us[0];
		window->lowest_rtt_us[0] = view->rtt_us;
		window->lowest_round_us[1] = window->lowest_round_us[0];
		window->lowest_round_us[0] = 0;
		window->lowest_since_us = now_us;
	}
	window->lowest_rtt_us[0] = min(window->lowest_rtt_us[0], view->rtt_us);
}

/* The lower of two RTTs; 0 is unknown. */
static u32 lower_rtt_us(u32 one_us, u32 other_us)
{
	return one_us && other_us ? min(one_us, other_us) : one_us | other_us;
}

/*
 * How far the RTT may be above the lowest one before there is a standing queue.
 *
 * The lowest RTT is often that of the handshake's short packets. Full ones take longer, and
 * packets of other flows that merely cross, and an ACK that waits for its second packet, are no
 * standing queue either. But the handshake may have met a queue itself. A round trip that was
 * hardly longer shows that, and so the slack ends with the lowest one; else connections that
 * began in a queue would get two thirds of a link, and those that did not one third. A quarter
 * stays, for the noise of hosts.
 */
static u32 slack_us(const struct weft_window *window, u32 lowest_us)
{
	u32 round_us = lower_rtt_us(window->lowest_round_us[0], window->lowest_round_us[1]);
	u32 most_us = min_t(u64, SLACK_MAX_US,
			    div_u64((u64)lowest_us * READ_ONCE(weft_slack_percent), 100));

	if (!round_us)
		return most_us;
	return clamp(round_us - min(round_us, lowest_us), most_us / SLACK_LEAST_PART, most_us);
}

/**
 * weft_rtt_base_us() - the RTT up to which there is no standing queue
 * @window: window of the subflow
 * @view: subflow
 *
 * ACKs that waited in a queue come in clumps, and so do the data that they let out: those
 * queue for a while, however small the window. (Without that quarter, a connection beside
 * CUBIC on the way of its ACKs used 63 % of a link.)
 *
 * Return: microseconds.
 */
u32 weft_rtt_base_us(const struct weft_window *window,
		     const struct weft_subflow_view *view)
{
	u32 lowest_us = weft_rtt_lowest_us(window, view);

	return lowest_us + slack_us(window, lowest_us) + window->ack_queueing_us / 4;
}

/**
 * weft_rtt_ack_queueing_us() - how long the last ACK waited in queues
 * @window: window of the subflow
 * @view: subflow
 *
 * Return: microseconds; its RTT bounds that.
 */
u32 weft_rtt_ack_queueing_us(const struct weft_window *window,
			     const struct weft_subflow_view *view)
{
	u64 wait_us = div_u64((u64)READ_ONCE(window->ack_wait) *
			      window->ack_wait_unit_ns, 1000);
	u32 lowest_us = weft_rtt_lowest_us(window, view);

	if (!READ_ONCE(weft_way_back) || view->rtt_us <= lowest_us)
		return 0;
	return min_t(u64, wait_us, view->rtt_us - lowest_us);
}

/**
 * weft_rtt_us() - the RTT with its standing queues, without the noise of hosts
 * @window: window of the subflow
 * @view: subflow
 *
 * A subflow that has had no ACK recently goes by the controller's RTT, which includes
 * the queues of other traffic.
 *
 * Return: microseconds.
 */
u32 weft_rtt_us(const struct weft_window *window,
		const struct weft_subflow_view *view)
{
	u32 seen_us = lower_rtt_us(window->rtt_us, window->group_rtt_us);

	if (seen_us)
		seen_us += window->ack_queueing_us;
	return max(seen_us ? seen_us : window->controller_rtt_us,
		   weft_rtt_base_us(window, view));
}

/**
 * weft_rtt_guess_us() - what the RTT may be of a subflow that has had no ACK recently
 * @window: window of the subflow
 * @view: subflow
 *
 * If the controller doesn't know its queue either, it is the lowest RTT that the connection has
 * seen, not the controller's: that one is the same for all connections. Where paths differ by a
 * few microseconds, all would take the same one, and keep it full.
 *
 * Return: microseconds.
 */
u32 weft_rtt_guess_us(const struct weft_window *window,
		      const struct weft_subflow_view *view)
{
	bool has_round = window->rtt_us || window->group_rtt_us;

	return has_round || window->controller_rtt_us ? weft_rtt_us(window, view) :
							own_lowest_us(window, view);
}

/**
 * weft_rtt_last_us() - RTT of the last ACK, without what it waited in queues itself
 * @window: window of the subflow
 * @view: subflow
 *
 * Return: microseconds.
 */
u32 weft_rtt_last_us(const struct weft_window *window,
		     const struct weft_subflow_view *view)
{
	return view->rtt_us - min(view->rtt_us, window->ack_queueing_us);
}

/**
 * weft_rtt_take_round() - a round trip is over
 * @window: window of the subflow, updated
 * @rtt_us: the mean of the minima of its groups of ACKs
 */
void weft_rtt_take_round(struct weft_window *window, u32 rtt_us)
{
	/* the first round trip after an idle time has the RTT of short packets in it */
	if (window->rtt_us)
		window->lowest_round_us[0] = lower_rtt_us(window->lowest_round_us[0], rtt_us);
	window->rtt_us = rtt_us;
	window->group_sum_us = 0;
	window->groups = 0;
}

/**
 * weft_rtt_forget() - the queue is gone that RTTs have told of
 * @window: window of the subflow, updated
 */
void weft_rtt_forget(struct weft_window *window)
{
	window->rtt_us = 0;
	window->group_rtt_us = 0;
	window->group_sum_us = 0;
	window->groups = 0;
	window->group_acks = 0;
	window->ack_queueing_us = 0;
}

#ifdef __KERNEL__
#include <linux/moduleparam.h>

module_param(weft_slack_percent, uint, 0644);
MODULE_PARM_DESC(weft_slack_percent,
		 "weft: RTT above the lowest one that is no queue yet, in percent of the lowest, at most 100 us (50)");
module_param(weft_way_back, bool, 0644);
MODULE_PARM_DESC(weft_way_back,
		 "weft: subtract from the RTT what ACKs waited in queues, where switches tell it (1)");
#endif /* __KERNEL__ */
