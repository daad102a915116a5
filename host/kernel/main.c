// SPDX-License-Identifier: GPL-2.0
/*
 * The module: MPTCP schedulers, selected by net.mptcp.scheduler or the socket
 * option MPTCP_SCHEDULER, and the netlink family that feeds rb.
 */
#include <linux/module.h>
#include <net/net_namespace.h>

#include "weft.h"

static unsigned int weft_net_id __ro_after_init;

struct mptcp_sched_ops *const weft_schedulers[] = {
	&weft_rb, &weft_roundrobin, &weft_rr_packet,
	&weft_minrtt, &weft_minrtt_pr, &weft_blest, &weft_ecf,
	&weft_stms_c, &weft_stms_a, &weft_daps, &weft_otias,
	&weft_redundant, &weft_weft, NULL
};
EXPORT_SYMBOL_GPL(weft_schedulers);	/* for bench/cost.c */

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

static void weft_unregister(unsigned int count)
{
	while (count--)
		mptcp_unregister_scheduler(weft_schedulers[count]);
	/* somebody may be looking one up by its name right now */
	synchronize_rcu();
}

static int __init weft_init(void)
{
	unsigned int i;
	int err;

	err = register_pernet_subsys(&weft_net_ops);
	if (err)
		return err;
	err = weft_netlink_init();
	if (err)
		goto unregister_net;
	for (i = 0; weft_schedulers[i]; i++) {
		err = mptcp_register_scheduler(weft_schedulers[i]);
		if (err)
			goto unregister_schedulers;
	}
	return 0;

unregister_schedulers:
	weft_unregister(i);
	weft_netlink_exit();
unregister_net:
	unregister_pernet_subsys(&weft_net_ops);
	return err;
}

static void __exit weft_exit(void)
{
	weft_unregister(ARRAY_SIZE(weft_schedulers) - 1);
	weft_netlink_exit();
	unregister_pernet_subsys(&weft_net_ops);
	/* patterns that kfree_rcu() has yet to free need no code of ours */
}

module_init(weft_init);
module_exit(weft_exit);

MODULE_DESCRIPTION("MPTCP schedulers with allocation patterns from the network");
MODULE_LICENSE("GPL");
