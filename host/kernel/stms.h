/* SPDX-License-Identifier: GPL-2.0-only */
/* What stms_c and stms_a share; see stms.c. */
#ifndef _WEFT_STMS_H
#define _WEFT_STMS_H

#include "view.h"

/**
 * struct weft_stms - packets that are reserved for subflows
 * @reserved: by slot, packets that the subflow gets before the slow one gets a packet
 * @slow: slot that gets the next packet once nothing is reserved; -1 for none
 * @started: whether the rest is valid
 */
struct weft_stms {
	u32	reserved[WEFT_PATHS_MAX];
	int	slow;
	bool	started;
};

/**
 * typedef weft_stms_gap_fn - packets that a faster subflow carries before the
 * next packet of a slower one
 * @context: the caller's
 * @fast: the faster subflow
 * @slow: the slower one
 *
 * Return: packets.
 */
typedef u32 weft_stms_gap_fn(void *context, const struct weft_subflow_view *fast,
			     const struct weft_subflow_view *slow);

u32 weft_stms_true_gap(const struct weft_subflow_view *fast,
		       const struct weft_subflow_view *slow);
int weft_stms_slide(struct weft_stms *stms, const struct weft_subflow_view *view,
		    unsigned int n, const struct weft_conn_view *conn,
		    weft_stms_gap_fn *gap, void *context);

#endif /* _WEFT_STMS_H */
