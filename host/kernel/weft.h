/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Weft's MPTCP schedulers: what their files share.
 *
 *	main.c		module: registers the schedulers
 *	connection.c	state of a connection, usable subflows, accounting
 *	priority.c	writes what is left to send into DSCP
 *	thresholds.c	the controller's thresholds between these classes, per
 *			namespace
 *	reinject.c	sends data again that a subflow holds up
 *	pattern.c	RTTs -> gaps -> sequence (no kernel in it)
 *	view.h		what a decision sees of a connection (no kernel in it);
 *			view.c collects it
 *	seq_map.h	which subflow has carried which data (no kernel in it)
 *	table.c		the controller's patterns: a table per namespace, by
 *			destination prefix
 *	netlink.c	generic netlink family "mptcp_pattern". mptcp_pattern.yaml
 *			specifies it; netlink_gen.c and the UAPI header are
 *			generated from that. What concerns thresholds is in
 *			netlink_thresholds.c
 *	rb.c, roundrobin.c, minrtt.c, ...	one scheduler each. stms_a and
 *			stms_c share stms.c. weft is weft_sched.c, with its
 *			decision in weft_choose.c and what that needs in
 *			weft_window.c, weft_rtt.c, weft_crowd.c, weft_contention.c and
 *			weft_size.c (no kernel in them), and weft_rescue.c. netlink.c dumps what
 *			rb.h declares.
 *
 * Locks. get_send() and get_retrans() run while the msk socket is owned, or with its
 * data lock held while nobody owns it. That protects struct weft_conn. data_acked()
 * runs with the data lock held, and possibly while a process owns the socket on
 * another CPU. In that case it writes only single words of struct weft_conn (weft), or
 * get_send() takes the data lock too (stms_a). The table is written under its mutex
 * and read under RCU.
 */
#ifndef _WEFT_H
#define _WEFT_H

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/rhashtable-types.h>
#include <linux/types.h>
#include <net/mptcp.h>

#include "protocol.h"		/* net/mptcp/protocol.h */

#include "compat.h"
#include "pattern.h"
#include "view.h"
#include "weft_size.h"

/*
 * Machines with 32 bits read and write u64 in two pieces, also with READ_ONCE() and
 * WRITE_ONCE(). So nothing here may use these with u64: what others change at the same time
 * is atomic64_t, or only its low half counts (weft_low_seq()).
 */
#undef compiletime_assert_rwonce_type
#define compiletime_assert_rwonce_type(t)					\
	compiletime_assert(!__same_type(t, u64),				\
			   "32-bit machines read and write this in two pieces")

#define WEFT_TABLE_COUNTERS	256
#define WEFT_PATTERNS_MAX	65536	/* patterns in a namespace */

/**
 * struct weft_path - one local address in a pattern of the controller
 * @local: local IPv4 address
 * @gap: packets per pattern; 0: the path is known but not to be used
 * @rtt_ns: RTT that the network measured; 0: unknown
 * @lowest_rtt_ns: the same without queues
 */
struct weft_path {
	__be32	local;
	u32	gap;
	u64	rtt_ns;
	u64	lowest_rtt_ns;
};

/**
 * struct weft_prefix - destination of a pattern, a key of the table
 * @address: IPv4 address, host bits zero
 * @length: bits of the prefix, 0 to 32
 */
struct weft_prefix {
	__be32	address;
	u32	length;
};

/**
 * struct weft_pattern - pattern of the controller for one destination prefix
 * @node: in the table, by @to
 * @list: in the table, by @id
 * @id: grows with each prefix that comes; a dump continues after one
 * @rcu: frees it after its last reader
 * @set_ns: ktime_get_ns() of the PATTERN_SET, or of the last PATTERN_RENEW
 * @decided_ns: ktime_get_ns() of the PATTERN_SET: its RTTs are as old as that
 * @ttl_ns: the pattern expires this long after @set_ns
 * @version: number that the controller gave it
 * @wait_unit_ns: unit of the waits that switches write into ACKs; 0: they write none
 * @to: destination
 * @paths: entries of @path
 * @length: entries of @sequence
 * @path: local addresses
 * @sequence: index into @path for each position
 *
 * Only @set_ns changes once the pattern is in the table.
 */
