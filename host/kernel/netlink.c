// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family that mptcp_pattern.yaml specifies. User space sets the
 * patterns and thresholds of a network namespace, and dumps these and its flows.
 *
 * Policies and the table of operations (netlink_gen.c) are generated from
 * mptcp_pattern.yaml, and netlink_thresholds.c has the operations on thresholds. A
 * message is checked as a whole before any of it takes effect. The extended ACK says what
 * is wrong with a message, and names the attribute.
 */
#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <net/sock.h>

#include "netlink_gen.h"
#include "rb.h"
#include "weft.h"

/* --- PATTERN_SET, PATTERN_DEL, PATTERN_RENEW ------------------------------- */

static int read_prefix(struct genl_info *info, struct weft_prefix *to)
{
	to->address = nla_get_be32(info->attrs[WEFT_A_PREFIX]);
	to->length = nla_get_u8(info->attrs[WEFT_A_PREFIX_LEN]);
	if (to->address & ~weft_prefix_mask(to->length)) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[WEFT_A_PREFIX],
				    "prefix has bits set beyond its length");
		return -EINVAL;
	}
	return 0;
}

static int read_path(struct net *net, const struct nlattr *nest,
		     struct weft_pattern *pattern,
		     struct netlink_ext_ack *extack)
{
	struct weft_path *path = &pattern->path[pattern->paths];
	struct nlattr *tb[WEFT_PATH_A_MAX + 1];
	int i, err;

	err = nla_parse_nested(tb, WEFT_PATH_A_MAX, nest, weft_path_nl_policy, extack);
	if (err)
		return err;
	if (!tb[WEFT_PATH_A_LOCAL] || !tb[WEFT_PATH_A_GAP]) {
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "a path needs its local address and its gap");
		return -EINVAL;
	}
	path->local = nla_get_be32(tb[WEFT_PATH_A_LOCAL]);
	path->gap = nla_get_u32(tb[WEFT_PATH_A_GAP]);
	if (tb[WEFT_PATH_A_RTT_NS])
		path->rtt_ns = nla_get_u64(tb[WEFT_PATH_A_RTT_NS]);
	if (tb[WEFT_PATH_A_LOWEST_RTT_NS])
		path->lowest_rtt_ns = nla_get_u64(tb[WEFT_PATH_A_LOWEST_RTT_NS]);

	/* a path whose interface is down comes back, so its address is valid */
	if (!inet_confirm_addr(net, NULL, 0, path->local, RT_SCOPE_HOST)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[WEFT_PATH_A_LOCAL],
				    "no such local address in this network namespace");
		return -EADDRNOTAVAIL;
	}
	for (i = 0; i < pattern->paths; i++) {
		if (pattern->path[i].local != path->local)
			continue;
		NL_SET_ERR_MSG_ATTR(extack, tb[WEFT_PATH_A_LOCAL],
				    "two paths have the same local address");
		return -EINVAL;
	}
	pattern->paths++;
	return 0;
}

static int read_paths(struct net *net, const struct nlattr *nest,
		      struct weft_pattern *pattern,
		      struct netlink_ext_ack *extack)
{
	const struct nlattr *attr;
	int rem, err;

	nla_for_each_nested(attr, nest, rem) {
		if (nla_type(attr) != WEFT_A_PATH) {
			NL_SET_ERR_MSG_ATTR(extack, attr,
					    "only PATH may be in PATHS");
			return -EINVAL;
		}
		if (pattern->paths == WEFT_PATHS_MAX) {
			NL_SET_ERR_MSG_ATTR(extack, attr, "more than 8 paths");
			return -E2BIG;
		}
		err = read_path(net, attr, pattern, extack);
		if (err)
			return err;
	}
	if (!pattern->paths) {
		NL_SET_ERR_MSG_ATTR(extack, nest, "no path");
		return -EINVAL;
	}
	return 0;
}

/* The sequence must hold each path as often as its gap says. */
static int read_sequence(const struct nlattr *attr, struct weft_pattern *pattern,
			 struct netlink_ext_ack *extack)
{
	u32 count[WEFT_PATHS_MAX] = { 0 };
	unsigned int i;

