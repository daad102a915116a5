/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Policies and operations of the family "mptcp_pattern".
 *
 * Generated from mptcp_pattern.yaml by `make netlink`; do not edit.
 */
#ifndef _WEFT_NETLINK_GEN_H
#define _WEFT_NETLINK_GEN_H

#include <net/genetlink.h>
#include <net/netlink.h>

#include "include/uapi/weft.h"

extern const struct nla_policy weft_path_nl_policy[WEFT_PATH_A_MAX + 1];
extern const struct nla_policy weft_paths_nl_policy[WEFT_A_MAX + 1];
extern const struct nla_policy weft_thresholds_nl_policy[WEFT_A_MAX + 1];

int weft_nl_pattern_set_doit(struct sk_buff *skb, struct genl_info *info);
int weft_nl_pattern_del_doit(struct sk_buff *skb, struct genl_info *info);
int weft_nl_pattern_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int weft_nl_flow_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int weft_nl_pattern_renew_doit(struct sk_buff *skb, struct genl_info *info);
int weft_nl_thresholds_set_doit(struct sk_buff *skb, struct genl_info *info);
int weft_nl_thresholds_del_doit(struct sk_buff *skb, struct genl_info *info);
int weft_nl_thresholds_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);

extern struct genl_family weft_nl_family;

#endif /* _WEFT_NETLINK_GEN_H */
