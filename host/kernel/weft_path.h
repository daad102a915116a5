/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The path that a packet takes with the scheduler weft.
 *
 * Of the subflows with room the packet takes that on which it arrives first,
 *
 *	rtt / 2 + under_way rtt / window
 *
 * (rtt / 2 without what ACKs wait), unless so little is left to send that the fastest
 * would be done with it before, as in ecf. No packet waits because it might block the
 * send window, as in blest: that is short while it grows, and paths then stay idle.
 */
#ifndef _WEFT_PATH_H
#define _WEFT_PATH_H

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
	u32 weight = size_weight(outlook);
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

		if (observe(path, &view[i], n, weight, outlook->now_us))
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

#endif /* _WEFT_PATH_H */
