/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Generic netlink family "weft": allocation patterns into a network namespace
 * and flow state out of it. Everything is per network namespace.
 *
 * PATTERN_SET replaces the pattern of one destination prefix atomically.
 * PATTERN_DEL removes one (with PREFIX and PREFIX_LEN) or all of them.
 * PATTERN_RENEW lets all of them live from now on, as if they were set again.
 * PATTERN_GET dumps them, FLOW_GET dumps the MPTCP connections that a weft
 * scheduler serves.
 */
#ifndef _UAPI_WEFT_H
#define _UAPI_WEFT_H

#define WEFT_GENL_NAME		"weft"
#define WEFT_GENL_VERSION	1

#define WEFT_PATHS_MAX		8	/* local addresses in a pattern */
#define WEFT_SEQUENCE_MAX	256	/* positions in a pattern */
#define WEFT_WAIT_UNIT_NS_MAX	10000

enum weft_cmd {
	WEFT_CMD_UNSPEC,
	WEFT_CMD_PATTERN_SET,
	WEFT_CMD_PATTERN_DEL,
	WEFT_CMD_PATTERN_GET,
	WEFT_CMD_FLOW_GET,
	WEFT_CMD_PATTERN_RENEW,
	__WEFT_CMD_MAX,
};
#define WEFT_CMD_MAX (__WEFT_CMD_MAX - 1)

enum weft_attr {
	WEFT_A_UNSPEC,
	WEFT_A_PREFIX,		/* be32, IPv4 destination */
	WEFT_A_PREFIX_LEN,	/* u8 */
	WEFT_A_VERSION,		/* u64; SET, GET, and the one a flow uses */
	WEFT_A_TTL_NS,		/* u64, counted from the SET or RENEW */
	WEFT_A_AGE_NS,		/* u64, GET only: since then */
	WEFT_A_PATHS,		/* nest of WEFT_A_PATH */
	WEFT_A_PATH,		/* nest of enum weft_path_attr */
	WEFT_A_SEQUENCE,	/* binary: per position, a u8 index into PATHS,
				 * or into SUBFLOWS in the answer to FLOW_GET
				 */
	WEFT_A_TOKEN,		/* u32, MPTCP token of the connection */
	WEFT_A_SOURCE,		/* u8, enum weft_source */
	WEFT_A_SCHEDULER,	/* string, name of the scheduler */
	WEFT_A_SUBFLOWS,	/* nest of WEFT_A_SUBFLOW */
	WEFT_A_SUBFLOW,		/* nest of enum weft_subflow_attr */
	WEFT_A_PAD,
	WEFT_A_WAIT_UNIT_NS,	/* u32, in which ACKs tell how long they have waited:
				 * in IPv4's identification, IPv6's flow label;
				 * without it they do not
				 */
	__WEFT_A_MAX,
};
#define WEFT_A_MAX (__WEFT_A_MAX - 1)

enum weft_path_attr {
	WEFT_PATH_A_UNSPEC,
	WEFT_PATH_A_LOCAL,	/* be32, local IPv4 address */
	WEFT_PATH_A_GAP,	/* u32, packets per pattern */
	WEFT_PATH_A_RTT_NS,	/* u64 */
	WEFT_PATH_A_PAD,
	WEFT_PATH_A_LOWEST_RTT_NS,	/* u64, without any queue; 0: not known */
	__WEFT_PATH_A_MAX,
};
#define WEFT_PATH_A_MAX (__WEFT_PATH_A_MAX - 1)

enum weft_subflow_attr {
	WEFT_SUBFLOW_A_UNSPEC,
	WEFT_SUBFLOW_A_LOCAL,	/* be32, zero over IPv6 */
	WEFT_SUBFLOW_A_REMOTE,	/* be32, zero over IPv6 */
	WEFT_SUBFLOW_A_GAP,	/* u32, in the pattern in use */
	WEFT_SUBFLOW_A_RTT_NS,	/* u64, the kernel's own smoothed RTT */
	WEFT_SUBFLOW_A_PACKETS,	/* u64, scheduled */
	WEFT_SUBFLOW_A_BYTES,	/* u64, scheduled */
	WEFT_SUBFLOW_A_PAD,
	__WEFT_SUBFLOW_A_MAX,
};
#define WEFT_SUBFLOW_A_MAX (__WEFT_SUBFLOW_A_MAX - 1)

/* Where the pattern that a flow uses comes from. */
enum weft_source {
	WEFT_SOURCE_NONE,	/* no RTT yet: per-packet round robin */
	WEFT_SOURCE_LOCAL,	/* the kernel's own RTT */
	WEFT_SOURCE_CONTROLLER,	/* PATTERN_SET, within its time to live */
};

#endif /* _UAPI_WEFT_H */
