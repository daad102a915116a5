// SPDX-License-Identifier: GPL-2.0-only
/*
 * rr_packet: one packet per subflow in turn (MPTCP-RB, section 4.1 and figure 6).
 *
 * This is the smallest change that interleaves: consecutive packets go to different
 * subflows, whatever their RTTs. A subflow whose window is full loses its turn. rb keeps
 * the turn and lets the packet wait in that subflow's queue. So with equal RTTs, the two
 * order packets the same way only while windows have room.
 */
#include "view.h"

struct weft_rr_packet {
	u8 next;	/* the packet goes to this slot, or to the next one with room */
};

/* The usable subflow with room whose slot comes next at or after @from. */
static int next_with_space(const struct weft_subflow_view *view, unsigned int n, u8 from)
{
	unsigned int i, ahead, best_ahead = ~0U;
	int best = WEFT_WAIT;

	for (i = 0; i < n; i++) {
		ahead = (view[i].slot + WEFT_PATHS_MAX - from) % WEFT_PATHS_MAX;
		if (view[i].space_bytes && ahead < best_ahead) {
			best_ahead = ahead;
			best = i;
		}
	}
	return best;
}

static int weft_rr_packet_choose(void *state, const struct weft_subflow_view *view,
				 unsigned int n,
				 const struct weft_conn_view *conn)
{
	struct weft_rr_packet *rr = state;

	if (conn->last_slot >= 0)
		rr->next = (conn->last_slot + 1) % WEFT_PATHS_MAX;
	return next_with_space(view, n, rr->next);
}

#ifdef __KERNEL__
#include "weft.h"

static int weft_rr_packet_get_send(struct mptcp_sock *msk)
{
	return weft_send_packet(msk, sizeof(struct weft_rr_packet),
				weft_rr_packet_choose);
}

WEFT_SCHED_CALLBACKS(weft_rr_packet_get_send)

struct mptcp_sched_ops weft_rr_packet = {
	WEFT_SCHED_OPS(weft_rr_packet_get_send),
	.init		= weft_conn_init,
	.release	= weft_conn_release,
	.exact_burst	= true,
	.name		= "rr_packet",
	.owner		= THIS_MODULE,
};
#endif /* __KERNEL__ */
