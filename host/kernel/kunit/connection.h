/* SPDX-License-Identifier: GPL-2.0-only */
/* A connection for tests: a real struct mptcp_sock, filled in as the core does it. */
#ifndef _WEFT_KUNIT_CONNECTION_H
#define _WEFT_KUNIT_CONNECTION_H

#include <kunit/test.h>
#include <net/tcp.h>

#include "../weft.h"

#define PAYLOAD		1420	/* of the subflows below, in bytes */

/* Theirs: it decides about nothing, because they send nothing. */
static const struct tcp_congestion_ops no_congestion_control;

static inline struct mptcp_sock *new_connection(struct kunit *test)
{
	struct mptcp_sock *msk = kunit_kzalloc(test, sizeof(*msk), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, msk);
	INIT_LIST_HEAD(&msk->conn_list);
	sock_net_set((struct sock *)msk, &init_net);
	weft_conn_init(msk);
	KUNIT_ASSERT_NOT_NULL(test, msk->sched_data);
	return msk;
}

/* An established subflow with this number, at the end of the list. */
static inline struct mptcp_subflow_context *
add_subflow(struct kunit *test, struct mptcp_sock *msk, u32 id)
{
	struct mptcp_subflow_context *subflow;
	struct tcp6_sock *tcp;

	subflow = kunit_kzalloc(test, sizeof(*subflow), GFP_KERNEL);
	tcp = kunit_kzalloc(test, sizeof(*tcp), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, subflow);
	KUNIT_ASSERT_NOT_NULL(test, tcp);
	/* and the DSS option, see weft_packet_payload() */
	tcp->tcp.mss_cache = 2 * PAYLOAD;
	tcp->tcp.mss_cache += PAYLOAD - weft_packet_payload((struct sock *)tcp);
	subflow->tcp_sock = (struct sock *)tcp;
	subflow->tcp_sock->sk_state = TCP_ESTABLISHED;
	inet_csk(subflow->tcp_sock)->icsk_ca_ops = &no_congestion_control;
	subflow->conn = (struct sock *)msk;
	subflow->subflow_id = id;
	subflow->fully_established = true;
	list_add_tail(&subflow->node, &msk->conn_list);
	return subflow;
}

#endif /* _WEFT_KUNIT_CONNECTION_H */
