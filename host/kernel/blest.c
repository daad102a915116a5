// SPDX-License-Identifier: GPL-2.0-only
/*
 * blest: BLocking ESTimation (Ferlin, Alay, Mehani, Boreli: "BLEST: Blocking
 * Estimation-based MPTCP Scheduler for Heterogeneous Networks", IFIP Networking
 * 2016).
 *
 * While the fastest subflow F has room, packets go there. When F has none, a slower
 * subflow S may take the packet. That packet occupies the connection's send window M
 * for RTT_S, and F must not run out of window meanwhile. In that time F would send,
 * its window growing by one packet per round trip,
 *
 *	rtts = RTT_S / RTT_F
 *	X    = MSS_F (CWND_F + (rtts - 1) / 2) rtts
 *
 * and S is skipped, waiting for F, when
 *
 *	X lambda > |M| - MSS_S (inflight_S + 1)
 *
 * lambda corrects that estimate once per round trip of F. It starts at 1. It grows when
 * the connection was blocked all the same (the window was full while F had room), and
 * shrinks when it was not. The paper leaves its step and bounds to the implementation;
 * here they are module parameters.
 *
 * |M| is the smaller one of the peer's receive window and the send buffer, since either
 * blocks the connection.
 */
#include "view.h"

#define LAMBDA_ONE	1000U	/* lambda is in thousandths */

/**
 * struct weft_blest - state of a connection
 * @lambda: in thousandths, 0 before the first decision
 * @update_us: when lambda was last looked at
 * @blocked: since then, the window was full while F had room
 */
struct weft_blest {
	u32	lambda;
	bool	blocked;
	u64	update_us;
};

static unsigned int blest_lambda_up_permille = 40;
static unsigned int blest_lambda_down_permille = 10;
static unsigned int blest_lambda_max_permille = 1300;

static void update_lambda(struct weft_blest *blest, u32 fast_srtt_us, u64 now_us)
{
	if (!blest->lambda) {
		blest->lambda = LAMBDA_ONE;
		blest->update_us = now_us;
	}
	if (now_us - blest->update_us < fast_srtt_us)
		return;

	if (blest->blocked)
		blest->lambda = min(blest->lambda + blest_lambda_up_permille,
				    max(blest_lambda_max_permille, LAMBDA_ONE));
	else
		blest->lambda = max(blest->lambda,
				    LAMBDA_ONE + blest_lambda_down_permille) -
				blest_lambda_down_permille;
	blest->blocked = false;
	blest->update_us = now_us;
}

/*
 * X in bytes: what F sends during a round trip of S.
 *
 * rtts is kept in 1/1024; at most 2^20 (an RTT ratio of 1000 is cut there), CWND
 * below 2^20 packets and MSS below 2^16, so that 64 bits hold the product.
 */
static u64 sent_meanwhile(const struct weft_subflow_view *f, const struct weft_subflow_view *s)
{
	u64 rtts = min_t(u64, div64_u64((u64)s->srtt_us << 10,
					max(f->srtt_us, 1U)), 1U << 20);
	u64 cwnd = min(f->cwnd_packets, 1U << 20);
	u64 packets = ((cwnd << 10) + (rtts - min_t(u64, rtts, 1024)) / 2) * rtts;

	return (packets >> 20) * f->payload_bytes;
}

static int weft_blest_choose(void *state, const struct weft_subflow_view *view,
			     unsigned int n, const struct weft_conn_view *conn)
{
	int fast = weft_fastest(view, n, false);
	int slow = weft_fastest(view, n, true);
	const struct weft_subflow_view *f = &view[fast];
	struct weft_blest *blest = state;
	u64 sent, taken;

	update_lambda(blest, f->srtt_us, conn->now_us);
	if (f->space_bytes && !conn->window_bytes)
		blest->blocked = true;
	if (slow == fast || slow == WEFT_WAIT)
		return slow;

	sent = div64_u64(sent_meanwhile(f, &view[slow]) * blest->lambda,
			 LAMBDA_ONE);
	taken = ((u64)view[slow].in_flight_packets + 1) * view[slow].payload_bytes;
	if (sent + taken > conn->send_window_bytes && weft_ack_is_due(f))
		return WEFT_WAIT;
	return slow;
}

#ifdef __KERNEL__
#include <linux/moduleparam.h>

#include "weft.h"

module_param(blest_lambda_up_permille, uint, 0644);
MODULE_PARM_DESC(blest_lambda_up_permille, "blest: added to lambda after blocking");
module_param(blest_lambda_down_permille, uint, 0644);
MODULE_PARM_DESC(blest_lambda_down_permille, "blest: subtracted from lambda without blocking");
module_param(blest_lambda_max_permille, uint, 0644);
MODULE_PARM_DESC(blest_lambda_max_permille, "blest: lambda is at most this");

static int weft_blest_get_send(struct mptcp_sock *msk)
{
	return weft_send_packet(msk, sizeof(struct weft_blest), weft_blest_choose);
}

/*
 * A full send buffer blocks the connection as a full receive window does, but the core
 * asks for no decision then.
 */
static void weft_blest_data_acked(struct mptcp_sock *msk, struct sock *ssk,
				  const struct sk_buff *skb, u64 snd_una)
{
	struct weft_blest *blest = weft_peek_state(msk);

	/* the owner of the socket may change the list of subflows; wait for the next ACK */
	if (blest && !sock_owned_by_user((struct sock *)msk) &&
	    weft_sender_is_blocked(msk) && weft_fastest_idle(msk))
		blest->blocked = true;
	weft_data_acked(msk, ssk, skb, snd_una);
}

WEFT_SCHED_CALLBACKS(weft_blest_get_send)

struct mptcp_sched_ops weft_blest = {
	WEFT_SCHED_OPS_RETRANS(weft_blest_get_send, weft_get_retrans),
	.init		= weft_conn_init,
	.release	= weft_conn_release,
	.data_acked	= weft_blest_data_acked,
	.exact_burst	= true,
	.name		= "blest",
	.owner		= THIS_MODULE,
};
#endif /* __KERNEL__ */
