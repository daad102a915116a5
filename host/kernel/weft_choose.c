// SPDX-License-Identifier: GPL-2.0-only
/*
 * The decision of the scheduler weft: which subflow gets the next packet.
 *
 * Of the subflows with room the packet takes the one on which it arrives first, after
 *
 *	rtt / 2 + outstanding rtt / window
 *
 * where rtt / 2 leaves out what ACKs wait in queues. As in ecf, it waits for the
 * fastest subflow instead if that one would finish the rest of the data sooner.
 *
 * No packet is held back because it might block the send window, as blest does: the
 * send window is small while it grows, and paths would stay idle.
 *
 * To see what this choice brings, weft_choice replaces it: by the lowest RTT as in minrtt, or
 * by the next subflow in turn, which is rb's pattern where all paths are alike. Windows,
 * rescue and buffers stay.
 */
#include "weft_rtt.h"
#include "weft_sched.h"

/* Values of weft_choice. */
enum { BY_ARRIVAL, BY_RTT, IN_TURN };

/* The window of WEFT_LEAST_PACKETS. */
#define LEAST_WINDOW	((s32)(WEFT_LEAST_PACKETS * WEFT_WINDOW_ONE))

static unsigned int weft_choice = BY_ARRIVAL;

static u32 effective_size(const struct weft_window *window,
			  const struct weft_subflow_view *view)
{
	return weft_window_counts(window) ? window->size :
					    view->cwnd_packets * WEFT_WINDOW_ONE;
}

/*
 * Whether Nagle's algorithm would keep the next packet, a short one, until the one before
 * is acknowledged. The receiver may delay that ACK. A packet is short at the end of the
 * data, and also at the end of the receiver's window.
 */
static bool would_wait_for_ack(const struct weft_subflow_view *view,
			       const struct weft_conn_view *conn)
{
	return view->nagle_delays_short &&
	       weft_sendable_bytes(conn) < view->payload_bytes;
}

/*
 * Whether a subflow still sends again what has arrived by others, as after a rescue: a
 * packet would wait behind that, or for a timeout.
 */
static bool is_behind(const struct weft_subflow_view *view,
		      const struct weft_conn_view *conn)
{
	return !conn->unacked_bytes && weft_outstanding(view);
}

/*
 * What the members whose windows are smaller than two packets may add together, in
 * 1 / WEFT_WINDOW_ONE. Larger windows don't count: a subflow with such a one, which always uses
 * it up, would leave no turn to the others, and they would learn nothing of their paths.
 */
static s32 room_of(const struct weft_sched *sched, const struct weft_subflow_view *view,
		   unsigned int n, u32 members)
{
	s32 windows = 0, taken = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		const struct weft_window *window = &sched->window[view[i].slot];

		if (!(members & 1U << i) || !weft_window_counts(window) ||
		    (s32)window->size >= LEAST_WINDOW)
			continue;
		windows += window->size;
		taken += weft_outstanding(&view[i]) * WEFT_WINDOW_ONE;
	}
	return max(windows, LEAST_WINDOW) - taken;
}

/*
 * Whether the window lets a subflow have one more packet. Where windows are smaller than
 * two packets, subflows take turns: one begins when these have room for two together.
 */
static bool has_window(const struct weft_window *window, u32 packets, s32 room)
{
	if ((s32)window->size >= LEAST_WINDOW)
		return packets * WEFT_WINDOW_ONE < window->size;
	return packets < WEFT_LEAST_PACKETS &&
	       room >= LEAST_WINDOW - (s32)(packets * WEFT_WINDOW_ONE);
}

/* Whether a subflow may get one more packet; @room as room_of() says. */
static bool may_take(struct weft_sched *sched, const struct weft_subflow_view *view,
		     const struct weft_conn_view *conn, s32 room)
{
	struct weft_window *window = &sched->window[view->slot];

	if (!view->space_bytes || would_wait_for_ack(view, conn))
		return false;
	if (!weft_window_counts(window) ||
	    has_window(window, weft_outstanding(view), room))
		return true;
	window->is_limiting = true;
	return false;
}

/* When a packet would arrive, in microseconds from now. */
static u64 arrival_us(const struct weft_window *window,
		      const struct weft_subflow_view *view)
{
	u64 rtt_us = weft_rtt_us(window, view);

	return (rtt_us - window->ack_queueing_us) / 2 +
	       div_u64(weft_outstanding(view) * rtt_us * WEFT_WINDOW_ONE,
		       effective_size(window, view));
}

/* The subflow with the lowest gets the packet. */
static u64 cost(const struct weft_sched *sched, const struct weft_subflow_view *view)
{
	switch (READ_ONCE(weft_choice)) {
	case BY_RTT:
		return view->srtt_us;
	case IN_TURN:
		return (view->slot + WEFT_PATHS_MAX - sched->next_slot) % WEFT_PATHS_MAX;
	default:
		return arrival_us(&sched->window[view->slot], view);
	}
}

