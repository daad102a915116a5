// SPDX-License-Identifier: GPL-2.0-only
/* Tests of rr_packet's decision. */
#include "../rr_packet.c"
#include "decision.h"

/* Twelve packets, as letters by slot; @full is the slot without room, or -1. */
static const char *turns(int full)
{
	static char letters[13];
	struct weft_rr_packet state = { 0 };
	struct weft_subflow_view view[] = {
		subflow(0, 10, 10, 0), subflow(1, 30, 10, 0), subflow(2, 20, 10, 0),
	};
	struct weft_conn_view conn = packets_left(100);
	int i;

	if (full >= 0)
		view[full].space_bytes = 0;
	for (i = 0; i < 12; i++) {
		int choice = weft_rr_packet_choose(&state, view, 3, &conn);

		conn.last_slot = view[choice].slot;
		letters[i] = 'A' + view[choice].slot;
	}
	return letters;
}

int main(void)
{
	report(!strcmp(turns(-1), "ABCABCABCABC"), "packets take turns whatever the RTTs");
	report(!strcmp(turns(1), "ACACACACACAC"), "a full one is passed over");
	never_stalls(weft_rr_packet_choose, sizeof(struct weft_rr_packet));
	return done_testing();
}
