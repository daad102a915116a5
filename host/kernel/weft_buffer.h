/* SPDX-License-Identifier: GPL-2.0-only */
/* The send buffers of the scheduler weft; see weft_buffer.c. */
#ifndef _WEFT_BUFFER_H
#define _WEFT_BUFFER_H

struct mptcp_sock;

void weft_raise_send_buffers(struct mptcp_sock *msk);

#endif /* _WEFT_BUFFER_H */