/* Whether the rest of the data is done sooner by waiting for the fastest subflow. */
static bool is_worth_waiting(const struct weft_sched *sched,
			     const struct weft_subflow_view *fast,
			     const struct weft_subflow_view *slow,
			     const struct weft_conn_view *conn)
{
	u64 fast_us = weft_rtt_us(&sched->window[fast->slot], fast);
	u64 slow_us = weft_rtt_us(&sched->window[slow->slot], slow);
	u32 size = effective_size(&sched->window[fast->slot], fast);
	u64 left = weft_packets(conn->unsent_bytes, fast);

	if (READ_ONCE(weft_choice) != BY_ARRIVAL)
		return false;
	/* the ACK of a single packet may be delayed */
	if (slow_us <= fast_us || weft_outstanding(fast) < 2)
		return false;
	/* one window per round trip; the last one arrives after half of a round trip */
	return !conn->app_is_blocked &&
	       div_u64(left * fast_us, max(size / WEFT_WINDOW_ONE, 1U)) + fast_us < slow_us;
}

/* Of the subflows in @members (bit per index), the one that gets the packet. */
static int best_of(struct weft_sched *sched, const struct weft_subflow_view *view,
		   unsigned int n, u32 members, const struct weft_conn_view *conn, s32 room)
{
	int best = WEFT_WAIT;
	u64 lowest = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		u64 its;

		if (!(members & 1U << i) || !may_take(sched, &view[i], conn, room))
			continue;
		its = cost(sched, &view[i]);
		if (best == WEFT_WAIT || its < lowest) {
			best = i;
			lowest = its;
		}
	}
	return best;
}

/**
 * weft_sched_choose() - the decision, see weft_choose_fn
 * @state: struct weft_sched
 * @view: usable subflows
 * @n: entries of @view, at least 1
 * @conn: connection
 *
 * Return: index of the subflow for the next packet, or WEFT_WAIT.
 */
int weft_sched_choose(void *state, const struct weft_subflow_view *view,
		      unsigned int n, const struct weft_conn_view *conn)
{
	int best, fast = WEFT_WAIT;
	struct weft_sched *sched = state;
	bool is_due = false, is_idle = true;
	struct weft_window_conn shared = {
		.now_us = conn->now_us,
		.n = n,
	};
	unsigned int i, silent = 0;
	u32 members = 0;
	s32 room;
	u64 left;

	if (conn->last_slot >= 0) {
		weft_seq_map_add(&sched->seq_map, sched->last_seq, conn->next_seq,
				 conn->last_slot);
		sched->next_slot = (conn->last_slot + 1) % WEFT_PATHS_MAX;
	}
	if (conn->last_slot >= 0 || !sched->is_started)
		sched->last_seq = conn->next_seq;
	sched->is_started = true;
	for (i = 0; i < n; i++)
		is_idle &= !weft_outstanding(&view[i]);
	left = weft_size_left(&sched->size, conn, is_idle);
	shared.is_idle = is_idle;
	shared.weight = weft_size_weight(left, conn);
	shared.first_packets = weft_window_first_packets(left, n, is_idle);

	for (i = 0; i < n; i++) {
		struct weft_window *window = &sched->window[view[i].slot];

		if (weft_window_update(window, &view[i], &shared))
			sched->advice.known &= ~(1U << view[i].slot);
		sched->advice.is_incomplete |=
			!(sched->advice.known & 1U << view[i].slot);
		is_due |= weft_ack_is_due(&view[i]);
		if (sched->advice.excluded & 1U << view[i].slot)
			continue;
		if (weft_window_is_silent(window, &view[i], silent, conn->now_us)) {
			silent++;
			continue;
		}
		if (is_behind(&view[i], conn))
			continue;
		if (!would_wait_for_ack(&view[i], conn))
			members |= 1U << i;
		if (fast == WEFT_WAIT || view[i].srtt_us < view[fast].srtt_us)
			fast = i;
	}

	room = room_of(sched, view, n, members);
	members = weft_crowd_limit(&sched->crowd, sched->window, view, n, members,
				   conn->now_us);
	best = best_of(sched, view, n, members, conn, room);
	if (best == WEFT_WAIT && !members)
		best = best_of(sched, view, n, ~0U, conn, room);
	if (best == WEFT_WAIT)
		return is_due ? WEFT_WAIT : weft_fastest(view, n, true);
	if (best == fast || fast == WEFT_WAIT ||
	    !is_worth_waiting(sched, &view[fast], &view[best], conn))
		return best;
	return may_take(sched, &view[fast], conn, room) ? fast : WEFT_WAIT;
}

/**
 * weft_sched_carrier() - which subflow has carried a byte
 * @sched: state of its connection
 * @seq: data sequence number of the byte, at the left edge of the send window
 * @picked: slot of the last decision
 *
 * The map learns where data went from the next decision. After the end of a message
 * there is none, and it is often the end that is missing.
 *
 * Return: the slot, or -1 if that is not known any more.
 */
int weft_sched_carrier(struct weft_sched *sched, u64 seq, u8 picked)
{
	if ((s64)(seq - sched->last_seq) >= 0)
		return picked;
	return weft_seq_map_find(&sched->seq_map, seq);
}

#ifdef __KERNEL__
#include <linux/moduleparam.h>

module_param(weft_choice, uint, 0644);
MODULE_PARM_DESC(weft_choice,
		 "weft: the subflow that gets a packet is that on which it arrives first (0), has the lowest RTT (1), or is the next in turn (2) (0)");
#endif /* __KERNEL__ */
