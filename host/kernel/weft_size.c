// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much a connection of the scheduler weft has left to send, and what its share in
 * queues is multiplied by because of that.
 *
 * Connections with less data left get a larger share of the queues, and with it of the
 * links. Mean completion times are shortest when the connection that is nearest to its
 * end comes first (the order of pFabric: Alizadeh et al., SIGCOMM 2013). No connection
 * stops for that.
 *
 * The data left are those that the application has written and no subflow has been
 * given. Of an application that writes bit by bit, they say little. So a connection has
 * at least as much left as its application has written on top of the most that was ever
 * unsent: what has gone on for long will go on (as in PIAS: Bai et al., NSDI 2015). An
 * application that waits to write more counts as one with much left. One that has not
 * written for a while although it could, and for much longer than ever before, has written
 * its last: what is unsent then is all that is left.
 */
#include "weft_size.h"

/* A while: several round trips, and more than an application takes to be woken. */
#define LAST_WRITE_US	1000U

static unsigned int weft_even_kb = 4000;

/**
 * weft_size_written() - how much had been written at the last look since a connection was
 *	last idle
 * @size: its state
 *
 * Return: bytes.
 */
u64 weft_size_written(const struct weft_size *size)
{
	return size->written_seq - size->start_seq;
}

/* Whether the application has nothing more to write, as far as that shows. */
static bool has_written_last(struct weft_size *size, const struct weft_conn_view *conn)
{
	u64 written_seq = conn->next_seq + conn->unsent_bytes;
	u64 pause_us = conn->now_us - size->free_us;

	if (written_seq == size->written_seq && !conn->app_is_blocked)
		return pause_us > 2 * size->pause_us + LAST_WRITE_US;
	if (written_seq != size->written_seq)
		size->pause_us = max(size->pause_us, pause_us);
	size->written_seq = written_seq;
	size->free_us = conn->now_us;
	return false;
}

/**
 * weft_size_left() - estimate how much a connection has left to send
 * @size: its state, updated
 * @conn: connection
 * @is_idle: whether all that it has sent is acknowledged
 *
 * Return: bytes.
 */
u64 weft_size_left(struct weft_size *size, const struct weft_conn_view *conn,
		   bool is_idle)
{
	/* otherwise its window was used up: all that it sent is acknowledged, but not its end */
	if (is_idle && conn->next_seq >= size->written_seq) {
		size->start_seq = conn->next_seq;
		size->most_unsent_bytes = 0;
		size->free_us = conn->now_us;
		size->pause_us = 0;
	}
	size->is_complete = has_written_last(size, conn);
	if (size->is_complete)
		return conn->unsent_bytes;
	size->most_unsent_bytes = max(size->most_unsent_bytes, conn->unsent_bytes);
	return max(conn->unsent_bytes,
		   weft_size_written(size) - size->most_unsent_bytes);
}

/**
 * weft_size_weight() - what the share of a connection in queues is multiplied by
 * @bytes_left: of weft_size_left()
 * @conn: connection
 *
 * Return: in inverse proportion to the data left to send, in 1 / WEFT_WEIGHT_ONE.
 */
u32 weft_size_weight(u64 bytes_left, const struct weft_conn_view *conn)
{
	u64 even = 1000ULL * READ_ONCE(weft_even_kb) * WEFT_WEIGHT_ONE;

	if (!even)
		return WEFT_WEIGHT_ONE;
	/* how much the application has to write yet is unknown */
	if (conn->app_is_blocked)
		return WEFT_WEIGHT_MIN;
	return clamp_t(u64, div64_u64(even, bytes_left + 1), WEFT_WEIGHT_MIN, WEFT_WEIGHT_MAX);
}

#ifdef __KERNEL__
#include <linux/moduleparam.h>

module_param(weft_even_kb, uint, 0644);
MODULE_PARM_DESC(weft_even_kb,
		 "weft: data left to send at which a connection gets its even share of queues; with less left it gets up to four times the share, with more down to half; 0: sizes do not count (4000)");
#endif /* __KERNEL__ */
