// SPDX-License-Identifier: GPL-2.0-only
/*
 * otias: Out-of-order Transmission for In-order Arrival (Yang, Wang, Amer: WAINA
 * 2014; algorithm 2 in the appendix of the BLEST talk).
 *
 * For each packet, the time until it would arrive is estimated for each subflow j:
 *
 *	pkt_can_be_sent_j = cwnd_j - unacked_j
 *	RTT_to_wait_j     = floor((not_yet_sent_j - pkt_can_be_sent_j) / cwnd_j)
 *	T_j               = (RTT_to_wait_j + 1/2) srtt_j
 *
 * The subflow with the smallest T_j takes it, whether its window has room or not. If
 * there is no room, the packet waits in the subflow's queue, which is what
 * not_yet_sent_j counts. Forward delays are assumed to be half of the RTT.
 *
 * RTT_to_wait is at least zero; with room in the window the formula would be negative.
 * A subflow whose queue is full is not available. Reinjection is the common one of this
 * module. (The paper has none, which the BLEST authors found to be harmful.)
 */
#include "view.h"

/* 2 T_j, in us */
static u64 twice_arrival_us(const struct weft_subflow_view *view)
{
	u64 rounds = 0;
	u32 can_send = 0;

	if (view->cwnd_packets > view->in_flight_packets)
		can_send = view->cwnd_packets - view->in_flight_packets;
	if (view->queued_packets > can_send)
		rounds = (view->queued_packets - can_send) / view->cwnd_packets;
	return (2 * rounds + 1) * view->srtt_us;
}

static int weft_otias_choose(void *state, const struct weft_subflow_view *view,
			     unsigned int n, const struct weft_conn_view *conn)
{
	u64 best_us = ~0ULL;
	int best = WEFT_WAIT;
	unsigned int i;

	for (i = 0; i < n; i++) {
		u64 arrival_us = twice_arrival_us(&view[i]);

		if (view[i].writable && arrival_us < best_us) {
			best_us = arrival_us;
			best = i;
		}
	}
	return best;
}

#ifdef __KERNEL__
#include "weft.h"

static int weft_otias_get_send(struct mptcp_sock *msk)
{
	return weft_send_packet(msk, 0, weft_otias_choose);
}

WEFT_SCHED_CALLBACKS(weft_otias_get_send)

struct mptcp_sched_ops weft_otias = {
	WEFT_SCHED_OPS(weft_otias_get_send),
	.init		= weft_conn_init,
	.release	= weft_conn_release,
	.exact_burst	= true,
	.name		= "otias",
	.owner		= THIS_MODULE,
};
#endif /* __KERNEL__ */
