// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policies and operations of the family "mptcp_pattern".
 *
 * Generated from mptcp_pattern.yaml by `make netlink`; do not edit.
 */
#include <linux/module.h>

#include "netlink_gen.h"

static const struct netlink_range_validation weft_a_version_range = {
	.max	= WEFT_VERSION_MAX,
};

static const struct netlink_range_validation weft_a_ttl_ns_range = {
	.min	= 1,
	.max	= WEFT_TTL_NS_MAX,
};

static const struct netlink_range_validation weft_a_threshold_range = {
	.min	= 1,
	.max	= WEFT_THRESHOLD_BYTES_MAX,
};

const struct nla_policy weft_path_nl_policy[WEFT_PATH_A_MAX + 1] = {
	[WEFT_PATH_A_LOCAL] = { .type = NLA_BE32 },
	[WEFT_PATH_A_GAP] = NLA_POLICY_MAX(NLA_U32, WEFT_SEQUENCE_MAX),
	[WEFT_PATH_A_RTT_NS] = { .type = NLA_U64 },
	[WEFT_PATH_A_LOWEST_RTT_NS] = { .type = NLA_U64 },
};

const struct nla_policy weft_paths_nl_policy[WEFT_A_MAX + 1] = {
	[WEFT_A_PATH] = NLA_POLICY_NESTED(weft_path_nl_policy),
};

const struct nla_policy weft_thresholds_nl_policy[WEFT_A_MAX + 1] = {
	[WEFT_A_THRESHOLD] = NLA_POLICY_FULL_RANGE(NLA_U64, &weft_a_threshold_range),
};

static const struct nla_policy weft_pattern_set_nl_policy[WEFT_A_MAX + 1] = {
	[WEFT_A_PREFIX] = { .type = NLA_BE32 },
	[WEFT_A_PREFIX_LEN] = NLA_POLICY_MAX(NLA_U8, 32),
	[WEFT_A_VERSION] = NLA_POLICY_FULL_RANGE(NLA_U64, &weft_a_version_range),
	[WEFT_A_TTL_NS] = NLA_POLICY_FULL_RANGE(NLA_U64, &weft_a_ttl_ns_range),
	[WEFT_A_PATHS] = NLA_POLICY_NESTED(weft_paths_nl_policy),
	[WEFT_A_SEQUENCE] = NLA_POLICY_RANGE(NLA_BINARY, 1, WEFT_SEQUENCE_MAX),
	[WEFT_A_WAIT_UNIT_NS] = NLA_POLICY_MAX(NLA_U32, WEFT_WAIT_UNIT_NS_MAX),
};

static const struct nla_policy weft_pattern_del_nl_policy[WEFT_A_MAX + 1] = {
	[WEFT_A_PREFIX] = { .type = NLA_BE32 },
	[WEFT_A_PREFIX_LEN] = NLA_POLICY_MAX(NLA_U8, 32),
};

static const struct nla_policy weft_thresholds_set_nl_policy[WEFT_A_MAX + 1] = {
	[WEFT_A_VERSION] = NLA_POLICY_FULL_RANGE(NLA_U64, &weft_a_version_range),
	[WEFT_A_TTL_NS] = NLA_POLICY_FULL_RANGE(NLA_U64, &weft_a_ttl_ns_range),
	[WEFT_A_THRESHOLDS] = NLA_POLICY_NESTED(weft_thresholds_nl_policy),
};

static const struct genl_split_ops weft_nl_ops[] = {
	{
		.cmd		= WEFT_CMD_PATTERN_SET,
		.doit		= weft_nl_pattern_set_doit,
		.policy		= weft_pattern_set_nl_policy,
		.maxattr	= WEFT_A_MAX,
		.flags		= GENL_UNS_ADMIN_PERM | GENL_CMD_CAP_DO,
	},
	{
		.cmd		= WEFT_CMD_PATTERN_DEL,
		.doit		= weft_nl_pattern_del_doit,
		.policy		= weft_pattern_del_nl_policy,
		.maxattr	= WEFT_A_MAX,
		.flags		= GENL_UNS_ADMIN_PERM | GENL_CMD_CAP_DO,
	},
	{
		.cmd		= WEFT_CMD_PATTERN_GET,
		.dumpit		= weft_nl_pattern_get_dumpit,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= WEFT_CMD_FLOW_GET,
		.dumpit		= weft_nl_flow_get_dumpit,
		.flags		= GENL_UNS_ADMIN_PERM | GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= WEFT_CMD_PATTERN_RENEW,
		.doit		= weft_nl_pattern_renew_doit,
		.flags		= GENL_UNS_ADMIN_PERM | GENL_CMD_CAP_DO,
	},
	{
		.cmd		= WEFT_CMD_THRESHOLDS_SET,
		.doit		= weft_nl_thresholds_set_doit,
		.policy		= weft_thresholds_set_nl_policy,
		.maxattr	= WEFT_A_MAX,
		.flags		= GENL_UNS_ADMIN_PERM | GENL_CMD_CAP_DO,
	},
	{
		.cmd		= WEFT_CMD_THRESHOLDS_DEL,
		.doit		= weft_nl_thresholds_del_doit,
		.flags		= GENL_UNS_ADMIN_PERM | GENL_CMD_CAP_DO,
	},
	{
		.cmd		= WEFT_CMD_THRESHOLDS_GET,
		.dumpit		= weft_nl_thresholds_get_dumpit,
		.flags		= GENL_CMD_CAP_DUMP,
	},
};

struct genl_family weft_nl_family __ro_after_init = {
	.name		= WEFT_GENL_NAME,
	.version	= WEFT_GENL_VERSION,
	.module		= THIS_MODULE,
	.netnsok	= true,
	.parallel_ops	= true,
	.split_ops	= weft_nl_ops,
	.n_split_ops	= ARRAY_SIZE(weft_nl_ops),
};
