// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller's patterns of a network namespace, by destination prefix.
 *
 * There is one hash table for all prefix lengths, and a bit mask of the lengths in use.
 * A lookup tries those lengths from long to short; a data center has one or two. Apart
 * from their age, patterns are immutable. A write replaces the whole object under RCU,
 * so a reader sees the old version or the new one and never a mixture.
 *
 * A connection keeps what it has computed from a pattern, and watches whether that is
 * still the table's answer (struct weft_watch). When a pattern is replaced, only the
 * connections that watch it look it up again, apart from a few whose patterns have the
 * same hash. When a prefix comes, goes or comes back to life, all do, because its
 * pattern may be the better answer for any of them.
 */
#include <linux/ktime.h>
#include <linux/overflow.h>
#include <linux/rculist.h>
#include <linux/rhashtable.h>
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

static const struct rhashtable_params by_prefix = {
	.key_len		= sizeof(struct weft_prefix),
	.key_offset		= offsetof(struct weft_pattern, to),
	.head_offset		= offsetof(struct weft_pattern, node),
	.automatic_shrinking	= true,
};

/* Caller holds the table's lock or is in an RCU read section. */
static struct weft_pattern *lookup(struct weft_table *table, const struct weft_prefix *to)
{
	return rhashtable_lookup_fast(&table->patterns, to, by_prefix);
}

/* Which counter of the table counts the replacements of a prefix's pattern. */
static u32 *replacements(struct weft_table *table, const struct weft_prefix *to)
{
	return &table->replacements[jhash(to, sizeof(*to), 0) % WEFT_TABLE_COUNTERS];
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

	if (check_add_overflow((u64)atomic64_read(&pattern->set_ns), pattern->ttl_ns, &expires_ns))
		return U64_MAX;
	return expires_ns;
}

static const struct weft_pattern *find_live(struct weft_table *table, __be32 address,
					    u64 now_ns)
{
	u64 lengths = atomic64_read(&table->lengths);

	while (lengths) {
		u8 length = fls64(lengths) - 1;
		struct weft_prefix to = {
			.address = address & weft_prefix_mask(length),
			.length = length,
		};
		const struct weft_pattern *pattern = lookup(table, &to);

		lengths &= ~BIT_ULL(length);
		if (pattern && now_ns < weft_pattern_expires_ns(pattern))
			return pattern;
	}
	return NULL;
}

/**
 * weft_watch_begin() - watch nothing but whether prefixes come or go
 * @watch: what a connection watches
 * @table: table
 */
void weft_watch_begin(struct weft_watch *watch, const struct weft_table *table)
{
	watch->count = 0;
	/* before the lookups */
	watch->sum = smp_load_acquire(&table->changes);
}

/**
 * weft_watch_is_current() - whether all lookups since weft_watch_begin() have the same
 *	answers now, apart from patterns that have expired
 * @watch: what a connection watches
 * @table: table
 *
 * Return: false when the patterns have to be looked up again.
 */
bool weft_watch_is_current(const struct weft_watch *watch, const struct weft_table *table)
{
	u32 sum = READ_ONCE(table->changes);
	unsigned int i;

	for (i = 0; i < watch->count; i++)
		sum += READ_ONCE(*watch->counter[i]);
	return sum == watch->sum;
}

/**
 * weft_table_find() - the pattern for a destination
 * @table: table
 * @address: destination
 * @now_ns: ktime_get_ns()
 * @watch: notes what the answer depends on; begun, for at most WEFT_PATHS_MAX lookups
 *
 * Context: RCU read section; the result is valid within it.
 * Return: the pattern of the longest prefix that has not expired, or NULL.
 */
const struct weft_pattern *weft_table_find(struct weft_table *table, __be32 address,
					   u64 now_ns, struct weft_watch *watch)
{
	const struct weft_pattern *pattern;
	u32 *counter, count;

	do {
		pattern = find_live(table, address, now_ns);
		if (!pattern)
			return NULL;
		counter = replacements(table, &pattern->to);
		/* pairs with weft_table_set(): of a newer pattern, this is no older count */
		count = smp_load_acquire(counter);
	} while (find_live(table, address, now_ns) != pattern);
	watch->counter[watch->count++] = counter;
	watch->sum += count;
	return pattern;
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
	__be32 mask = weft_prefix_mask(pattern->to.length);
	__be32 local, remote;
	int i;

	if (!weft_endpoints(ssk, &local, &remote) ||
	    (remote & mask) != pattern->to.address)
		return -ENOENT;
	for (i = 0; i < pattern->paths; i++)
		if (pattern->path[i].local == local)
			return i;
	return -ENOENT;
}

