/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Both generations of the scheduler interface. Up to 6.14 there is get_subflow(), with
 * an argument that says whether it is for a reinjection. Later there are get_send() and
 * get_retrans().
 *
 * WEFT_SCHED_OPS(send) fills the callbacks of a struct mptcp_sched_ops, and
 * WEFT_SCHED_CALLBACKS(send) is at file scope before it. A scheduler that reinjects in
 * its own way uses the same macros with "_RETRANS". So does one that has its own
 * data_acked(), which then calls weft_data_acked().
 */
#ifndef _WEFT_COMPAT_H
#define _WEFT_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)

#define WEFT_SCHED_CALLBACKS_RETRANS(send, retrans)

#define WEFT_SCHED_OPS_RETRANS(send, retrans)				\
	.get_send = (send), .get_retrans = (retrans)

static inline int weft_call_get_send(const struct mptcp_sched_ops *ops,
				     struct mptcp_sock *msk)
{
	return ops->get_send(msk);
}

static inline int weft_call_get_retrans(const struct mptcp_sched_ops *ops,
					struct mptcp_sock *msk)
{
	return ops->get_retrans(msk);
}

#else

#define WEFT_SCHED_CALLBACKS_RETRANS(send, retrans)			\
static int send##_or_retrans(struct mptcp_sock *msk,			\
			     struct mptcp_sched_data *data)		\
{									\
	return data->reinject ? retrans(msk) : send(msk);		\
}

#define WEFT_SCHED_OPS_RETRANS(send, retrans)				\
	.get_subflow = send##_or_retrans

static inline int weft_call_get_send(const struct mptcp_sched_ops *ops,
				     struct mptcp_sock *msk)
{
	struct mptcp_sched_data data = { .reinject = false };

	return ops->get_subflow(msk, &data);
}

static inline int weft_call_get_retrans(const struct mptcp_sched_ops *ops,
					struct mptcp_sock *msk)
{
	struct mptcp_sched_data data = { .reinject = true };

	return ops->get_subflow(msk, &data);
}

#endif

#define WEFT_SCHED_CALLBACKS(send)					\
	WEFT_SCHED_CALLBACKS_RETRANS(send, weft_get_retrans)
#define WEFT_SCHED_OPS(send)						\
	WEFT_SCHED_OPS_RETRANS(send, weft_get_retrans),			\
	.data_acked = weft_data_acked

#endif /* _WEFT_COMPAT_H */
