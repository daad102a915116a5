/* SPDX-License-Identifier: GPL-2.0-only */
/* What weft knows of a connection's size; see weft_size.c (no kernel in it). */
#ifndef _WEFT_SIZE_H
#define _WEFT_SIZE_H

#include "view.h"

/* A weight of one. Weights are fixed-point numbers, as windows are. */
#define WEFT_WEIGHT_ONE		16U

/* Half of an even share up to four times as much. */
#define WEFT_WEIGHT_MIN		(WEFT_WEIGHT_ONE / 2)
#define WEFT_WEIGHT_MAX		(4 * WEFT_WEIGHT_ONE)

/**
 * struct weft_size - what a connection's data left to send are estimated from
 * @start_seq: data sequence number at which it was last idle
 * @written_seq: that of the end of what the application had written at the last look
 * @most_unsent_bytes: maximum since then of what was written and not sent
 * @free_us: since when the application could have written more and has not
 * @pause_us: the longest of such times since @start_seq that ended
 * @is_complete: whether it has written its last, as far as that shows
 */
struct weft_size {
	u64	start_seq;
	u64	written_seq;
	u64	most_unsent_bytes;
	u64	free_us;
	u64	pause_us;
	bool	is_complete;
};

u64 weft_size_written(const struct weft_size *size);
u64 weft_size_left(struct weft_size *size, const struct weft_conn_view *conn,
		   bool is_idle);
u32 weft_size_weight(u64 bytes_left, const struct weft_conn_view *conn);

#endif /* _WEFT_SIZE_H */