/* A change that concerns all connections. */
static void note_change(struct weft_table *table)
{
	/* weft_watch_begin(): who sees this count finds what has changed */
	smp_store_release(&table->changes, table->changes + 1);
}

static void note_write(struct weft_table *table)
{
	table->generation++;
}

static void remove(struct weft_table *table, struct weft_pattern *pattern)
{
	rhashtable_remove_fast(&table->patterns, &pattern->node, by_prefix);
	list_del(&pattern->list);
	table->count--;
	if (!--table->per_length[pattern->to.length])
		atomic64_andnot(BIT_ULL(pattern->to.length), &table->lengths);
	kfree_rcu(pattern, rcu);
}

static int add(struct weft_table *table, struct weft_pattern *pattern)
{
	u8 length = pattern->to.length;
	int err;

	if (table->count >= WEFT_PATTERNS_MAX)
		return -ENOSPC;
	err = rhashtable_insert_fast(&table->patterns, &pattern->node, by_prefix);
	if (err)
		return err;
	pattern->id = ++table->last_id;
	list_add_tail(&pattern->list, &table->all);
	table->count++;
	table->per_length[length]++;
	atomic64_or(BIT_ULL(length), &table->lengths);
	note_change(table);
	return 0;
}

static int replace(struct weft_table *table, struct weft_pattern *old,
		   struct weft_pattern *pattern)
{
	u32 *counter = replacements(table, &old->to);
	int err;

	err = rhashtable_replace_fast(&table->patterns, &old->node, &pattern->node,
				      by_prefix);
	if (err)
		return err;
	pattern->id = old->id;
	list_replace(&old->list, &pattern->list);
	/* weft_table_find(): who sees this count finds the new pattern */
	smp_store_release(counter, *counter + 1);
	/* those for which it had expired watch another one, or none */
	if (atomic64_read(&pattern->set_ns) >= weft_pattern_expires_ns(old))
		note_change(table);
	kfree_rcu(old, rcu);
	return 0;
}

/**
 * weft_table_set() - add a pattern, or replace the one with its prefix
 * @table: table
 * @pattern: pattern; the table owns it if this succeeds
 *
 * Return: 0; -ENOSPC when the table is full; -ENOMEM.
 */
int weft_table_set(struct weft_table *table, struct weft_pattern *pattern)
{
	struct weft_pattern *old;
	int err;

	mutex_lock(&table->lock);
	pattern->decided_ns = ktime_get_ns();
	atomic64_set(&pattern->set_ns, pattern->decided_ns);
	old = lookup(table, &pattern->to);
	err = old ? replace(table, old, pattern) : add(table, pattern);
	if (!err)
		note_write(table);
	mutex_unlock(&table->lock);
	return err;
}

/**
 * weft_table_del() - remove the pattern of one prefix
 * @table: table
 * @to: destination
 *
 * Return: 0, or -ENOENT when there is none.
 */
int weft_table_del(struct weft_table *table, const struct weft_prefix *to)
{
	struct weft_pattern *pattern;

	mutex_lock(&table->lock);
	pattern = lookup(table, to);
	if (pattern) {
		remove(table, pattern);
		note_change(table);
		note_write(table);
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
	struct weft_pattern *pattern, *next;

	mutex_lock(&table->lock);
	list_for_each_entry_safe(pattern, next, &table->all, list)
		remove(table, pattern);
	note_change(table);
	note_write(table);
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
	u64 now_ns;

	mutex_lock(&table->lock);
	now_ns = ktime_get_ns();
	list_for_each_entry(pattern, &table->all, list) {
		had_expired |= now_ns >= weft_pattern_expires_ns(pattern);
		atomic64_set(&pattern->set_ns, now_ns);
	}
	if (had_expired)
		note_change(table);
	mutex_unlock(&table->lock);
}

/**
 * weft_table_init() - set up the table of a new namespace
 * @table: zeroed memory
 *
 * Return: 0 or -ENOMEM.
 */
int weft_table_init(struct weft_table *table)
{
	mutex_init(&table->lock);
	INIT_LIST_HEAD(&table->all);
	return rhashtable_init(&table->patterns, &by_prefix);
}

/**
 * weft_table_exit() - free the patterns of a namespace that goes away
 * @table: table
 */
void weft_table_exit(struct weft_table *table)
{
	weft_table_clear(table);
	rhashtable_destroy(&table->patterns);
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
	return weft_table_init(weft_table(net));
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
