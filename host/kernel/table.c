// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller's patterns of a network namespace, by destination prefix.
 *
 * There is one hash table for all prefix lengths, and a bit mask of the lengths in use.
 * A lookup tries those lengths from long to short; a data center has one or two. Apart
 * from their age, patterns are immutable. A write replaces the whole object under RCU,
 * so a reader sees the old version or the new one and never a mixture.
 */
#include <linux/hash.h>
#include <linux/ktime.h>
#include <linux/overflow.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <net/inet_sock.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "weft.h"

static unsigned int weft_net_id __ro_after_init;

/**
 * weft_prefix_mask() - netmask of a prefix length
 * @prefix_len: 0 to 32
 *
 * Return: mask in network byte order.
 */
__be32 weft_prefix_mask(u8 prefix_len)
{
	return prefix_len ? htonl(~0U << (32 - prefix_len)) : 0;
}

static unsigned int bucket_of(__be32 prefix, u8 prefix_len)
{
	return hash_32((__force u32)prefix ^ prefix_len, WEFT_TABLE_BITS);
}

/* Caller holds the table's lock or is in an RCU read section. */
static struct weft_pattern *lookup(const struct weft_table *table,
				   __be32 prefix, u8 prefix_len)
{
	struct weft_pattern *pattern;

	hlist_for_each_entry_rcu(pattern,
				 &table->bucket[bucket_of(prefix, prefix_len)],
				 node, lockdep_is_held(&table->lock))
		if (pattern->prefix == prefix &&
		    pattern->prefix_len == prefix_len)
			return pattern;
	return NULL;
}

/**
 * weft_pattern_expires_ns() - when a pattern expires
 * @pattern: pattern
 *
 * Return: ktime_get_ns() of that moment; U64_MAX for never.
 */
u64 weft_pattern_expires_ns(const struct weft_pattern *pattern)
{
	u64 expires_ns;

	if (check_add_overflow(READ_ONCE(pattern->set_ns), pattern->ttl_ns, &expires_ns))
		return U64_MAX;
	return expires_ns;
}

/**
 * weft_table_find() - the pattern for a destination
 * @table: table
 * @address: destination
 * @now_ns: ktime_get_ns()
 *
 * Context: RCU read section; the result is valid within it.
 * Return: the pattern of the longest prefix that has not expired, or NULL.
 */
const struct weft_pattern *weft_table_find(const struct weft_table *table,
					   __be32 address, u64 now_ns)
{
	u64 lengths = READ_ONCE(table->lengths);

	while (lengths) {
		u8 prefix_len = fls64(lengths) - 1;
		const struct weft_pattern *pattern;

		lengths &= ~BIT_ULL(prefix_len);
		pattern = lookup(table, address & weft_prefix_mask(prefix_len),
				 prefix_len);
		if (pattern && now_ns < weft_pattern_expires_ns(pattern))
			return pattern;
	}
	return NULL;
}

/**
 * weft_pattern_path() - the path of a pattern that a subflow uses
 * @pattern: pattern
 * @ssk: TCP socket of the subflow
 *
 * Return: index into its paths, or -ENOENT when the pattern has no path for it.
 */
int weft_pattern_path(const struct weft_pattern *pattern, const struct sock *ssk)
{
	__be32 mask = weft_prefix_mask(pattern->prefix_len);
	__be32 local, remote;
	int i;

	if (!weft_endpoints(ssk, &local, &remote) ||
	    (remote & mask) != pattern->prefix)
		return -ENOENT;
	for (i = 0; i < pattern->paths; i++)
		if (pattern->path[i].local == local)
			return i;
	return -ENOENT;
}

/* Make connections look their patterns up again. */
static void bump_generation(struct weft_table *table)
{
	WRITE_ONCE(table->generation, table->generation + 1);
}

static void remove(struct weft_table *table, struct weft_pattern *pattern)
{
	hlist_del_rcu(&pattern->node);
	table->count--;
	if (!--table->per_length[pattern->prefix_len])
		WRITE_ONCE(table->lengths,
			   table->lengths & ~BIT_ULL(pattern->prefix_len));
	kfree_rcu(pattern, rcu);
}

/**
 * weft_table_set() - add a pattern, or replace the one with its prefix
 * @table: table
 * @pattern: pattern; the table owns it if this succeeds
 *
 * Return: 0, or -ENOSPC when the table is full.
 */
