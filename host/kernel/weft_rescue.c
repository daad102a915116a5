// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rescue of the scheduler weft: data that a subflow holds up are sent again on
 * another one, long before TCP's timeout and MPTCP's, which are 200 ms at least.
 *
 * It begins when the left edge of the send window has not moved for weft_rescue_ms and
 * two round trips. It is for all data that had been sent when the left edge last moved:
 * the data at the left edge at once, and those at every other hole when the left edge gets
 * there.
 *
 * A connection that has written little loses most by waiting. It is rescued after
 * weft_rescue_short_rtts, if that is sooner, and all that it has sent: its first window is
 * often all of it. In an incast that would cost more than it brings, for packets of larger
 * connections wait in queues until others are done.
 *
 * It is over for a hole whose subflow has got anything through since the rescue began:
 * an ACK, or a duplicate that the receiver reports (D-SACK), says that the data were
 * only late. Most of what else was sent before the stall is then on its way, and to
 * send it again would take the link from data that nobody has.
 */
#include <linux/moduleparam.h>
#include <net/tcp.h>

#include "weft_rescue.h"

static unsigned int weft_rescue_ms = 10;
module_param(weft_rescue_ms, uint, 0644);
MODULE_PARM_DESC(weft_rescue_ms,
		 "weft: time without a Data ACK, on top of two RTTs, after which missing data are sent again; 0: never (10)");

static unsigned int weft_rescue_short_rtts = 10;
module_param(weft_rescue_short_rtts, uint, 0644);
MODULE_PARM_DESC(weft_rescue_short_rtts,
		 "weft: RTTs without a Data ACK after which that happens, if sooner, in a connection that has written up to 100 kB since it was last idle (10)");

/* Written since the last idle time, in bytes: up to so much is little. */
#define SHORT_BYTES	100000U

/* How long the left edge may stay where it is before data count as missing. */
static unsigned long rescue_timeout(const struct weft_rescue *rescue)
{
	struct mptcp_sock *msk = rescue->msk;
	struct mptcp_subflow_context *subflow;
	unsigned long timeout;
	u32 srtt_us = 0;

	mptcp_for_each_subflow(msk, subflow)
		srtt_us = max(srtt_us,
			      READ_ONCE(tcp_sk(mptcp_subflow_tcp_sock(subflow))->srtt_us) >> 3);
	timeout = msecs_to_jiffies(READ_ONCE(weft_rescue_ms)) + usecs_to_jiffies(2 * srtt_us);
	if (READ_ONCE(rescue->is_short)) {
		srtt_us *= READ_ONCE(weft_rescue_short_rtts);
		timeout = min(timeout, usecs_to_jiffies(srtt_us));
	}
	return timeout + 1;
}

static void call_worker(struct weft_rescue *rescue)
{
	WRITE_ONCE(rescue->is_due, true);
	set_bit(MPTCP_WORK_RTX, &rescue->msk->flags);
	mptcp_schedule_work((struct sock *)rescue->msk);
}

static void on_timer(struct timer_list *timer)
{
	struct weft_rescue *rescue = container_of(timer, struct weft_rescue, timer);
	unsigned long timeout = READ_ONCE(rescue->timeout);
	unsigned long due = READ_ONCE(rescue->una_jiffies) + timeout;
	struct mptcp_sock *msk = rescue->msk;

	if (weft_low_seq(&msk->snd_una) == weft_low_seq(&msk->write_seq))
		return;
	if (time_before(jiffies, due)) {
		mod_timer(timer, due);
		return;
	}
	WRITE_ONCE(rescue->end_seq, READ_ONCE(rescue->is_short) ? weft_low_seq(&msk->snd_nxt) :
								  READ_ONCE(rescue->sent_seq));
	WRITE_ONCE(rescue->is_new, true);
	WRITE_ONCE(rescue->is_on, true);
	call_worker(rescue);
	/* TCP's own timeouts are about to take over */
	timeout = min_t(unsigned long, 2 * timeout, TCP_RTO_MAX);
	WRITE_ONCE(rescue->timeout, timeout);
	mod_timer(timer, jiffies + timeout);
}

/* The left edge has moved, or is new. */
static void note_left_edge(struct weft_rescue *rescue)
{
	WRITE_ONCE(rescue->una_jiffies, jiffies);
	WRITE_ONCE(rescue->sent_seq, weft_low_seq(&rescue->msk->snd_nxt));
}

/**
 * weft_rescue_data_sent() - data are about to be sent
 * @rescue: of the connection
 * @msk: connection
 * @was_idle: whether all data before them are acknowledged
 * @written_bytes: written by the application since the connection was last idle
 *
 * Context: as get_send().
 */
void weft_rescue_data_sent(struct weft_rescue *rescue, struct mptcp_sock *msk,
			   bool was_idle, u64 written_bytes)
{
	if (!READ_ONCE(weft_rescue_ms))
		return;
	if (!rescue->msk) {
		timer_setup(&rescue->timer, on_timer, 0);
		/* weft_rescue_data_acked() */
		smp_store_release(&rescue->msk, msk);
	}
	WRITE_ONCE(rescue->is_short, written_bytes <= SHORT_BYTES);
	/* the timer of what was sent before an idle time may still run */
	if (was_idle || !timer_pending(&rescue->timer)) {
		note_left_edge(rescue);
		WRITE_ONCE(rescue->timeout, rescue_timeout(rescue));
	}
	if (!timer_pending(&rescue->timer))
		mod_timer(&rescue->timer, jiffies + READ_ONCE(rescue->timeout));
}