struct weft_pattern {
	struct rhash_head	node;
	struct list_head	list;
	u64			id;
	struct rcu_head		rcu;
	atomic64_t		set_ns;
	u64			decided_ns;
	u64			ttl_ns;
	u64			version;
	u32			wait_unit_ns;
	struct weft_prefix	to;
	u8			paths;
	u16			length;
	struct weft_path	path[WEFT_PATHS_MAX];
	u8			sequence[] __counted_by(length);
};

/**
 * struct weft_table - the patterns of a network namespace
 * @lock: serialises writers
 * @patterns: by destination
 * @all: the same, by id
 * @last_id: of the last prefix that came
 * @generation: changes with every write; for dumps
 * @changes: changes when a prefix comes, goes, or has a live pattern again
 * @replacements: of patterns, by the hash of their prefix
 * @lengths: bit N is set while there is a pattern with a prefix of N bits
 * @count: patterns
 * @per_length: patterns by prefix length
 */
struct weft_table {
	struct mutex		lock;	/* serialises writers */
	struct rhashtable	patterns;
	struct list_head	all;
	u64			last_id;
	u32			generation;
	u32			changes;
	u32			replacements[WEFT_TABLE_COUNTERS];
	atomic64_t		lengths;
	u32			count;
	u32			per_length[33];
};

/**
 * struct weft_watch - what a connection's last lookups in the table depend on
 * @counter: of the table's @replacements, one per pattern
 * @count: entries of @counter
 * @sum: of these counters and the table's @changes, at the time of the lookups
 */
struct weft_watch {
	const u32	*counter[WEFT_PATHS_MAX];
	u8		count;
	u32		sum;
};

/**
 * struct weft_subflow - what one subflow has been given
 * @id: subflow_id of the kernel plus one; 0: the slot is empty
 * @packets: scheduled so far
 * @bytes: scheduled so far
 */
struct weft_subflow {
	u32	id;
	u64	packets;
	u64	bytes;
};

/**
 * struct weft_conn - scheduler state of a connection
 * @subflow: slots, one per subflow that was ever usable; the slot of a subflow that
 *	is gone is used again
 * @picked: slot of the last decision
 * @granted: bytes left of its burst, at the last look at msk->snd_burst
 * @sent: bytes sent of that burst
 * @slot_changes: how often a slot has got another subflow
 * @rescue_seq: reinjections go on for data before this, which a stalled subflow may
 *	hold; 0: none
 * @takeover_timeouts: timeouts of a subflow in a row from which others take over; 0: from
 *	the first
 * @size: what it has left to send, for the class of its packets
 * @state: the scheduler's own, see weft_state(); freed with the connection
 */
