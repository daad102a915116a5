// SPDX-License-Identifier: GPL-2.0-only
/*
 * ecf: Earliest Completion First (Lim, Nahum, Towsley, Gibbens: "ECF: An MPTCP
 * Path Scheduler to Manage Heterogeneous Paths", CoNEXT 2017, algorithm 1).
 *
 * While the fastest subflow f has room, packets go there. When it has none, the next
 * fastest subflow with room, s, could take the next packet. If little is left to send,
 * waiting for f may complete it sooner. With k packets that no subflow has been given,
 * f needs about
 *
 *	n RTT_f,  n = 1 + k / CWND_f
 *
 * for them, and s would need RTT_s for one. The packet waits for f when
 *
 *	n RTT_f < (1 + waiting beta) (RTT_s + delta)		and
 *	(k / CWND_s) RTT_s >= 2 RTT_f + delta
 *
 * where delta = max(sigma_f, sigma_s) is the margin for the variation of the RTTs.
 * "waiting" says whether the previous decision was to wait. It is a hysteresis: while
 * the scheduler waits, it keeps waiting up to a larger cost.
 *
 * Like the paper's own kernel, this decides packet by packet.
 */
#include "view.h"

struct weft_ecf {
	bool waiting;
};

/* The paper's beta, in percent; the only parameter. */
static unsigned int ecf_beta_percent = 25;

static int weft_ecf_choose(void *state, const struct weft_subflow_view *view,
			   unsigned int n, const struct weft_conn_view *conn)
{
	int fast = weft_fastest(view, n, false);
	int slow = weft_fastest(view, n, true);
	const struct weft_subflow_view *f = &view[fast];
	u64 left, delta, fast_us, slow_us;
	struct weft_ecf *ecf = state;
	const struct weft_subflow_view *s;

	if (slow == fast || slow == WEFT_WAIT)
		return slow;
	s = &view[slow];
	left = weft_packets(conn->unsent_bytes, f);
	delta = max(f->rttvar_us, s->rttvar_us);

	/* n RTT_f CWND_f, so as not to divide */
	fast_us = (f->cwnd_packets + left) * f->srtt_us;
	slow_us = (s->srtt_us + delta) * f->cwnd_packets;
	if (ecf->waiting)
		slow_us += div64_u64(slow_us * ecf_beta_percent, 100);
	if (fast_us >= slow_us) {
		ecf->waiting = false;
		return slow;
	}
	if (left * s->srtt_us < (2 * f->srtt_us + delta) * s->cwnd_packets)
		return slow;
	if (!weft_ack_is_due(f))
		return slow;
	ecf->waiting = true;
	return WEFT_WAIT;
}

#ifdef __KERNEL__
#include <linux/moduleparam.h>

#include "weft.h"

module_param(ecf_beta_percent, uint, 0644);
MODULE_PARM_DESC(ecf_beta_percent, "ecf: by how much waiting may cost more while the scheduler waits already");

static int weft_ecf_get_send(struct mptcp_sock *msk)
{
	return weft_send_packet(msk, sizeof(struct weft_ecf), weft_ecf_choose);
}

WEFT_SCHED_CALLBACKS(weft_ecf_get_send)

struct mptcp_sched_ops weft_ecf = {
	WEFT_SCHED_OPS(weft_ecf_get_send),
	.init		= weft_conn_init,
	.release	= weft_conn_release,
	.exact_burst	= true,
	.name		= "ecf",
	.owner		= THIS_MODULE,
};
#endif /* __KERNEL__ */
