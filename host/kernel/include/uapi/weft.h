/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Generic netlink family "weft". Allocation patterns into a network namespace
 * and flow state out of it. Everything is per network namespace.
 *
 * Generated from weft.yaml by `make netlink`; do not edit.
 */
#ifndef _UAPI_WEFT_H
#define _UAPI_WEFT_H

#define WEFT_GENL_NAME		"weft"
#define WEFT_GENL_VERSION	1

#define WEFT_PATHS_MAX		8	/* local addresses in a pattern */
#define WEFT_SEQUENCE_MAX	256	/* positions in a pattern */
#define WEFT_WAIT_UNIT_NS_MAX	10000	/* longest unit of the time that ACKs have waited */

/**
 * enum weft_cmd - commands
 * @WEFT_CMD_PATTERN_SET: replaces the pattern of one destination prefix
 *	atomically
 * @WEFT_CMD_PATTERN_DEL: removes one pattern (with PREFIX and
 *	PREFIX_LEN) or all of them
 * @WEFT_CMD_PATTERN_GET: dumps all patterns
 * @WEFT_CMD_FLOW_GET: dumps the MPTCP connections that a scheduler of
 *	Weft serves; not for everybody, as a token lets one join a connection
 * @WEFT_CMD_PATTERN_RENEW: lets all patterns live from now on, as if
 *	they were set again
 */
enum weft_cmd {
	WEFT_CMD_PATTERN_SET = 1,
	WEFT_CMD_PATTERN_DEL,
	WEFT_CMD_PATTERN_GET,
	WEFT_CMD_FLOW_GET,
	WEFT_CMD_PATTERN_RENEW,
	/* private: */
	__WEFT_CMD_MAX,
};

#define WEFT_CMD_MAX (__WEFT_CMD_MAX - 1)

/**
 * enum weft_attr - what messages carry
 * @WEFT_A_PREFIX: IPv4 destination (be32)
 * @WEFT_A_PREFIX_LEN: bits of it that count (u8)
 * @WEFT_A_VERSION: of the pattern; in FLOW_GET, of the one that the
 *	flow uses (u64)
 * @WEFT_A_TTL_NS: time to live, counted from the SET or RENEW (u64)
 * @WEFT_A_AGE_NS: time since then; GET only (u64)
 * @WEFT_A_PATHS: local addresses of the pattern (nest of WEFT_A_PATH)
 * @WEFT_A_PATH: one of them; stands in PATHS (nest of enum
 *	weft_path_attr)
 * @WEFT_A_SEQUENCE: per position, a u8 index into PATHS, or into
 *	SUBFLOWS in the answer to FLOW_GET (binary)
 * @WEFT_A_TOKEN: MPTCP token of the connection (u32)
 * @WEFT_A_SOURCE: where the pattern in use comes from (u8, enum
 *	weft_source)
 * @WEFT_A_SCHEDULER: name of the scheduler (string)
 * @WEFT_A_SUBFLOWS: subflows of the connection (nest of WEFT_A_SUBFLOW)
 * @WEFT_A_SUBFLOW: one of them; stands in SUBFLOWS (nest of enum
 *	weft_subflow_attr)
 * @WEFT_A_PAD: unused
 * @WEFT_A_WAIT_UNIT_NS: unit in which ACKs tell how long they have
 *	waited, in IPv4's identification or IPv6's flow label; without it
 *	they do not (u32)
 */
enum weft_attr {
	WEFT_A_PREFIX = 1,
	WEFT_A_PREFIX_LEN,
	WEFT_A_VERSION,
	WEFT_A_TTL_NS,
	WEFT_A_AGE_NS,
	WEFT_A_PATHS,
	WEFT_A_PATH,
	WEFT_A_SEQUENCE,
	WEFT_A_TOKEN,
	WEFT_A_SOURCE,
	WEFT_A_SCHEDULER,
	WEFT_A_SUBFLOWS,
	WEFT_A_SUBFLOW,
	WEFT_A_PAD,
	WEFT_A_WAIT_UNIT_NS,
	/* private: */
	__WEFT_A_MAX,
};

#define WEFT_A_MAX (__WEFT_A_MAX - 1)

/**
 * enum weft_path_attr - one local address of a pattern
 * @WEFT_PATH_A_LOCAL: local IPv4 address (be32)
 * @WEFT_PATH_A_GAP: packets per pattern (u32)
 * @WEFT_PATH_A_RTT_NS: RTT that the network measured (u64)
 * @WEFT_PATH_A_PAD: unused
 * @WEFT_PATH_A_LOWEST_RTT_NS: RTT without any queue; 0: not known (u64)
 */
enum weft_path_attr {
	WEFT_PATH_A_LOCAL = 1,
	WEFT_PATH_A_GAP,
	WEFT_PATH_A_RTT_NS,
	WEFT_PATH_A_PAD,
	WEFT_PATH_A_LOWEST_RTT_NS,
	/* private: */
	__WEFT_PATH_A_MAX,
};

#define WEFT_PATH_A_MAX (__WEFT_PATH_A_MAX - 1)

/**
 * enum weft_subflow_attr - one subflow of a connection
 * @WEFT_SUBFLOW_A_LOCAL: local address, zero over IPv6 (be32)
 * @WEFT_SUBFLOW_A_REMOTE: remote address, zero over IPv6 (be32)
 * @WEFT_SUBFLOW_A_GAP: packets per pattern, in the one in use (u32)
 * @WEFT_SUBFLOW_A_RTT_NS: the kernel's own smoothed RTT (u64)
 * @WEFT_SUBFLOW_A_PACKETS: packets scheduled (u64)
 * @WEFT_SUBFLOW_A_BYTES: bytes scheduled (u64)
 * @WEFT_SUBFLOW_A_PAD: unused
 */
enum weft_subflow_attr {
	WEFT_SUBFLOW_A_LOCAL = 1,
	WEFT_SUBFLOW_A_REMOTE,
	WEFT_SUBFLOW_A_GAP,
	WEFT_SUBFLOW_A_RTT_NS,
	WEFT_SUBFLOW_A_PACKETS,
	WEFT_SUBFLOW_A_BYTES,
	WEFT_SUBFLOW_A_PAD,
	/* private: */
	__WEFT_SUBFLOW_A_MAX,
};

#define WEFT_SUBFLOW_A_MAX (__WEFT_SUBFLOW_A_MAX - 1)

/**
 * enum weft_source - where the pattern that a flow uses comes from
 * @WEFT_SOURCE_NONE: no RTT yet: per-packet round robin
 * @WEFT_SOURCE_LOCAL: the kernel's own RTT
 * @WEFT_SOURCE_CONTROLLER: PATTERN_SET, within its time to live
 */
enum weft_source {
	WEFT_SOURCE_NONE,
	WEFT_SOURCE_LOCAL,
	WEFT_SOURCE_CONTROLLER,
};

#endif /* _UAPI_WEFT_H */
