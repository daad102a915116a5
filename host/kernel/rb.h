/* SPDX-License-Identifier: GPL-2.0-only */
/* The allocation pattern that a connection uses; see rb.c. */
#ifndef _WEFT_RB_H
#define _WEFT_RB_H

#include "weft.h"

/**
 * struct weft_rb - state of a connection
 * @source: enum weft_source of @sequence
 * @length: entries of @sequence; 0 when it has to be computed
 * @position: index into @sequence for the next packet
 * @watch: whether the pattern table has something new
 * @slot_changes: of struct weft_conn when @sequence was computed
 * @members: bit per slot: the usable subflows that @sequence was computed for
 * @version: of the controller's pattern behind @sequence
 * @refresh_ns: ktime_get_ns() at which @sequence has to be computed again
 * @gap: packets per pattern, by slot
 * @sequence: slot for each position
 */
struct weft_rb {
	u8	source;
	u16	length;
	u16	position;
	struct weft_watch	watch;
	u32	slot_changes;
	u32	members;
	u64	version;
	u64	refresh_ns;
	u32	gap[WEFT_PATHS_MAX];
	u8	sequence[WEFT_SEQUENCE_MAX];
};

const struct weft_rb *weft_rb_state(const struct mptcp_sock *msk);

#endif /* _WEFT_RB_H */
