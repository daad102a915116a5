/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few kernel structures and helpers that connection.c uses, for its test in user space
 * with threads. Kernel headers that it includes are this file (Makefile).
 */
#ifndef _WEFT_TESTS_KERNEL_H
#define _WEFT_TESTS_KERNEL_H

#include <errno.h>
#include <stdlib.h>

#include "user.h"

typedef uint32_t __be32;
typedef struct { s64 counter; } atomic64_t;

#define EXPORT_SYMBOL_GPL(symbol)
#define IS_ENABLED(option)		0
#define LINUX_VERSION_CODE		KERNEL_VERSION(7, 0, 0)
#define KERNEL_VERSION(a, b, c)		((a) << 16 | (b) << 8 | (c))
#define __counted_by(member)
#define unlikely(condition)		(condition)
#define BIT(n)				(1UL << (n))
#define DIV_ROUND_CLOSEST(n, d)		(((n) + (d) / 2) / (d))

/* --- What CPUs may do in another order. ------------------------------------ */

/* Lets a test see what happens without them. */
static bool publishes_without_order;

#undef READ_ONCE
#define READ_ONCE(value)		__atomic_load_n(&(value), __ATOMIC_RELAXED)
#define __READ_ONCE(value)		READ_ONCE(value)
#define smp_load_acquire(at)		__atomic_load_n(at, __ATOMIC_ACQUIRE)
#define smp_store_release(at, value)						\
	do {									\
		__typeof__(*(at)) published = (value);				\
										\
		if (publishes_without_order)					\
			__atomic_store_n(at, published, __ATOMIC_RELAXED);	\
		else								\
			__atomic_store_n(at, published, __ATOMIC_RELEASE);	\
	} while (0)

/* --- Memory. --------------------------------------------------------------- */

#define GFP_ATOMIC			0
#define kzalloc(size, flags)		calloc(1, size)
#define kfree(memory)			free(memory)

/* --- Only members of structures here. -------------------------------------- */

struct list_head { void *unused; };
struct mutex { void *unused; };
struct net;
struct rcu_head { void *unused; };
struct rhash_head { void *unused; };
struct rhashtable { void *unused; };
struct sk_buff;

/* --- Sockets. -------------------------------------------------------------- */

#define SOCK_NOSPACE			2
#define TCP_CA_Loss			4

struct socket { unsigned long flags; };

/* A TCP socket, with the members that the kernel has in the types around struct sock. */
struct sock {
	struct socket	*sk_socket;
	u32		packets_out;
	u8		icsk_ca_state;
	u8		icsk_retransmits;
	__be32		inet_saddr;
	__be32		inet_daddr;
};

#define tcp_sk(ssk)			(ssk)
#define inet_csk(ssk)			(ssk)
#define inet_sk(ssk)			(ssk)

struct mptcp_subflow_context {
	struct mptcp_subflow_context	*next;
	struct sock			*conn;
	struct sock			*tcp_sock;
	u32				subflow_id;
	bool				backup;
	bool				request_bkup;
};

struct mptcp_sock {
	struct sock			sk;
	void				*sched_data;
	struct mptcp_subflow_context	*first;
	u64				snd_nxt;
	u64				snd_una;
	int				snd_burst;
};

struct mptcp_sched_ops {
	int (*get_send)(struct mptcp_sock *msk);
	int (*get_retrans)(struct mptcp_sock *msk);
};

#define mptcp_sk(sk)			((struct mptcp_sock *)(sk))
#define mptcp_subflow_tcp_sock(subflow)	((subflow)->tcp_sock)
#define mptcp_subflow_active(subflow)	true
#define mptcp_set_timeout(sk)
#define mptcp_subflow_set_scheduled(subflow, is)
#define mptcp_for_each_subflow(msk, subflow) \
	for ((subflow) = (msk)->first; (subflow); (subflow) = (subflow)->next)

#endif /* _WEFT_TESTS_KERNEL_H */