int weft_table_set(struct weft_table *table, struct weft_pattern *pattern)
{
	u8 prefix_len = pattern->prefix_len;
	struct weft_pattern *old;
	int err = 0;

	mutex_lock(&table->lock);
	pattern->set_ns = ktime_get_ns();
	old = lookup(table, pattern->prefix, prefix_len);
	if (old) {
		hlist_replace_rcu(&old->node, &pattern->node);
		kfree_rcu(old, rcu);
	} else if (table->count >= WEFT_PATTERNS_MAX) {
		err = -ENOSPC;
		goto unlock;
	} else {
		hlist_add_head_rcu(&pattern->node,
				   &table->bucket[bucket_of(pattern->prefix,
							    prefix_len)]);
		table->count++;
		table->per_length[prefix_len]++;
		WRITE_ONCE(table->lengths, table->lengths | BIT_ULL(prefix_len));
	}
	bump_generation(table);
unlock:
	mutex_unlock(&table->lock);
	return err;
}

/**
 * weft_table_del() - remove the pattern of one prefix
 * @table: table
 * @prefix: destination
 * @prefix_len: its length
 *
 * Return: 0, or -ENOENT when there is none.
 */
int weft_table_del(struct weft_table *table, __be32 prefix, u8 prefix_len)
{
	struct weft_pattern *pattern;

	mutex_lock(&table->lock);
	pattern = lookup(table, prefix, prefix_len);
	if (pattern) {
		remove(table, pattern);
		bump_generation(table);
	}
	mutex_unlock(&table->lock);
	return pattern ? 0 : -ENOENT;
}

/**
 * weft_table_clear() - remove all patterns
 * @table: table
 */
void weft_table_clear(struct weft_table *table)
{
	struct weft_pattern *pattern;
	struct hlist_node *next;
	unsigned int i;

	mutex_lock(&table->lock);
	for (i = 0; i < ARRAY_SIZE(table->bucket); i++)
		hlist_for_each_entry_safe(pattern, next, &table->bucket[i], node)
			remove(table, pattern);
	bump_generation(table);
	mutex_unlock(&table->lock);
}

/**
 * weft_table_renew() - restart the time to live of all patterns
 * @table: table
 *
 * Connections that use a pattern need no notice: they look it up again when it would
 * have expired. Connections that have seen a pattern expire get one.
 */
void weft_table_renew(struct weft_table *table)
{
	struct weft_pattern *pattern;
	bool had_expired = false;
	unsigned int i;
	u64 now_ns;

	mutex_lock(&table->lock);
	now_ns = ktime_get_ns();
	for (i = 0; i < ARRAY_SIZE(table->bucket); i++)
		hlist_for_each_entry(pattern, &table->bucket[i], node) {
			had_expired |= now_ns >= weft_pattern_expires_ns(pattern);
			WRITE_ONCE(pattern->set_ns, now_ns);
		}
	if (had_expired)
		bump_generation(table);
	mutex_unlock(&table->lock);
}

/**
 * weft_table_init() - set up the table of a new namespace
 * @table: zeroed memory
 */
void weft_table_init(struct weft_table *table)
{
	mutex_init(&table->lock);
}

/**
 * weft_table_exit() - free the patterns of a namespace that goes away
 * @table: table
 */
void weft_table_exit(struct weft_table *table)
{
	weft_table_clear(table);
	mutex_destroy(&table->lock);
}

/**
 * weft_table() - the controller's patterns of a namespace
 * @net: namespace
 *
 * Return: its table, which lives as long as the namespace.
 */
struct weft_table *weft_table(const struct net *net)
{
	return net_generic(net, weft_net_id);
}

static int __net_init weft_net_init(struct net *net)
{
	weft_table_init(weft_table(net));
	return 0;
}

static void __net_exit weft_net_exit(struct net *net)
{
	weft_table_exit(weft_table(net));
}

static struct pernet_operations weft_net_ops = {
	.init	= weft_net_init,
	.exit	= weft_net_exit,
	.id	= &weft_net_id,
	.size	= sizeof(struct weft_table),
};

/**
 * weft_tables_register() - give each namespace a table, now and when it is made
 *
 * Return: 0 or a negative errno.
 */
int weft_tables_register(void)
{
	return register_pernet_subsys(&weft_net_ops);
}

/**
 * weft_tables_unregister() - free the tables of all namespaces
 */
void weft_tables_unregister(void)
{
	unregister_pernet_subsys(&weft_net_ops);
}
