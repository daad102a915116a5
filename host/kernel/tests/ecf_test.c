// SPDX-License-Identifier: GPL-2.0-only
/* Tests of ecf's decision: f has RTT 10 ms and window 10, s 100 ms and 10. */
#include "../ecf.c"
#include "decision.h"

static int decide(bool *waiting, u32 fast_in_flight, u64 left, u32 rttvar_ms)
{
	struct weft_subflow_view view[] = {
		subflow(0, 100, 10, 0),
		subflow(1, 10, 10, fast_in_flight),
	};
	struct weft_conn_view conn = packets_left(left);
	struct weft_ecf state = { .waiting = *waiting };
	int choice;

	view[0].rttvar_us = rttvar_ms * 1000;
	choice = weft_ecf_choose(&state, view, 2, &conn);
	*waiting = state.waiting;
	return choice;
}

int main(void)
{
	bool waiting = false;

	report(decide(&waiting, 9, 1000, 0) == 1, "the fastest is used while it has room");
	/* n RTT_f = (1 + 1000/10) 10 ms = 1010 ms, not less than 100 ms */
	report(decide(&waiting, 10, 1000, 0) == 0, "with much left the slow one helps");
	/* n RTT_f = 15 ms < 100 ms; (5/10) 100 ms = 50 ms >= 2 x 10 ms */
	report(decide(&waiting, 10, 5, 0) == WEFT_WAIT && waiting,
	       "with little left it waits for the fastest");
	/* n RTT_f = (1 + 100/10) 10 ms = 110 ms: between 100 and 125 ms */
	report(decide(&waiting, 10, 100, 0) == WEFT_WAIT, "once it waits it keeps waiting");
	/* 130 ms >= 125 ms */
	report(decide(&waiting, 10, 120, 0) == 0 && !waiting,
	       "until the cost exceeds beta times the slow RTT");
	report(decide(&waiting, 10, 100, 0) == 0, "after that a smaller cost keeps it on the slow one");
	/* (1/10) 100 ms = 10 ms < 20 ms: s is done before f has room again */
	report(decide(&waiting, 10, 1, 0) == 0, "the slow one gets the data that it completes sooner");
	/* 110 ms < 100 + 20 ms */
	report(decide(&waiting, 10, 100, 20) == WEFT_WAIT,
	       "variation of the RTT widens the margin");
	never_stalls(weft_ecf_choose, sizeof(struct weft_ecf));
	return done_testing();
}
