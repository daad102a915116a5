// SPDX-License-Identifier: GPL-2.0-only
/*
 * redundant: every packet on every subflow (ReMP TCP: Froemmgen et al., "ReMP TCP:
 * Low Latency Multipath TCP", ICC 2016). It trades bandwidth for latency: each packet
 * arrives as early as on the path that is the fastest for it.
 *
 * All subflows whose queue has room are marked. In the core (mptcp_sched_ops.redundant)
 * a subflow first sends the data that others have sent and it has not, and then new
 * data. A subflow that cannot keep up continues where it was when it has room again. It
 * skips data that have been acknowledged meanwhile, so it does not hold up the others.
 */
#include "weft.h"

/* Count what each subflow has been given; several have been given the same data. */
static void book(struct mptcp_sock *msk, const struct weft_usable *usable)
{
	struct weft_conn *conn = weft_conn(msk);
	unsigned int i;

	for (i = 0; i < usable->count; i++) {
		const struct mptcp_subflow_context *subflow = usable->subflow[i];
		struct weft_subflow *entry = &conn->subflow[usable->slot[i]];
		u64 bytes = subflow->copied_bytes - entry->bytes;

		entry->bytes += bytes;
		entry->packets += DIV_ROUND_UP_ULL(bytes,
			weft_packet_payload(mptcp_subflow_tcp_sock(subflow)));
	}
}

static int weft_redundant_get_send(struct mptcp_sock *msk)
{
	struct weft_usable usable;
	int err = -EAGAIN;
	unsigned int i;

	if (!weft_usable(msk, &usable))
		return -EINVAL;
	book(msk, &usable);

	for (i = 0; i < usable.count; i++) {
		if (!sk_stream_memory_free(mptcp_subflow_tcp_sock(usable.subflow[i])))
			continue;
		mptcp_subflow_set_scheduled(usable.subflow[i], true);
		err = 0;
	}
	if (!err)
		msk->snd_burst = 1;
	return err;
}

WEFT_SCHED_CALLBACKS(weft_redundant_get_send)

struct mptcp_sched_ops weft_redundant = {
	WEFT_SCHED_OPS(weft_redundant_get_send),
	.init		= weft_conn_init,
	.release	= weft_conn_release,
	.exact_burst	= true,
	.redundant	= true,
	.name		= "redundant",
	.owner		= THIS_MODULE,
};
