// SPDX-License-Identifier: GPL-2.0-only
/*
 * stms_c: STMS with a calculated gap (STMS-C). It is calculated from congestion windows
 * and smoothed RTTs each time a slow subflow is about to get a packet. The part that
 * stms_c shares with stms_a is in stms.c.
 */
#include "stms.h"

static u32 calculated_gap(void *context, const struct weft_subflow_view *fast,
			  const struct weft_subflow_view *slow)
{
	return weft_stms_true_gap(fast, slow);
}

static int weft_stms_c_choose(void *state, const struct weft_subflow_view *view,
			      unsigned int n, const struct weft_conn_view *conn)
{
	return weft_stms_slide(state, view, n, conn, calculated_gap, NULL);
}

#ifdef __KERNEL__
#include "weft.h"

static int weft_stms_c_get_send(struct mptcp_sock *msk)
{
	return weft_send_packet(msk, sizeof(struct weft_stms),
				weft_stms_c_choose);
}

WEFT_SCHED_CALLBACKS(weft_stms_c_get_send)

struct mptcp_sched_ops weft_stms_c = {
	WEFT_SCHED_OPS(weft_stms_c_get_send),
	.init		= weft_conn_init,
	.release	= weft_conn_release,
	.exact_burst	= true,
	.name		= "stms_c",
	.owner		= THIS_MODULE,
};
#endif /* __KERNEL__ */
