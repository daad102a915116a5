/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Weft's MPTCP schedulers: what their files share.
 *
 *	main.c		module: registers the schedulers
 *	connection.c	state of a connection, usable subflows, accounting
 *	reinject.c	what becomes of data that a subflow holds up
 *	pattern.c	RTTs -> gaps -> sequence (no kernel in it)
 *	view.h		what decisions look at (no kernel in it)
 *	table.c		patterns of the controller: a table per namespace,
 *			by destination prefix
 *	netlink.c	generic netlink family "weft"; weft.yaml specifies it,
 *			netlink_gen.c and the UAPI header follow from that
 *	trail.h		which subflow has carried which data (no kernel in it)
 *	rb.c, roundrobin.c, minrtt.c, ...	one scheduler each; stms_a and
 *			stms_c share stms.c, weft is weft_sched.c with
 *			weft_window.h; rb.h is for netlink.c, which dumps
 *			the sequences in use
 *
 * Locks. get_send() and get_retrans() run with the msk socket owned, or with its
 * data lock held while nobody owns it; struct weft_conn is protected by that.
 * data_acked() runs with the data lock held also while a process owns the socket,
 * on another CPU: then it leaves struct weft_conn alone but for single words
 * (weft), or get_send() takes the data lock, too (stms_a). The table is written
 * under its mutex and read under RCU.
 */
#ifndef _WEFT_H
#define _WEFT_H

#include <linux/mutex.h>
#include <linux/types.h>
#include <net/mptcp.h>

#include "protocol.h"		/* net/mptcp/protocol.h */

#include "compat.h"
#include "pattern.h"
#include "view.h"

#define WEFT_TABLE_BITS		8
#define WEFT_PATTERNS_MAX	65536	/* patterns in a namespace */

/**
 * struct weft_path - one local address in a pattern of the controller
 * @local: local IPv4 address
 * @gap: packets per pattern; 0 means that the path is known and not used
 * @rtt_ns: what the network measured; 0 while it is not known
 * @lowest_rtt_ns: the same without any queue
 */
struct weft_path {
	__be32	local;
	u32	gap;
	u64	rtt_ns;
	u64	lowest_rtt_ns;
};

/**
 * struct weft_pattern - pattern of the controller for one destination prefix
 * @node: in the table's bucket
 * @rcu: frees it after its last reader
 * @set_ns: ktime_get_ns() of the PATTERN_SET, or of the last PATTERN_RENEW
 * @ttl_ns: not used any more this long after @set_ns
 * @version: the controller's
 * @wait_unit_ns: in which ACKs tell their waits, 0 when they do not
 * @prefix: destination, host bits zero
 * @prefix_len: 0 to 32
 * @paths: entries of @path
 * @length: entries of @sequence
 * @path: local addresses
 * @sequence: index into @path for each position
 *
 * Nothing but @set_ns changes once it is in the table.
 */
struct weft_pattern {
	struct hlist_node	node;
	struct rcu_head		rcu;
	u64			set_ns;
	u64			ttl_ns;
	u64			version;
	u32			wait_unit_ns;
	__be32			prefix;
	u8			prefix_len;
	u8			paths;
	u16			length;
	struct weft_path	path[WEFT_PATHS_MAX];
	u8			sequence[] __counted_by(length);
};

/**
 * struct weft_table - the patterns of a network namespace
 * @lock: serialises writers
 * @generation: changes with every write that tells something new, so that connections
 *	notice
 * @lengths: bit N is set while there is a pattern with a prefix of N bits
 * @count: patterns
 * @per_length: patterns by prefix length
 * @bucket: patterns by prefix and length
 */
struct weft_table {
	struct mutex		lock;	/* serialises writers */
	u32			generation;
	u64			lengths;
	u32			count;
	u32			per_length[33];
	struct hlist_head	bucket[1 << WEFT_TABLE_BITS];
};

/**
 * struct weft_subflow - what a scheduler did with one subflow
 * @id: subflow_id of the kernel plus one; 0 when the slot is empty
 * @packets: scheduled
 * @bytes: scheduled
 */
struct weft_subflow {
	u32	id;
	u64	packets;
	u64	bytes;
};

/**
 * struct weft_conn - scheduler state of a connection
 * @subflow: slots, one per subflow that was ever usable; slots of subflows that
 *	are gone are used again
 * @picked: slot of the last decision
 * @granted: what is left of its burst as of the last look at msk->snd_burst, bytes
 * @sent: what has been sent of it, bytes
 * @slot_changes: how often a slot has got another subflow
 * @rescue_seq: reinjections go on for data before this, which a stalled subflow may hold
 * @state: the scheduler's own, see weft_state(); freed with the connection
 */
