/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Generic netlink family "mptcp_pattern". Sets the allocation patterns of MPTCP
 * connections and the thresholds between their classes, and dumps these and
 * connections. Everything is per network namespace.
 *
 * Generated from mptcp_pattern.yaml by `make netlink`; do not edit.
 */
#ifndef _UAPI_WEFT_H
#define _UAPI_WEFT_H

#define WEFT_GENL_NAME		"mptcp_pattern"
#define WEFT_GENL_VERSION	1

#define WEFT_PATHS_MAX		8	/* local addresses in a pattern */
#define WEFT_SEQUENCE_MAX	256	/* positions in a pattern */
#define WEFT_WAIT_UNIT_NS_MAX	10000	/* largest WAIT_UNIT_NS */
#define WEFT_TTL_NS_MAX		60000000000ULL	/* largest TTL_NS, a minute; so no mistake lasts */
#define WEFT_VERSION_MAX	9223372036854775807ULL	/* largest VERSION; there is always a higher number */
#define WEFT_THRESHOLDS_MAX	6	/* thresholds between classes; class 0 has none, and the last is open */
#define WEFT_THRESHOLD_BYTES_MAX	1000000000000ULL	/* largest THRESHOLD, a terabyte */

/**
 * enum weft_cmd - commands
 * @WEFT_CMD_PATTERN_SET: adds the pattern of a destination prefix, or
 *	replaces it atomically
 * @WEFT_CMD_PATTERN_DEL: removes one pattern (with PREFIX and
 *	PREFIX_LEN) or all patterns
 * @WEFT_CMD_PATTERN_GET: dumps all patterns
 * @WEFT_CMD_FLOW_GET: dumps the MPTCP connections that use a scheduler
 *	of Weft; needs privileges, because a token is enough to join a
 *	connection
 * @WEFT_CMD_PATTERN_RENEW: restarts the time to live of all patterns
 * @WEFT_CMD_THRESHOLDS_SET: replaces the thresholds between classes;
 *	the built-in ones hold before and after
 * @WEFT_CMD_THRESHOLDS_DEL: the built-in thresholds hold again
 * @WEFT_CMD_THRESHOLDS_GET: dumps the thresholds that were set last, if
 *	any
 */
enum weft_cmd {
	WEFT_CMD_PATTERN_SET = 1,
	WEFT_CMD_PATTERN_DEL,
	WEFT_CMD_PATTERN_GET,
	WEFT_CMD_FLOW_GET,
	WEFT_CMD_PATTERN_RENEW,
	WEFT_CMD_THRESHOLDS_SET,
	WEFT_CMD_THRESHOLDS_DEL,
	WEFT_CMD_THRESHOLDS_GET,
	/* private: */
	__WEFT_CMD_MAX,
};

#define WEFT_CMD_MAX (__WEFT_CMD_MAX - 1)

/**
 * enum weft_attr - attributes of a message
 * @WEFT_A_PREFIX: IPv4 destination (be32)
 * @WEFT_A_PREFIX_LEN: length of the prefix in bits (u8)
 * @WEFT_A_VERSION: version of the pattern or of the thresholds; in
 *	FLOW_GET, of the pattern that the flow uses (u64)
 * @WEFT_A_TTL_NS: time to live, from the last SET or RENEW (u64)
 * @WEFT_A_AGE_NS: time since the last SET or RENEW; GET only (u64)
 * @WEFT_A_PATHS: local addresses of the pattern (nest of WEFT_A_PATH)
 * @WEFT_A_PATH: one local address, in PATHS (nest of enum
 *	weft_path_attr)
 * @WEFT_A_SEQUENCE: a u8 for each position, an index into PATHS, or
 *	into SUBFLOWS in the answer to FLOW_GET (binary)
 * @WEFT_A_TOKEN: MPTCP token of the connection (u32)
 * @WEFT_A_SOURCE: where the pattern in use comes from (u8, enum
 *	weft_source)
 * @WEFT_A_SCHEDULER: name of the scheduler (string)
 * @WEFT_A_SUBFLOWS: subflows of the connection (nest of WEFT_A_SUBFLOW)
 * @WEFT_A_SUBFLOW: one subflow, in SUBFLOWS (nest of enum
 *	weft_subflow_attr)
 * @WEFT_A_PAD: unused
 * @WEFT_A_WAIT_UNIT_NS: unit of the times that switches write into
 *	ACKs: how long the ACK waited, in IPv4's identification or IPv6's
 *	flow label; absent if they write none (u32)
 * @WEFT_A_THRESHOLDS: thresholds between classes, rising (nest of
 *	WEFT_A_THRESHOLD)
 * @WEFT_A_THRESHOLD: the most bytes left to send with which a packet is
 *	in class 1, 2, ..., in THRESHOLDS; one class more has the packets
 *	with more left (u64)
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
	WEFT_A_THRESHOLDS,
	WEFT_A_THRESHOLD,
	/* private: */
	__WEFT_A_MAX,
};

#define WEFT_A_MAX (__WEFT_A_MAX - 1)

/**
 * enum weft_path_attr - one local address of a pattern
 * @WEFT_PATH_A_LOCAL: local IPv4 address (be32)
 * @WEFT_PATH_A_GAP: packets per pattern; 0 if the path is not to be
 *	used (u32)
 * @WEFT_PATH_A_RTT_NS: RTT that the network measured (u64)
 * @WEFT_PATH_A_PAD: unused
 * @WEFT_PATH_A_LOWEST_RTT_NS: RTT without queues; 0 if unknown (u64)
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
 * @WEFT_SUBFLOW_A_GAP: packets per pattern, in the pattern that the
 *	flow uses (u32)
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
 * @WEFT_SOURCE_NONE: an RTT is unknown: per-packet round robin
 * @WEFT_SOURCE_LOCAL: the kernel's own RTTs
 * @WEFT_SOURCE_CONTROLLER: a PATTERN_SET that has not expired
 */
enum weft_source {
	WEFT_SOURCE_NONE,
	WEFT_SOURCE_LOCAL,
	WEFT_SOURCE_CONTROLLER,
};

#endif /* _UAPI_WEFT_H */
