// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller's thresholds of a network namespace: up to how many bytes left to send a
 * packet is in which class (priority.c).
 *
 * They hold for a time to live, as patterns do. A controller that is gone therefore leaves no
 * thresholds behind that no longer fit the traffic: the built-in ones hold again. Thresholds
 * are immutable. A write replaces the whole object under RCU, so a packet's class comes from
 * the old ones or the new ones and never from a mixture.
 */
#include <linux/ktime.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "thresholds.h"

/**
 * struct weft_net_thresholds - the thresholds of a network namespace
 * @lock: serialises writers
 * @current_ones: those that were set last; NULL before
 */
struct weft_net_thresholds {
	struct mutex			lock;	/* serialises writers */
	struct weft_thresholds __rcu	*current_ones;
};

static unsigned int weft_net_id __ro_after_init;

static bool have_expired(const struct weft_thresholds *ones, u64 now_ns)
{
	/* no overflow: a time to live is at most a minute */
	return now_ns >= ones->set_ns + ones->ttl_ns;
}

/**
 * weft_thresholds_live() - the controller's thresholds, if they hold
 * @net: namespace
 * @count: how many thresholds the classes in use have
 *
 * Context: RCU read section; the result is valid within it.
 * Return: thresholds; NULL if there are none, if they have expired, or if they are for
 * another number of classes.
 */
const struct weft_thresholds *weft_thresholds_live(const struct net *net,
						   unsigned int count)
{
	const struct weft_net_thresholds *of_net = net_generic(net, weft_net_id);
	const struct weft_thresholds *ones = rcu_dereference(of_net->current_ones);

	if (!ones || ones->count != count || have_expired(ones, ktime_get_ns()))
		return NULL;
	return ones;
}

/**
 * weft_thresholds_set() - replace the controller's thresholds
 * @net: namespace
 * @ones: thresholds; owned by the namespace if this succeeds
 *
 * Return: 0; -ESTALE when those of a newer version have not expired yet.
 */
int weft_thresholds_set(struct net *net, struct weft_thresholds *ones)
{
	struct weft_net_thresholds *of_net = net_generic(net, weft_net_id);
	struct weft_thresholds *old;
	int err = 0;

	mutex_lock(&of_net->lock);
	ones->set_ns = ktime_get_ns();
	old = rcu_dereference_protected(of_net->current_ones,
					lockdep_is_held(&of_net->lock));
	if (old && old->version > ones->version && !have_expired(old, ones->set_ns)) {
		err = -ESTALE;
	} else {
		rcu_assign_pointer(of_net->current_ones, ones);
		if (old)
			kfree_rcu(old, rcu);
	}
	mutex_unlock(&of_net->lock);
	return err;
}

/**
 * weft_thresholds_clear() - the built-in thresholds hold again
 * @net: namespace
 */
void weft_thresholds_clear(struct net *net)
{
	struct weft_net_thresholds *of_net = net_generic(net, weft_net_id);
	struct weft_thresholds *old;

	mutex_lock(&of_net->lock);
	old = rcu_replace_pointer(of_net->current_ones, NULL,
				  lockdep_is_held(&of_net->lock));
	mutex_unlock(&of_net->lock);
	if (old)
		kfree_rcu(old, rcu);
}

/**
 * weft_thresholds_copy() - what was set last, also if it has expired
 * @net: namespace
 * @to: result
 *
 * Return: whether there is any.
 */
bool weft_thresholds_copy(const struct net *net, struct weft_thresholds *to)
{
	const struct weft_net_thresholds *of_net = net_generic(net, weft_net_id);
	const struct weft_thresholds *ones;

	rcu_read_lock();
	ones = rcu_dereference(of_net->current_ones);
	if (ones)
		*to = *ones;
	rcu_read_unlock();
	return ones;
}

static int __net_init weft_net_init(struct net *net)
{
	struct weft_net_thresholds *of_net = net_generic(net, weft_net_id);

	mutex_init(&of_net->lock);
	return 0;
}

static void __net_exit weft_net_exit(struct net *net)
{
	struct weft_net_thresholds *of_net = net_generic(net, weft_net_id);

	weft_thresholds_clear(net);
	mutex_destroy(&of_net->lock);
}

static struct pernet_operations weft_net_ops = {
	.init	= weft_net_init,
	.exit	= weft_net_exit,
	.id	= &weft_net_id,
	.size	= sizeof(struct weft_net_thresholds),
};

/**
 * weft_thresholds_register() - give each namespace room for thresholds
 *
 * Return: 0 or a negative errno.
 */
int weft_thresholds_register(void)
{
	return register_pernet_subsys(&weft_net_ops);
}

/**
 * weft_thresholds_unregister() - free the thresholds of all namespaces
 */
void weft_thresholds_unregister(void)
{
	unregister_pernet_subsys(&weft_net_ops);
}
