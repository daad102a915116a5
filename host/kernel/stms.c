// SPDX-License-Identifier: GPL-2.0-only
/*
 * STMS, the Slide Together Multipath Scheduler (Shi et al., "STMS: Improving MPTCP
 * Throughput Under Heterogeneous Networks", USENIX ATC 2018), algorithm 1: the
 * part that its two variants share. They differ in the gap: stms_c.c calculates
 * it, stms_a.c adjusts it.
 *
 *	fast subflow has space:		it sends unsent[0]
 *	else slow subflow has space:	it sends unsent[Gap]
 *
 * The fast subflow sends the Gap packets in between later, so that they and the slow
 * subflow's packet arrive together. Without a packet unsent[Gap], because it is beyond
 * the send window or not written yet, the slow subflow sends nothing.
 *
 * Linux gives data to subflows in the order of their sequence numbers, but a subflow
 * may be given more than its window. So "leave Gap packets for the fast subflow and
 * send the next one on the slow subflow" becomes "put packets in the fast subflow's
 * queue until Gap of them wait there, then give one to the slow subflow". The packets
 * go to the same subflows, and that is decided at the same moment.
 *
 * The paper has two subflows. Here, with more, a subflow is slow compared with each
 * faster one. Before subflow i gets a packet, each faster subflow j gets
 *
 *	Gap_ij = B_j (OWD_i - OWD_j)
 *
 * packets in its queue: its part of the data that arrive before i's packet. A faster
 * subflow with room in its window comes first in any case.
 */
#include "stms.h"

/**
 * weft_stms_true_gap() - the gap of equation 2
 * @fast: the faster subflow
 * @slow: the slower subflow
 *
 * Gap = B_f (OWD_s - OWD_f), with the bandwidth B_f = CWND_f / RTT_f and one-way
 * delays of half of the RTTs.
 *
 * Return: packets, rounded down; 0 when @slow is no slower.
 */
u32 weft_stms_true_gap(const struct weft_subflow_view *fast,
		       const struct weft_subflow_view *slow)
{
	u64 packets;

	if (!fast->srtt_us || slow->srtt_us <= fast->srtt_us)
		return 0;
	packets = (u64)fast->cwnd_packets * (slow->srtt_us - fast->srtt_us);
	return min_t(u64, div64_u64(packets, 2ULL * fast->srtt_us), ~0U);
}

static void start(struct weft_stms *stms)
{
	memset(stms, 0, sizeof(*stms));
	stms->slow = -1;
	stms->started = true;
}

/* Forget the packets reserved for subflows that are gone. */
static void forget_absent(struct weft_stms *stms, const struct weft_subflow_view *view,
			  unsigned int n)
{
	unsigned int slot;

	for (slot = 0; slot < WEFT_PATHS_MAX; slot++)
		if (stms->reserved[slot] && weft_find_slot(view, n, slot) < 0)
			stms->reserved[slot] = 0;
	if (stms->slow >= 0 && weft_find_slot(view, n, stms->slow) < 0)
		stms->slow = -1;
}

/* The fastest subflow with reserved packets, or WEFT_WAIT for none. */
static int fastest_reserved(const struct weft_stms *stms,
			    const struct weft_subflow_view *view, unsigned int n)
{
	int best = WEFT_WAIT;
	unsigned int i;

	for (i = 0; i < n; i++)
		if (stms->reserved[view[i].slot] &&
		    (best < 0 || view[i].srtt_us < view[best].srtt_us))
			best = i;
	return best;
}

/* Reserve for the faster subflows the packets that come before one of @slow. */
static u64 reserve(struct weft_stms *stms, const struct weft_subflow_view *view,
		   unsigned int n, int slow, weft_stms_gap_fn *gap,
		   void *context)
{
	u64 total = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		u32 wanted = 0;

		if (view[i].srtt_us < view[slow].srtt_us)
			wanted = gap(context, &view[i], &view[slow]);
		stms->reserved[view[i].slot] =
			wanted - min(wanted, view[i].queued_packets);
		total += stms->reserved[view[i].slot];
	}
	return total;
}

/**
 * weft_stms_slide() - algorithm 1
 * @stms: state, zeroed at first
 * @view: usable subflows
 * @n: entries of @view, at least 1
 * @conn: connection
 * @gap: how many packets the faster one of two subflows carries first
 * @context: for @gap
 *
 * Return: index of the subflow for the next packet, or WEFT_WAIT.
 */
int weft_stms_slide(struct weft_stms *stms, const struct weft_subflow_view *view,
		    unsigned int n, const struct weft_conn_view *conn,
		    weft_stms_gap_fn *gap, void *context)
{
	u64 packets;
	int next, fast, choice;

	if (!stms->started)
		start(stms);
	if (conn->last_slot >= 0) {
		if (stms->reserved[conn->last_slot])
			stms->reserved[conn->last_slot]--;
		else if (conn->last_slot == stms->slow)
			stms->slow = -1;
	}
	forget_absent(stms, view, n);

	/* first the reserved packets, then the slow subflow's */
	next = fastest_reserved(stms, view, n);
	if (next == WEFT_WAIT && stms->slow >= 0)
		next = weft_find_slot(view, n, stms->slow);
	if (next >= 0 && view[next].writable)
		return next;
	if (next >= 0 && weft_ack_is_due(&view[next]))
		return WEFT_WAIT;
	start(stms);

	fast = weft_fastest(view, n, false);
	choice = weft_fastest(view, n, true);
	if (choice == fast || choice == WEFT_WAIT)
		return choice;

	packets = reserve(stms, view, n, choice, gap, context) + 1;
	if (packets > weft_packets(weft_sendable_bytes(conn), &view[choice])) {
		start(stms);
		return weft_ack_is_due(&view[fast]) ? WEFT_WAIT : choice;
	}
	stms->slow = view[choice].slot;
	next = fastest_reserved(stms, view, n);
	if (next == WEFT_WAIT)
		next = choice;
	if (view[next].writable)
		return next;
	return weft_ack_is_due(&view[next]) ? WEFT_WAIT : choice;
}
