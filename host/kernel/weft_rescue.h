/* SPDX-License-Identifier: GPL-2.0-only */
/* Sends data again that a subflow of weft holds up; see weft_rescue.c. */
#ifndef _WEFT_RESCUE_H
#define _WEFT_RESCUE_H

#include <linux/timer.h>

#include "weft.h"

/**
 * struct weft_rescue - state of a connection; zeroed memory is one that has sent nothing
 * @msk: the connection; NULL while @timer is not set up
 * @timer: checks the left edge while data are unacknowledged
 * @una_jiffies: jiffies when the left edge last moved
 * @timeout: jiffies without a Data ACK until the next rescue
 * @sent_jiffies: jiffies when a rescue last sent data again
 * @sent_seq: end of the data that had been sent when the left edge last moved
 * @end_seq: a rescue goes on for holes before this
 * @progress: what each subflow had got through when the rescue began, by slot
 * @is_on: until the left edge reaches @end_seq
 * @is_new: @progress has to be taken
 * @is_due: the worker has to reinject the data at the left edge
 * @is_short: the connection has written little since it was last idle
 *
 * The timer and data_acked() read and write without the lock of the socket. So sequence
 * numbers are the low 32 bits, which are written in one piece on every machine; a send
 * window is far smaller.
 */
struct weft_rescue {
	struct mptcp_sock	*msk;
	struct timer_list	timer;
	unsigned long		una_jiffies;
	unsigned long		timeout;
	unsigned long		sent_jiffies;
	u32			sent_seq;
	u32			end_seq;
	u32			progress[WEFT_PATHS_MAX];
	bool			is_on;
	bool			is_new;
	bool			is_due;
	bool			is_short;
};

void weft_rescue_data_sent(struct weft_rescue *rescue, struct mptcp_sock *msk,
			   bool was_idle, u64 written_bytes);
void weft_rescue_data_acked(struct weft_rescue *rescue, struct mptcp_sock *msk,
			    u64 snd_una);
int weft_rescue_get_retrans(struct weft_rescue *rescue, struct mptcp_sock *msk,
			    int blocking_slot);
void weft_rescue_end(struct weft_rescue *rescue);

#endif /* _WEFT_RESCUE_H */
