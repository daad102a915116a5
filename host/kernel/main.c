// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: MPTCP schedulers, selected by net.mptcp.scheduler or the socket option
 * MPTCP_SCHEDULER, and the netlink family by which the controller sets patterns and
 * thresholds.
 */
#include <linux/module.h>

#include "thresholds.h"
#include "weft.h"

struct mptcp_sched_ops *const weft_schedulers[] = {
	&weft_rb, &weft_roundrobin, &weft_rr_packet,
	&weft_minrtt, &weft_minrtt_pr, &weft_blest, &weft_ecf,
	&weft_stms_c, &weft_stms_a, &weft_daps, &weft_otias,
	&weft_redundant, &weft_sched, NULL
};
EXPORT_SYMBOL_GPL(weft_schedulers);	/* for bench/cost.c */

static void weft_unregister(unsigned int count)
{
	while (count--)
		mptcp_unregister_scheduler(weft_schedulers[count]);
	/* a lookup by name may still be using one */
	synchronize_rcu();
}

static int __init weft_init(void)
{
	unsigned int i;
	int err;

	err = weft_tables_register();
	if (err)
		return err;
	err = weft_thresholds_register();
	if (err)
		goto unregister_tables;
	err = weft_netlink_init();
	if (err)
		goto unregister_thresholds;
	for (i = 0; weft_schedulers[i]; i++) {
		err = mptcp_register_scheduler(weft_schedulers[i]);
		if (err)
			goto unregister_schedulers;
	}
	return 0;

unregister_schedulers:
	weft_unregister(i);
	weft_netlink_exit();
unregister_thresholds:
	weft_thresholds_unregister();
unregister_tables:
	weft_tables_unregister();
	return err;
}

static void __exit weft_exit(void)
{
	weft_unregister(ARRAY_SIZE(weft_schedulers) - 1);
	weft_netlink_exit();
	weft_thresholds_unregister();
	weft_tables_unregister();
	/* patterns and thresholds that kfree_rcu() frees later need no code of this module */
}

module_init(weft_init);
module_exit(weft_exit);

MODULE_DESCRIPTION("MPTCP schedulers with allocation patterns from the network");
MODULE_LICENSE("GPL");
