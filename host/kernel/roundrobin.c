// SPDX-License-Identifier: GPL-2.0-only
/*
 * roundrobin: fills the window of each subflow in turn.
 *
 * This is the "roundrobin" of the out-of-tree MPTCP 0.9x kernels with its default
 * cwnd_limited=1, which the papers compare with. A subflow is given packets until its
 * congestion window (or the receive window) is full, then the next one is. So each
 * subflow carries one run of consecutive data per round trip.
 */
#include "weft.h"

static int weft_roundrobin_get_send(struct mptcp_sock *msk)
{
	struct weft_usable usable;
	struct weft_conn *conn;
	unsigned int first, i;

	if (!weft_usable(msk, &usable))
		return -EINVAL;
	conn = weft_conn(msk);
	weft_account(msk);

	/* begin with the one that is being filled; if it is gone, with the first */
	for (first = 0; first < usable.count; first++)
		if (usable.slot[first] == conn->picked)
			break;

	for (i = 0; i < usable.count; i++) {
		unsigned int next = (first + i) % usable.count;
		struct mptcp_subflow_context *subflow = usable.subflow[next];
		int space = weft_window_space(mptcp_subflow_tcp_sock(subflow));

		if (space > 0)
			return weft_grant(msk, subflow, usable.slot[next], space);
	}
	return -EAGAIN;
}

WEFT_SCHED_CALLBACKS(weft_roundrobin_get_send)

struct mptcp_sched_ops weft_roundrobin = {
	WEFT_SCHED_OPS(weft_roundrobin_get_send),
	.init		= weft_conn_init,
	.release	= weft_conn_release,
	.exact_burst	= true,
	.name		= "roundrobin",
	.owner		= THIS_MODULE,
};