	nla_memcpy(pattern->sequence, attr, pattern->length);
	for (i = 0; i < pattern->length; i++) {
		if (pattern->sequence[i] >= pattern->paths) {
			NL_SET_ERR_MSG_ATTR(extack, attr,
					    "sequence names a path that does not exist");
			return -EINVAL;
		}
		count[pattern->sequence[i]]++;
	}
	for (i = 0; i < pattern->paths; i++) {
		if (count[i] != pattern->path[i].gap) {
			NL_SET_ERR_MSG_ATTR(extack, attr,
					    "sequence does not contain each path as often as its gap");
			return -EINVAL;
		}
	}
	return 0;
}

static bool set_is_complete(struct genl_info *info)
{
	static const int required[] = {
		WEFT_A_PREFIX, WEFT_A_PREFIX_LEN, WEFT_A_VERSION,
		WEFT_A_TTL_NS, WEFT_A_PATHS, WEFT_A_SEQUENCE,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(required); i++)
		if (GENL_REQ_ATTR_CHECK(info, required[i]))
			return false;
	return true;
}

int weft_nl_pattern_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	struct weft_pattern *pattern;
	u16 length;
	int err;

	if (!set_is_complete(info))
		return -EINVAL;

	length = nla_len(info->attrs[WEFT_A_SEQUENCE]);
	pattern = kzalloc(struct_size(pattern, sequence, length), GFP_KERNEL_ACCOUNT);
	if (!pattern)
		return -ENOMEM;
	pattern->length = length;
	pattern->version = nla_get_u64(info->attrs[WEFT_A_VERSION]);
	pattern->ttl_ns = nla_get_u64(info->attrs[WEFT_A_TTL_NS]);
	if (info->attrs[WEFT_A_WAIT_UNIT_NS])
		pattern->wait_unit_ns = nla_get_u32(info->attrs[WEFT_A_WAIT_UNIT_NS]);

	err = read_prefix(info, &pattern->to);
	if (!err)
		err = read_paths(net, info->attrs[WEFT_A_PATHS], pattern,
				 info->extack);
	if (!err)
		err = read_sequence(info->attrs[WEFT_A_SEQUENCE], pattern,
				    info->extack);
	if (!err) {
		err = weft_table_set(weft_table(net), pattern);
		if (err == -ENOSPC)
			GENL_SET_ERR_MSG(info, "too many patterns in this namespace");
	}
	if (err)
		kfree(pattern);
	return err;
}

int weft_nl_pattern_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct weft_table *table = weft_table(genl_info_net(info));
	struct weft_prefix to;
	int err;

	if (!info->attrs[WEFT_A_PREFIX] && !info->attrs[WEFT_A_PREFIX_LEN]) {
		weft_table_clear(table);
		return 0;
	}
	if (GENL_REQ_ATTR_CHECK(info, WEFT_A_PREFIX) ||
	    GENL_REQ_ATTR_CHECK(info, WEFT_A_PREFIX_LEN))
		return -EINVAL;
	err = read_prefix(info, &to);
	if (!err)
		err = weft_table_del(table, &to);
	if (err == -ENOENT)
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[WEFT_A_PREFIX],
				    "no pattern for this prefix");
	return err;
}

int weft_nl_pattern_renew_doit(struct sk_buff *skb, struct genl_info *info)
{
	weft_table_renew(weft_table(genl_info_net(info)));
	return 0;
}

/* --- PATTERN_GET ---------------------------------------------------------- */