/**
 * weft_rescue_data_acked() - a Data ACK has come
 * @rescue: of the connection
 * @msk: connection
 * @snd_una: its left edge after the Data ACK
 *
 * Context: as data_acked().
 */
void weft_rescue_data_acked(struct weft_rescue *rescue, struct mptcp_sock *msk,
			    u64 snd_una)
{
	/* pairs with weft_rescue_data_sent() */
	if (!smp_load_acquire(&rescue->msk) || !after64(snd_una, msk->snd_una))
		return;
	note_left_edge(rescue);
	/* the left edge is at the next hole that the rescue is for */
	if (READ_ONCE(rescue->is_on) && before(snd_una, READ_ONCE(rescue->end_seq))) {
		call_worker(rescue);
		return;
	}
	WRITE_ONCE(rescue->is_on, false);
	if (!sock_owned_by_user((struct sock *)msk))
		WRITE_ONCE(rescue->timeout, rescue_timeout(rescue));
}

/* The fastest subflow with room, except the one that holds up the left edge. */
static struct mptcp_subflow_context *rescue_target(struct mptcp_sock *msk,
						   int blocking_slot)
{
	struct mptcp_subflow_context *subflow, *best = NULL;
	u32 best_rtt = 0;

	mptcp_for_each_subflow(msk, subflow) {
		const struct sock *ssk = mptcp_subflow_tcp_sock(subflow);
		u32 rtt = READ_ONCE(tcp_sk(ssk)->srtt_us);

		if (weft_rank(subflow) > WEFT_RANK_REGULAR ||
		    weft_slot(weft_conn(msk), subflow) == blocking_slot ||
		    !weft_window_space(ssk))
			continue;
		if (!best || rtt < best_rtt) {
			best = subflow;
			best_rtt = rtt;
		}
	}
	return best;
}

/* Grows with every packet that a subflow gets through, also with one twice (D-SACK). */
static u32 progress_of(const struct sock *ssk)
{
	const struct tcp_sock *tp = tcp_sk(ssk);

	return READ_ONCE(tp->delivered) + READ_ONCE(tp->dsack_dups);
}

/* Whether the subflow of @slot has got anything through since the rescue began. */
static bool has_progressed(const struct weft_rescue *rescue, struct mptcp_sock *msk,
			   int slot)
{
	struct mptcp_subflow_context *subflow;

	if (slot < 0)
		return false;
	mptcp_for_each_subflow(msk, subflow)
		if (weft_slot(weft_conn(msk), subflow) == slot)
			return progress_of(mptcp_subflow_tcp_sock(subflow)) !=
			       rescue->progress[slot];
	return false;
}

static void take_progress(struct weft_rescue *rescue, struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;

	mptcp_for_each_subflow(msk, subflow) {
		int slot = weft_slot(weft_conn(msk), subflow);

		if (slot >= 0)
			rescue->progress[slot] = progress_of(mptcp_subflow_tcp_sock(subflow));
	}
}

/**
 * weft_rescue_get_retrans() - choose where the core reinjects unacknowledged data
 * @rescue: of the connection
 * @msk: connection, owned
 * @blocking_slot: slot that has carried the data at the left edge, or -1
 *
 * The worker asks before each fragment. A rescue sends two packets and leaves the rest
 * to the next Data ACK, so it gives no second answer to the same call of the worker.
 *
 * MPTCP's own timeout may call the worker before a rescue begins. Unless a subflow is
 * stalled, the data are on their way then, and other subflows stay idle for a reason.
 *
 * Return: 0, or -EAGAIN when no subflow can take the data now.
 */
int weft_rescue_get_retrans(struct weft_rescue *rescue, struct mptcp_sock *msk,
			    int blocking_slot)
{
	struct mptcp_subflow_context *best;

	if (!READ_ONCE(rescue->is_due)) {
		if (READ_ONCE(rescue->is_on) && time_is_after_eq_jiffies(rescue->sent_jiffies))
			return -EAGAIN;
		return READ_ONCE(weft_rescue_ms) && !weft_has_stalled_subflow(msk) ?
		       -EAGAIN : weft_get_retrans(msk);
	}
	WRITE_ONCE(rescue->is_due, false);
	if (READ_ONCE(rescue->is_new)) {
		WRITE_ONCE(rescue->is_new, false);
		take_progress(rescue, msk);
	} else if (has_progressed(rescue, msk, blocking_slot)) {
		WRITE_ONCE(rescue->is_on, false);
		return -EAGAIN;
	}
	best = rescue_target(msk, blocking_slot);
	if (!best)
		return -EAGAIN;
	rescue->sent_jiffies = jiffies;
	/* the receiver may delay the ACK of a single packet by 40 ms */
	msk->rtx_burst = 2 * weft_packet_payload(mptcp_subflow_tcp_sock(best));
	weft_mark_urgent(mptcp_subflow_tcp_sock(best));
	mptcp_subflow_set_scheduled(best, true);
	return 0;
}

/**
 * weft_rescue_end() - stop, before the memory is freed
 * @rescue: of the connection
 */
void weft_rescue_end(struct weft_rescue *rescue)
{
	if (rescue->msk)
		timer_shutdown_sync(&rescue->timer);
}
