/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Both generations of the scheduler interface: get_subflow(), which is told
 * whether it reinjects (up to 6.14), and get_send() beside get_retrans().
 *
 * WEFT_SCHED_OPS(send) fills the callbacks of a struct mptcp_sched_ops;
 * WEFT_SCHED_CALLBACKS(send) stands at file scope before it.
 */
#ifndef _WEFT_COMPAT_H
#define _WEFT_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)

#define WEFT_SCHED_CALLBACKS(send)

#define WEFT_SCHED_OPS(send)						\
	.get_send = (send), .get_retrans = weft_get_retrans

#else

#define WEFT_SCHED_CALLBACKS(send)					\
static int send##_or_retrans(struct mptcp_sock *msk,			\
			     struct mptcp_sched_data *data)		\
{									\
	return data->reinject ? weft_get_retrans(msk) : send(msk);	\
}

#define WEFT_SCHED_OPS(send)						\
	.get_subflow = send##_or_retrans

#endif

#endif /* _WEFT_COMPAT_H */
