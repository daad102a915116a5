// SPDX-License-Identifier: GPL-2.0-only
/* Tests of daps's plan. */
#include "../daps.c"
#include "decision.h"

/* The first packets of a connection as letters by slot. */
static const char *packets(unsigned int n, const struct weft_subflow_view *view, int count)
{
	static char letters[64];
	struct weft_daps state = { 0 };
	struct weft_conn_view conn = packets_left(1000);
	int i;

	for (i = 0; i < count; i++) {
		int choice = weft_daps_choose(&state, view, n, &conn);

		conn.last_slot = view[choice].slot;
		letters[i] = 'A' + view[choice].slot;
	}
	letters[i] = '\0';
	return letters;
}

int main(void)
{
	struct weft_subflow_view one_three[] = { subflow(0, 10, 2, 0), subflow(1, 30, 2, 0) };
	struct weft_subflow_view two_three[] = { subflow(0, 20, 1, 0), subflow(1, 30, 1, 0) };
	struct weft_subflow_view windows[] = { subflow(0, 10, 3, 0), subflow(1, 20, 1, 0) };
	struct weft_subflow_view equal[] = { subflow(0, 10, 2, 0), subflow(1, 10, 2, 0) };
	struct weft_daps state = { 0 };
	struct weft_conn_view conn = packets_left(1000);
	struct weft_subflow_view many[WEFT_PATHS_MAX];
	unsigned int i;

	report(!strcmp(packets(2, one_three, 16), "AAAAAABBAAAAAABB"),
	       "delays 1:3, windows of 2: three turns of A arrive before B's first");
	/* arrivals A 2 4 6, B 3 6 */
	report(!strcmp(packets(2, two_three, 10), "ABAABABAAB"),
	       "delays 2:3: the run spans the least common multiple");
	report(!strcmp(packets(2, windows, 14), "AAAAAABAAAAAAB"),
	       "a turn is as long as the congestion window");
	report(!strcmp(packets(2, equal, 8), "AABBAABB"), "equal delays take turns by windows");

	weft_daps_choose(&state, one_three, 2, &conn);
	one_three[1].srtt_us = 10000;
	report(state.turns == 4 && state.turn == 0, "a run is planned");
	conn.last_slot = 0;
	weft_daps_choose(&state, one_three, 2, &conn);
	report(state.turns == 4, "a change of RTT does not change the run");

	for (i = 0; i < WEFT_PATHS_MAX; i++)
		many[i] = subflow(i, 7 + 13 * i, 10, 0);
	memset(&state, 0, sizeof(state));
	conn.last_slot = -1;
	weft_daps_choose(&state, many, WEFT_PATHS_MAX, &conn);
	report(state.turns > WEFT_PATHS_MAX && state.turns <= DAPS_TURNS_MAX,
	       "eight delays without a small common multiple make a run that ends");
	never_stalls(weft_daps_choose, sizeof(struct weft_daps));
	return done_testing();
}
