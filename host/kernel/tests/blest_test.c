// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of blest's decision: F has RTT 20 ms and window 10, S 100 ms. rtts = 5, so
 * F sends X = (10 + (5 - 1)/2) 5 = 60 packets during a round trip of S.
 */
#include "../blest.c"
#include "decision.h"

static int decide(struct weft_blest *blest, u32 fast_in_flight, u32 window,
		  u32 slow_in_flight, u64 now_ms)
{
	const struct weft_subflow_view view[] = {
		subflow(0, 20, 10, fast_in_flight),
		subflow(1, 100, 50, slow_in_flight),
	};
	struct weft_conn_view conn = packets_left(1000);

	conn.send_window_bytes = window * PAYLOAD;
	conn.now_us = now_ms * 1000;
	return weft_blest_choose(blest, view, 2, &conn);
}

int main(void)
{
	struct weft_subflow_view f = subflow(0, 20, 10, 10), s = subflow(1, 100, 50, 0);
	struct weft_blest blest = { 0 };

	report(sent_meanwhile(&f, &s) == 60 * PAYLOAD, "X is the paper's formula");
	s.srtt_us = f.srtt_us;
	report(sent_meanwhile(&f, &s) == 10 * PAYLOAD, "with equal RTTs X is the window of F");
	f.srtt_us = 1;
	s.srtt_us = ~0U;
	report(sent_meanwhile(&f, &s) > 0, "an extreme ratio of RTTs does not overflow");

	report(decide(&blest, 9, 10, 0, 1) == 0, "the fastest is used while it has room");
	report(decide(&blest, 10, 61, 0, 1) == 1, "S is used when X and a packet fit the window");
	report(decide(&blest, 10, 60, 0, 1) == WEFT_WAIT, "S is skipped when they do not");
	report(decide(&blest, 10, 65, 4, 1) == 1 && decide(&blest, 10, 65, 5, 1) == WEFT_WAIT,
	       "the packets that S has in flight take a part of the window");

	/* lambda 1.04: X is 62.4 packets */
	blest.blocked = true;
	report(decide(&blest, 10, 63, 0, 30) == WEFT_WAIT && blest.lambda == 1040,
	       "after blocking lambda grows");
	report(decide(&blest, 10, 63, 0, 40) == WEFT_WAIT && blest.lambda == 1040,
	       "lambda changes once per round trip of F");
	decide(&blest, 10, 63, 0, 60);
	report(blest.lambda == 1030, "without blocking lambda shrinks");
	for (u64 now_ms = 100; now_ms < 1000; now_ms += 20)
		decide(&blest, 10, 63, 0, now_ms);
	report(blest.lambda == 1000, "lambda is never less than one");
	never_stalls(weft_blest_choose, sizeof(struct weft_blest));
	return done_testing();
}
