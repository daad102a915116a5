/* SPDX-License-Identifier: GPL-2.0-only */
/* The RTTs of a subflow of the scheduler weft; see weft_rtt.c (no kernel in it). */
#ifndef _WEFT_RTT_H
#define _WEFT_RTT_H

#include "view.h"
#include "weft_window.h"

u32 weft_rtt_lowest_us(const struct weft_window *window,
		       const struct weft_subflow_view *view);
u32 weft_rtt_base_us(const struct weft_window *window,
		     const struct weft_subflow_view *view);
u32 weft_rtt_last_us(const struct weft_window *window,
		     const struct weft_subflow_view *view);
u32 weft_rtt_ack_queueing_us(const struct weft_window *window,
			     const struct weft_subflow_view *view);
u32 weft_rtt_us(const struct weft_window *window,
		const struct weft_subflow_view *view);
u32 weft_rtt_guess_us(const struct weft_window *window,
		      const struct weft_subflow_view *view);
void weft_rtt_take_lowest(struct weft_window *window,
			  const struct weft_subflow_view *view, u64 now_us);
void weft_rtt_take_round(struct weft_window *window, u32 rtt_us);
void weft_rtt_forget(struct weft_window *window);

#endif /* _WEFT_RTT_H */
