// SPDX-License-Identifier: GPL-2.0-only
/*
 * The send buffers of the scheduler weft: large from the start, so that it can count what
 * a connection has left to send. Data that the application keeps cannot be counted, and a
 * send buffer that grows with the congestion window comes too late for a short flow.
 */
#include <linux/moduleparam.h>
#include <net/proto_memory.h>
#include <net/tcp.h>

#include "weft.h"
#include "weft_buffer.h"

static bool weft_send_buffer = true;
module_param(weft_send_buffer, bool, 0644);
MODULE_PARM_DESC(weft_send_buffer,
		 "weft: send buffers are as large as tcp_wmem allows from the start, unless SO_SNDBUF is set, so that the data left to send are known (1)");

static void raise_sndbuf(struct sock *sk, int bytes)
{
	if (READ_ONCE(sk->sk_sndbuf) < bytes)
		WRITE_ONCE(sk->sk_sndbuf, bytes);
}

/**
 * weft_raise_send_buffers() - let the application write all its data
 * @msk: connection, owned, with at least one subflow
 *
 * The buffer of a connection is the sum of those of its subflows (__mptcp_sync_sndbuf()),
 * so each of them gets its part. When memory is short, all stay as they are.
 */
void weft_raise_send_buffers(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;
	struct sock *sk = (struct sock *)msk;
	int most = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_wmem[2]);
	int subflows = 0;

	if (!READ_ONCE(weft_send_buffer) || sk->sk_userlocks & SOCK_SNDBUF_LOCK ||
	    sk_under_memory_pressure(sk))
		return;
	mptcp_for_each_subflow(msk, subflow)
		subflows++;
	raise_sndbuf(sk, most);
	mptcp_for_each_subflow(msk, subflow)
		raise_sndbuf(mptcp_subflow_tcp_sock(subflow), most / subflows);
}
