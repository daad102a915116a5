// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module weft_coupled: lia, olia, balia and wvegas as TCP congestion controls,
 * selected by net.ipv4.tcp_congestion_control or per socket by TCP_CONGESTION.
 *
 * Sockets hold a reference to the module through the owner of their congestion
 * control. So does a namespace whose default is one of these. The module cannot be
 * removed while it is in use. Every user may choose these congestion controls
 * (TCP_CONG_NON_RESTRICTED), because a connection takes no more than Reno would: lia,
 * balia and wvegas on each path, olia in sum. A single window of olia may grow by 1.5
 * packets per round trip (olia.c: alpha is 1 / 2 at most) while its others shrink.
 */
#include <linux/module.h>

#include "coupling.h"

static struct tcp_congestion_ops *const coupled_algorithms[] = {
	&weft_lia, &weft_olia, &weft_balia, &weft_wvegas,
};

static void coupled_unregister(unsigned int count)
{
	while (count--)
		tcp_unregister_congestion_control(coupled_algorithms[count]);
}

static int __init coupled_module_init(void)
{
	unsigned int i;
	int err;

	BUILD_BUG_ON(sizeof(struct coupled) > ICSK_CA_PRIV_SIZE);
	for (i = 0; i < ARRAY_SIZE(coupled_algorithms); i++) {
		err = tcp_register_congestion_control(coupled_algorithms[i]);
		if (err) {
			coupled_unregister(i);
			return err;
		}
	}
	return 0;
}

static void __exit coupled_module_exit(void)
{
	/* the last socket has left its group, so there are no groups any more */
	coupled_unregister(ARRAY_SIZE(coupled_algorithms));
}

module_init(coupled_module_init);
module_exit(coupled_module_exit);

MODULE_DESCRIPTION("Coupled congestion control for MPTCP: LIA, OLIA, Balia, wVegas");
MODULE_LICENSE("GPL");
MODULE_ALIAS("tcp_lia");
MODULE_ALIAS("tcp_olia");
MODULE_ALIAS("tcp_balia");
MODULE_ALIAS("tcp_wvegas");
