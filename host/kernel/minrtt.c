// SPDX-License-Identifier: GPL-2.0-only
/*
 * minrtt: the subflow with the lowest smoothed RTT among those with window space.
 *
 * This is the "default" of the out-of-tree MPTCP 0.9x kernels, without opportunistic
 * retransmission and penalisation (minrtt_pr has them). Packets go to the fastest
 * subflow until its congestion window (or the receive window) is full, then to the next
 * fastest (Raiciu et al., "How Hard Can It Be?", NSDI 2012). A subflow with an unknown
 * RTT counts as the fastest, since its RTT becomes known only when it carries data.
 */
#include "weft.h"

static int weft_minrtt_get_send(struct mptcp_sock *msk)
{
	struct weft_subflow_view view[WEFT_PATHS_MAX];
	struct weft_usable usable;
	int choice;

	if (!weft_usable(msk, &usable))
		return -EINVAL;
	weft_account(msk);
	weft_view_subflows(msk, &usable, view);

	choice = weft_fastest(view, usable.count, true);
	if (choice == WEFT_WAIT)
		return -EAGAIN;
	return weft_grant(msk, usable.subflow[choice], usable.slot[choice],
			  view[choice].space_bytes);
}

WEFT_SCHED_CALLBACKS(weft_minrtt_get_send)

struct mptcp_sched_ops weft_minrtt = {
	WEFT_SCHED_OPS(weft_minrtt_get_send),
	.init		= weft_conn_init,
	.release	= weft_conn_release,
	.exact_burst	= true,
	.name		= "minrtt",
	.owner		= THIS_MODULE,
};
