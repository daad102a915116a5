// SPDX-License-Identifier: GPL-2.0-only
/*
 * weighted: the first subflow carries 3/4 of the data of a connection with two.
 *
 * It is the smooth weighted round robin of load balancers, for packets. Data give every
 * subflow credit in proportion to its weight, and the subflow that carries them pays for
 * all. The subflow with the most credit gets the next packet; while it has no room, the
 * packet waits.
 */
#include <linux/device/driver.h>	/* module_driver() */
#include <linux/module.h>

#include "weft.h"

struct weighted {
	s64 credit[WEFT_PATHS_MAX];
	u64 last_seq;
};

static s64 weight(int slot)
{
	return slot == 0 ? 3 : 1;
}

static int weighted_choose(void *state, const struct weft_subflow_view *view,
			   unsigned int n, const struct weft_conn_view *conn)
{
	struct weighted *weighted = state;
	s64 *credit = weighted->credit, bytes = conn->next_seq - weighted->last_seq;
	unsigned int i, best = 0;

	for (i = 0; i < n && conn->last_slot >= 0; i++) {
		credit[view[i].slot] += bytes * weight(view[i].slot);
		credit[conn->last_slot] -= bytes * weight(view[i].slot);
	}
	weighted->last_seq = conn->next_seq;

	for (i = 1; i < n; i++)
		if (credit[view[i].slot] > credit[view[best].slot])
			best = i;
	if (view[best].space_bytes)
		return best;
	/* only an ACK ends the wait */
	return weft_ack_is_due(&view[best]) ? WEFT_WAIT : weft_fastest(view, n, true);
}

static int weighted_get_send(struct mptcp_sock *msk)
{
	return weft_send_packet(msk, sizeof(struct weighted), weighted_choose);
}

WEFT_SCHED_CALLBACKS(weighted_get_send)

static struct mptcp_sched_ops weighted = {
	WEFT_SCHED_OPS(weighted_get_send),
	.init		= weft_conn_init,
	.release	= weft_conn_release,
	.exact_burst	= true,
	.name		= "weighted",
	.owner		= THIS_MODULE,
};
module_driver(weighted, mptcp_register_scheduler, mptcp_unregister_scheduler);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("MPTCP scheduler that divides data by weights");
