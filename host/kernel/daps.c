// SPDX-License-Identifier: GPL-2.0-only
/*
 * daps: Delay-Aware Packet Scheduler (Kuhn, Lochin, Mifdaoui, Sarwar, Mehani,
 * Boreli, ICC 2014; algorithm 1 in the appendix of the BLEST talk).
 *
 * DAPS plans a whole run of packets so that they arrive in order, and follows the plan
 * to its end. The run spans the least common multiple of the forward delays D_i. In
 * that time path i transmits lcm / D_i times, C_i packets (its congestion window) each
 * time. These transmissions get the data in the order in which they arrive: the one
 * that arrives first carries the lowest sequence numbers.
 *
 *	D = 1, 3   C = 2, 2	arrivals at 1 2 3 of path A, at 3 of path B
 *				AA AA AA BB, and so on
 *
 * As in the DAPS that the BLEST authors examined, packets go to a path's queue whether
 * its window has room or not, all paths are used, and a run never changes once it has
 * begun.
 *
 * Forward delays are assumed to be half of the RTTs, and are rounded to quarters of the
 * smallest one. (The least common multiple of delays in microseconds would be hours.)
 * If a run still needs more than DAPS_TURNS_MAX transmissions, it spans as many whole
 * periods of the slowest path as fit.
 */
#include "view.h"

#define DAPS_TURNS_MAX	256	/* transmissions in a run */
#define DAPS_UNIT	4	/* units of delay in the smallest one */
#define DAPS_RATIO_MAX	64	/* delays above this many smallest ones count as it */

/**
 * struct weft_daps_turn - some consecutive packets for one path
 * @slot: path
 * @packets: how many
 */
struct weft_daps_turn {
	u8	slot;
	u16	packets;
};

/**
 * struct weft_daps - state of a connection
 * @turns: of the run; 0 when it has to be planned
 * @turn: the current one
 * @left: packets left of it
 * @run: the plan
 */
struct weft_daps {
	u16			turns;
	u16			turn;
	u16			left;
	struct weft_daps_turn	run[DAPS_TURNS_MAX];
};

static u32 greatest_common_divisor(u32 a, u32 b)
{
	while (b) {
		u32 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Delays in quarters of the smallest one. */
static void relative_delays(const struct weft_subflow_view *view, unsigned int n,
			    u32 *delay)
{
	u32 smallest = ~0U;
	unsigned int i;

	for (i = 0; i < n; i++)
		smallest = min(smallest, max(view[i].srtt_us, 1U));
	for (i = 0; i < n; i++) {
		u64 units = div64_u64((u64)view[i].srtt_us * DAPS_UNIT + smallest / 2,
				      smallest);

		delay[i] = max_t(u64, DAPS_UNIT,
				 min_t(u64, units, DAPS_RATIO_MAX * DAPS_UNIT));
	}
}

static u32 turns_in(u32 span, const u32 *delay, unsigned int n)
{
	u32 turns = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		turns += span / delay[i];
	return turns;
}

/* The least common multiple of the delays, or less when the run would be long. */
static u32 span_of(const u32 *delay, unsigned int n)
{
	u32 slowest = delay[0], span = delay[0];
	unsigned int i;

	for (i = 1; i < n; i++) {
		slowest = max(slowest, delay[i]);
		/* a span that is too long stays too long; do not let it overflow */
		if (turns_in(span, delay, n) <= DAPS_TURNS_MAX)
			span *= delay[i] / greatest_common_divisor(delay[i], span);
	}
	if (turns_in(span, delay, n) <= DAPS_TURNS_MAX)
		return span;
	return slowest * max(DAPS_TURNS_MAX / turns_in(slowest, delay, n), 1U);
}

/* Plan a run: transmissions in the order of their arrivals. */
static void plan(struct weft_daps *daps, const struct weft_subflow_view *view,
		 unsigned int n)
{
	u32 delay[WEFT_PATHS_MAX], arrival[WEFT_PATHS_MAX];
	u32 span;
	unsigned int i;

	relative_delays(view, n, delay);
	span = span_of(delay, n);
	for (i = 0; i < n; i++)
		arrival[i] = delay[i];

	daps->turns = 0;
	while (daps->turns < DAPS_TURNS_MAX) {
		struct weft_daps_turn *turn = &daps->run[daps->turns];
		unsigned int first = 0;

		for (i = 1; i < n; i++)
			if (arrival[i] < arrival[first] ||
			    (arrival[i] == arrival[first] &&
			     delay[i] < delay[first]))
				first = i;
		if (arrival[first] > span)
			break;
		turn->slot = view[first].slot;
		turn->packets = min(view[first].cwnd_packets, 0xffffU);
		arrival[first] += delay[first];
		daps->turns++;
	}
	daps->turn = 0;
	daps->left = daps->run[0].packets;
}

/* Go to the next turn of the run, if there is one. */
static void next_turn(struct weft_daps *daps)
{
	if (++daps->turn < daps->turns)
		daps->left = daps->run[daps->turn].packets;
	else
		daps->turns = 0;
}

static int weft_daps_choose(void *state, const struct weft_subflow_view *view,
			    unsigned int n, const struct weft_conn_view *conn)
{
	struct weft_daps *daps = state;
	int i;

	if (conn->last_slot >= 0 && daps->turns && !--daps->left)
		next_turn(daps);

	for (;;) {
		if (!daps->turns)
			plan(daps, view, n);
		i = weft_find_slot(view, n, daps->run[daps->turn].slot);
		if (i >= 0)
			break;
		/* the subflow is gone; a new plan gives it no turns */
		next_turn(daps);
	}
	if (view[i].writable || weft_ack_is_due(&view[i]))
		return view[i].writable ? i : WEFT_WAIT;
	/* the queue is full although nothing is in it: out of memory */
	return weft_fastest(view, n, true);
}

#ifdef __KERNEL__
#include "weft.h"

static int weft_daps_get_send(struct mptcp_sock *msk)
{
	return weft_send_packet(msk, sizeof(struct weft_daps), weft_daps_choose);
}

WEFT_SCHED_CALLBACKS(weft_daps_get_send)

struct mptcp_sched_ops weft_daps = {
	WEFT_SCHED_OPS(weft_daps_get_send),
	.init		= weft_conn_init,
	.release	= weft_conn_release,
	.exact_burst	= true,
	.name		= "daps",
	.owner		= THIS_MODULE,
};
#endif /* __KERNEL__ */
