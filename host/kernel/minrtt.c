// SPDX-License-Identifier: GPL-2.0
/*
 * minrtt: the subflow of the lowest smoothed RTT that has window space.
 *
 * This is the "default" of the out-of-tree MPTCP 0.9x kernels, without its
 * opportunistic retransmission and penalisation: packets go to the fastest subflow
 * until its congestion window (or the receive window) is full, then to the next
 * fastest. A subflow whose RTT is not known yet counts as the fastest, so that it
 * gets to know it.
 */
#include <net/tcp.h>

#include "weft.h"

static int weft_minrtt_get_send(struct mptcp_sock *msk)
{
	unsigned int i, best = WEFT_PATHS_MAX;
	struct weft_usable usable;
	u32 best_rtt = U32_MAX;
	int best_space = 0;

	if (!weft_usable(msk, &usable))
		return -EINVAL;
	weft_account(msk);

	for (i = 0; i < usable.count; i++) {
		const struct sock *ssk = mptcp_subflow_tcp_sock(usable.subflow[i]);
		u32 rtt = READ_ONCE(tcp_sk(ssk)->srtt_us);
		int space = weft_window_space(ssk);

		if (space > 0 && rtt < best_rtt) {
			best = i;
			best_rtt = rtt;
			best_space = space;
		}
	}
	if (best == WEFT_PATHS_MAX)
		return -EAGAIN;
	return weft_grant(msk, usable.subflow[best], usable.slot[best],
			  best_space);
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