struct weft_conn {
	struct weft_subflow	subflow[WEFT_PATHS_MAX];
	u8			picked;
	int			granted;
	int			sent;
	u32			slot_changes;
	u64			rescue_seq;
	void			*state;
};

/**
 * struct weft_usable - the subflows that may carry new data now
 * @count: entries of @subflow
 * @members: bit per slot
 * @subflow: in the order of the connection's list
 * @slot: index into weft_conn.subflow
 */
struct weft_usable {
	unsigned int			count;
	u32				members;
	struct mptcp_subflow_context	*subflow[WEFT_PATHS_MAX];
	u8				slot[WEFT_PATHS_MAX];
};

/* How fit a subflow is to carry data; the lower, the fitter. */
enum weft_rank {
	WEFT_RANK_REGULAR,
	WEFT_RANK_REGULAR_LOSS,
	WEFT_RANK_BACKUP,
	WEFT_RANK_BACKUP_LOSS,
	WEFT_RANK_UNFIT,
};

static inline struct weft_conn *weft_conn(const struct mptcp_sock *msk)
{
	return msk->sched_data;
}

/* main.c */
extern struct mptcp_sched_ops *const weft_schedulers[];	/* ends with NULL */

/* connection.c */
void weft_conn_init(struct mptcp_sock *msk);
void weft_conn_release(struct mptcp_sock *msk);
void *weft_state(struct mptcp_sock *msk, size_t size);
bool weft_usable(struct mptcp_sock *msk, struct weft_usable *usable);
bool weft_account(struct mptcp_sock *msk);
struct weft_subflow weft_carried(struct mptcp_sock *msk, u8 slot);
int weft_grant(struct mptcp_sock *msk, struct mptcp_subflow_context *subflow,
	       u8 slot, int bytes);
bool weft_ends(const struct sock *ssk, __be32 *local, __be32 *remote);
int weft_packet_payload(const struct sock *ssk);
int weft_window_space(const struct sock *ssk);
void weft_look(struct mptcp_sock *msk, const struct weft_usable *usable,
	       struct weft_view *view);
int weft_send_packet(struct mptcp_sock *msk, size_t state_size,
		     weft_choose_fn *choose);
enum weft_rank weft_rank(struct mptcp_subflow_context *subflow);
int weft_slot(const struct weft_conn *conn,
	      const struct mptcp_subflow_context *subflow);

/* reinject.c */
bool weft_sender_is_blocked(const struct mptcp_sock *msk);
struct mptcp_subflow_context *weft_fastest_idle(struct mptcp_sock *msk);
int weft_get_retrans(struct mptcp_sock *msk);
void weft_data_acked(struct mptcp_sock *msk, struct sock *ssk,
		     const struct sk_buff *skb, u64 snd_una);

/* table.c */
void weft_table_init(struct weft_table *table);
void weft_table_exit(struct weft_table *table);
int weft_table_set(struct weft_table *table, struct weft_pattern *pattern);
int weft_table_del(struct weft_table *table, __be32 prefix, u8 prefix_len);
void weft_table_clear(struct weft_table *table);
void weft_table_renew(struct weft_table *table);
const struct weft_pattern *weft_table_find(const struct weft_table *table,
					   __be32 address, u64 now_ns);
u64 weft_pattern_dies_ns(const struct weft_pattern *pattern);
int weft_pattern_path(const struct weft_pattern *pattern, const struct sock *ssk);
__be32 weft_prefix_mask(u8 prefix_len);
struct weft_table *weft_table(const struct net *net);
int weft_tables_register(void);
void weft_tables_unregister(void);

/* netlink.c */
int weft_netlink_init(void);
void weft_netlink_exit(void);

/* schedulers */
extern struct mptcp_sched_ops weft_rb;
extern struct mptcp_sched_ops weft_roundrobin;
extern struct mptcp_sched_ops weft_minrtt;
extern struct mptcp_sched_ops weft_minrtt_pr;
extern struct mptcp_sched_ops weft_rr_packet;
extern struct mptcp_sched_ops weft_blest;
extern struct mptcp_sched_ops weft_stms_c;
extern struct mptcp_sched_ops weft_stms_a;
extern struct mptcp_sched_ops weft_daps;
extern struct mptcp_sched_ops weft_otias;
extern struct mptcp_sched_ops weft_ecf;
extern struct mptcp_sched_ops weft_redundant;
extern struct mptcp_sched_ops weft_weft;

#endif /* _WEFT_H */
