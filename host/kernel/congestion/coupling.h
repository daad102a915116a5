/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Coupled congestion control for MPTCP: what the files of the module
 * weft_coupled share.
 *
 *	main.c		module, registration
 *	coupling.c	groups: what the subflows of a connection know of each other
 *	formula.h	the formulas' common part (no kernel in it)
 *	lia.c, olia.c, balia.c, wvegas.c	one algorithm each
 */
#ifndef _WEFT_COUPLING_H
#define _WEFT_COUPLING_H

#include <linux/spinlock.h>
#include <net/tcp.h>

#include "formula.h"

/**
 * struct coupled_group - the subflows of a connection that use this module
 * @node: in the table of groups
 * @conn: the connection's address, only compared, never followed
 * @token: its token, so that an address that is used again is not the same
 * @members: subflows, protected by the lock of the table
 * @lock: protects what follows
 * @slots: entries of @sk and @path that have ever been used
 * @sk: the member in each slot or NULL; a member leaves before it is freed
 * @path: what the members have published
 */
struct coupled_group {
	struct hlist_node	node;
	const void		*conn;
	u32			token;
	unsigned int		members;
	spinlock_t		lock;	/* protects what follows */
	unsigned int		slots;
	const struct sock	*sk[COUPLED_PATHS_MAX];
	struct coupled_path	path[COUPLED_PATHS_MAX];
};

/**
 * struct coupled - start of an algorithm's private data of a socket
 * @group: of its connection; NULL: none yet, or not MPTCP
 * @credit: growth that is not a whole packet yet, COUPLED_ONE for one
 * @own: what this subflow publishes
 * @slot: index into the group's arrays
 *
 * Protected by the socket's lock, as all of congestion control is.
 */
struct coupled {
	struct coupled_group	*group;
	s64			credit;
	struct coupled_path	own;
	u8			slot;
};

typedef s64 (*coupled_formula)(const struct coupled_path *path,
			       unsigned int paths, unsigned int self);

void coupled_init(struct sock *sk);
void coupled_release(struct sock *sk);
struct coupled_group *coupled_lock(struct sock *sk);
void coupled_unlock(struct coupled_group *group);
void coupled_set_state(struct sock *sk, u8 new_state);
void coupled_cong_avoid(struct sock *sk, u32 ack, u32 acked,
			coupled_formula formula);
u32 coupled_ssthresh(struct sock *sk);
u32 coupled_floor(void);

extern struct tcp_congestion_ops weft_lia;
extern struct tcp_congestion_ops weft_olia;
extern struct tcp_congestion_ops weft_balia;
extern struct tcp_congestion_ops weft_wvegas;

#endif /* _WEFT_COUPLING_H */