static int put_path(struct sk_buff *skb, const struct weft_path *path)
{
	struct nlattr *nest = nla_nest_start(skb, WEFT_A_PATH);

	if (!nest ||
	    nla_put_be32(skb, WEFT_PATH_A_LOCAL, path->local) ||
	    nla_put_u32(skb, WEFT_PATH_A_GAP, path->gap) ||
	    nla_put_u64_64bit(skb, WEFT_PATH_A_RTT_NS, path->rtt_ns,
			      WEFT_PATH_A_PAD) ||
	    nla_put_u64_64bit(skb, WEFT_PATH_A_LOWEST_RTT_NS, path->lowest_rtt_ns,
			      WEFT_PATH_A_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_pattern(struct sk_buff *skb, const struct weft_pattern *pattern)
{
	struct nlattr *nest;
	int i;

	if (nla_put_be32(skb, WEFT_A_PREFIX, pattern->to.address) ||
	    nla_put_u8(skb, WEFT_A_PREFIX_LEN, pattern->to.length) ||
	    nla_put_u64_64bit(skb, WEFT_A_VERSION, pattern->version, WEFT_A_PAD) ||
	    nla_put_u64_64bit(skb, WEFT_A_TTL_NS, pattern->ttl_ns, WEFT_A_PAD) ||
	    nla_put_u64_64bit(skb, WEFT_A_AGE_NS,
			      ktime_get_ns() - atomic64_read(&pattern->set_ns),
			      WEFT_A_PAD) ||
	    nla_put_u32(skb, WEFT_A_WAIT_UNIT_NS, pattern->wait_unit_ns) ||
	    nla_put(skb, WEFT_A_SEQUENCE, pattern->length, pattern->sequence))
		return -EMSGSIZE;

	nest = nla_nest_start(skb, WEFT_A_PATHS);
	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < pattern->paths; i++)
		if (put_path(skb, &pattern->path[i]))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Returns whether there was room for it. */
static bool put_dumped(struct sk_buff *skb, struct netlink_callback *cb,
		       const struct weft_pattern *pattern)
{
	void *header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				   &weft_nl_family, NLM_F_MULTI, WEFT_CMD_PATTERN_GET);

	if (!header)
		return false;
	genl_dump_check_consistent(cb, header);
	if (put_pattern(skb, pattern)) {
		genlmsg_cancel(skb, header);
		return false;
	}
	genlmsg_end(skb, header);
	return true;
}

int weft_nl_pattern_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct weft_table *table = weft_table(sock_net(skb->sk));
	const struct weft_pattern *pattern;
	u64 *last_id = (u64 *)cb->ctx;

	mutex_lock(&table->lock);
	/* tells the caller when the table has changed between two parts of a dump */
	cb->seq = table->generation + 1;
	list_for_each_entry(pattern, &table->all, list) {
		if (pattern->id <= *last_id)
			continue;
		if (!put_dumped(skb, cb, pattern))
			break;
		*last_id = pattern->id;
	}
	mutex_unlock(&table->lock);
	return skb->len;
}

/* --- FLOW_GET ------------------------------------------------------------- */

/* Where a dump continues: token slot, and how many of its entries are done. */
struct weft_dump {
	long	slot;
	long	done;
};

static int put_subflow(struct sk_buff *skb, struct mptcp_sock *msk,
		       const struct mptcp_subflow_context *subflow)
{
	const struct sock *ssk = mptcp_subflow_tcp_sock(subflow);
	u64 rtt_ns = (u64)(READ_ONCE(tcp_sk(ssk)->srtt_us) >> 3) * NSEC_PER_USEC;
	const struct weft_conn *conn = weft_conn(msk);
	const struct weft_rb *rb = weft_rb_state(msk);
	struct weft_subflow carried = { 0 };
	__be32 local = 0, remote = 0;
	struct nlattr *nest;
	int slot = -ENOENT;

	weft_endpoints(ssk, &local, &remote);
	if (conn)
		slot = weft_slot(conn, subflow);
	if (slot >= 0)
		carried = weft_slot_totals(msk, slot);

	nest = nla_nest_start(skb, WEFT_A_SUBFLOW);
	if (!nest ||
	    nla_put_be32(skb, WEFT_SUBFLOW_A_LOCAL, local) ||
	    nla_put_be32(skb, WEFT_SUBFLOW_A_REMOTE, remote) ||
	    nla_put_u32(skb, WEFT_SUBFLOW_A_GAP,
			rb && slot >= 0 ? rb->gap[slot] : 0) ||
	    nla_put_u64_64bit(skb, WEFT_SUBFLOW_A_RTT_NS, rtt_ns,
			      WEFT_SUBFLOW_A_PAD) ||
	    nla_put_u64_64bit(skb, WEFT_SUBFLOW_A_PACKETS, carried.packets,
			      WEFT_SUBFLOW_A_PAD) ||
	    nla_put_u64_64bit(skb, WEFT_SUBFLOW_A_BYTES, carried.bytes,
			      WEFT_SUBFLOW_A_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* The sequence as indices into the message's list of subflows. */
static int put_flow_sequence(struct sk_buff *skb, struct mptcp_sock *msk,
			     const struct weft_rb *rb)
{
	const struct weft_conn *conn = weft_conn(msk);
	u8 index_of_slot[WEFT_PATHS_MAX] = { 0 };
	struct mptcp_subflow_context *subflow;
	struct nlattr *attr;
	unsigned int i = 0;
	u8 *sequence;

	mptcp_for_each_subflow(msk, subflow) {
		int slot = weft_slot(conn, subflow);

		if (slot >= 0)
			index_of_slot[slot] = i;
		i++;
	}
	attr = nla_reserve(skb, WEFT_A_SEQUENCE, rb->length);
	if (!attr)
		return -EMSGSIZE;
	sequence = nla_data(attr);
	for (i = 0; i < rb->length; i++)
		sequence[i] = index_of_slot[rb->sequence[i]];
	return 0;
}

/* The caller owns the socket, whose scheduler keeps a struct weft_conn. */
static int put_flow(struct sk_buff *skb, struct mptcp_sock *msk)
{
	const struct weft_rb *rb = weft_rb_state(msk);
	u8 source = rb ? rb->source : WEFT_SOURCE_NONE;
	struct mptcp_subflow_context *subflow;
	struct nlattr *nest;

	if (nla_put_u32(skb, WEFT_A_TOKEN, READ_ONCE(msk->token)) ||
	    nla_put_string(skb, WEFT_A_SCHEDULER, msk->sched->name) ||
	    nla_put_u8(skb, WEFT_A_SOURCE, source))
		return -EMSGSIZE;
	if (rb && rb->length && put_flow_sequence(skb, msk, rb))
		return -EMSGSIZE;
	if (source == WEFT_SOURCE_CONTROLLER &&
	    nla_put_u64_64bit(skb, WEFT_A_VERSION, rb->version, WEFT_A_PAD))
		return -EMSGSIZE;

	nest = nla_nest_start(skb, WEFT_A_SUBFLOWS);
	if (!nest)
		return -EMSGSIZE;
	mptcp_for_each_subflow(msk, subflow)
		if (put_subflow(skb, msk, subflow))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Whether the scheduler, of this module or another, keeps a struct weft_conn. */
static bool has_weft_conn(const struct mptcp_sock *msk)
{
	return msk->sched && msk->sched->init == weft_conn_init &&
	       !list_empty(&msk->conn_list);
}

static int dump_flow(struct sk_buff *skb, struct netlink_callback *cb,
		     struct mptcp_sock *msk)
{
	struct sock *sk = (struct sock *)msk;
	void *header;
	int err = 0;

	lock_sock(sk);
	if (!has_weft_conn(msk) || sk->sk_state == TCP_LISTEN)
		goto release;

	header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid,
			     cb->nlh->nlmsg_seq, &weft_nl_family, NLM_F_MULTI,
			     WEFT_CMD_FLOW_GET);
	if (!header) {
		err = -EMSGSIZE;
		goto release;
	}
	err = put_flow(skb, msk);
	if (err)
		genlmsg_cancel(skb, header);
	else
		genlmsg_end(skb, header);
release:
	release_sock(sk);
	return err;
}

int weft_nl_flow_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct net *net = sock_net(skb->sk);
	struct weft_dump *at = (struct weft_dump *)cb->ctx;
	struct mptcp_sock *msk;

	while ((msk = mptcp_token_iter_next(net, &at->slot, &at->done))) {
		int err = dump_flow(skb, cb, msk);

		sock_put((struct sock *)msk);
		if (err) {
			/* no room: this flow comes first in the next message */
			at->done--;
			break;
		}
		cond_resched();
	}
	return skb->len;
}

/* --- family --------------------------------------------------------------- */

/**
 * weft_netlink_init() - register the family
 *
 * Return: 0 or a negative errno.
 */
int __init weft_netlink_init(void)
{
	BUILD_BUG_ON(sizeof(struct weft_dump) >
		     sizeof_field(struct netlink_callback, ctx));
	return genl_register_family(&weft_nl_family);
}

/**
 * weft_netlink_exit() - unregister the family
 */
void weft_netlink_exit(void)
{
	genl_unregister_family(&weft_nl_family);
}
