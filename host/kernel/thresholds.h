/* SPDX-License-Identifier: GPL-2.0-only */
/* The controller's thresholds between classes; see thresholds.c. */
#ifndef _WEFT_THRESHOLDS_H
#define _WEFT_THRESHOLDS_H

#include <net/net_namespace.h>

#include "include/uapi/weft.h"

/**
 * struct weft_thresholds - thresholds of the controller
 * @rcu: frees them after their last reader
 * @set_ns: ktime_get_ns() of the THRESHOLDS_SET
 * @ttl_ns: they expire this long after @set_ns
 * @version: number that the controller gave them
 * @count: entries of @most_bytes
 * @most_bytes: for each class from 1, except the last, the most bytes that are left to
 *	send; rising
 */
struct weft_thresholds {
	struct rcu_head	rcu;
	u64		set_ns;
	u64		ttl_ns;
	u64		version;
	unsigned int	count;
	u64		most_bytes[WEFT_THRESHOLDS_MAX];
};

const struct weft_thresholds *weft_thresholds_live(const struct net *net,
						   unsigned int count);
int weft_thresholds_set(struct net *net, struct weft_thresholds *ones);
void weft_thresholds_clear(struct net *net);
bool weft_thresholds_copy(const struct net *net, struct weft_thresholds *to);
int weft_thresholds_register(void);
void weft_thresholds_unregister(void);

#endif /* _WEFT_THRESHOLDS_H */