struct weft_conn {
	struct weft_subflow	subflow[WEFT_PATHS_MAX];
	u8			picked;
	int			granted;
	int			sent;
	u32			slot_changes;
	atomic64_t		rescue_seq;
	u8			takeover_timeouts;
	struct weft_size	size;
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

/* How suitable a subflow is for data; lower is better. */
enum weft_rank {
	WEFT_RANK_REGULAR,
	WEFT_RANK_REGULAR_LOSS,
	WEFT_RANK_BACKUP,
	WEFT_RANK_BACKUP_LOSS,
	WEFT_RANK_UNFIT,
};

/**
 * weft_low_seq() - read a data sequence number that others may change at the same time
 * @seq: data sequence number
 *
 * Return: its low 32 bits, enough to compare it with others nearby (before(), after()).
 */
static inline u32 weft_low_seq(const u64 *seq)
{
	return __READ_ONCE(*seq);
}

/**
 * weft_seq_near() - read a data sequence number that others may change at the same time
 * @near: one that is less than 2^31 away; no send window is larger
 * @seq: data sequence number
 *
 * Return: all of it.
 */
static inline u64 weft_seq_near(u64 near, const u64 *seq)
{
	return near + (s32)(weft_low_seq(seq) - (u32)near);
}

/**
 * weft_snd_una() - the left edge of the send window
 * @msk: connection, whose snd_nxt does not change now
 *
 * Context: as get_send() and get_retrans(), but the data lock may be free.
 * Return: data sequence number of the first byte that is not acknowledged.
 */
static inline u64 weft_snd_una(const struct mptcp_sock *msk)
{
	return weft_seq_near(msk->snd_nxt, &msk->snd_una);
}

static inline struct weft_conn *weft_conn(const struct mptcp_sock *msk)
{
	return msk->sched_data;
}

/**
 * weft_peek_state() - the scheduler's own state of a connection, if it has any
 * @msk: connection
 *
 * Unlike weft_state(), this allocates nothing.
 *
 * Context: any, also with only the data lock of @msk.
 * Return: the state; NULL before the first weft_state().
 */
static inline void *weft_peek_state(const struct mptcp_sock *msk)
{
	const struct weft_conn *conn = weft_conn(msk);

	/* pairs with weft_state() */
	return conn ? smp_load_acquire(&conn->state) : NULL;
}

/* main.c */
extern struct mptcp_sched_ops *const weft_schedulers[];	/* ends with NULL */

/* connection.c */
void weft_conn_init(struct mptcp_sock *msk);
void weft_conn_release(struct mptcp_sock *msk);
void *weft_state(struct mptcp_sock *msk, size_t size);
bool weft_usable(struct mptcp_sock *msk, struct weft_usable *usable);
bool weft_account(struct mptcp_sock *msk);
struct weft_subflow weft_slot_totals(struct mptcp_sock *msk, u8 slot);
int weft_grant(struct mptcp_sock *msk, struct mptcp_subflow_context *subflow,
	       u8 slot, int bytes);
bool weft_endpoints(const struct sock *ssk, __be32 *local, __be32 *remote);
bool weft_is_recovering(struct mptcp_subflow_context *subflow);
enum weft_rank weft_rank(struct mptcp_subflow_context *subflow);
int weft_slot(const struct weft_conn *conn,
	      const struct mptcp_subflow_context *subflow);

/**
 * weft_app_is_blocked() - whether the application waits for room to write more
 * @msk: connection
 */
static inline bool weft_app_is_blocked(const struct mptcp_sock *msk)
{
	const struct sock *sk = (const struct sock *)msk;

	return sk->sk_socket && test_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
}

/* view.c */
int weft_packet_payload(const struct sock *ssk);
int weft_window_space(const struct sock *ssk);
void weft_view_subflows(struct mptcp_sock *msk, const struct weft_usable *usable,
			struct weft_subflow_view *view);
int weft_send_packet(struct mptcp_sock *msk, size_t state_size,
		     weft_choose_fn *choose);

/* priority.c */
unsigned int weft_class_count(void);
bool weft_goes_first(const struct sock *ssk);
bool weft_would_overtake(struct mptcp_sock *msk, const struct sock *ssk);
void weft_mark_data(struct mptcp_sock *msk, struct sock *ssk);
void weft_mark_urgent(struct sock *ssk);

/* reinject.c */
bool weft_sender_is_blocked(const struct mptcp_sock *msk);
struct mptcp_subflow_context *weft_fastest_idle(struct mptcp_sock *msk);
bool weft_has_stalled_subflow(struct mptcp_sock *msk);
int weft_get_retrans(struct mptcp_sock *msk);
void weft_data_acked(struct mptcp_sock *msk, struct sock *ssk,
		     const struct sk_buff *skb, u64 snd_una);

/* table.c */
int weft_table_init(struct weft_table *table);
void weft_table_exit(struct weft_table *table);
int weft_table_set(struct weft_table *table, struct weft_pattern *pattern);
int weft_table_del(struct weft_table *table, const struct weft_prefix *to);
void weft_table_clear(struct weft_table *table);
void weft_table_renew(struct weft_table *table);
const struct weft_pattern *weft_table_find(struct weft_table *table, __be32 address,
					   u64 now_ns, struct weft_watch *watch);
void weft_watch_begin(struct weft_watch *watch, const struct weft_table *table);
bool weft_watch_is_current(const struct weft_watch *watch, const struct weft_table *table);
u64 weft_pattern_expires_ns(const struct weft_pattern *pattern);
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
extern struct mptcp_sched_ops weft_sched;

#endif /* _WEFT_H */
