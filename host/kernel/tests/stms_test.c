// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of stms_c and stms_a: the fast subflow has RTT 20 ms and window 20, the slow
 * one 100 ms. B_f = 1 packet per ms, OWD_s - OWD_f = 40 ms: the gap is 40 packets.
 */
#include "../stms.c"
#include "../stms_c.c"
#include "../stms_a.c"
#include "decision.h"

/* Places packets as stms_c says; the fast window is full. Letters by slot. */
static const char *place(u64 left, int count)
{
	static char letters[128];
	struct weft_subflow_view view[] = { subflow(0, 20, 20, 20), subflow(1, 100, 3, 0) };
	struct weft_conn_view conn = packets_left(left);
	struct weft_stms state = { 0 };
	int i;

	for (i = 0; i < count; i++) {
		int choice = weft_stms_c_choose(&state, view, 2, &conn);

		if (choice == WEFT_WAIT)
			break;
		conn.last_slot = view[choice].slot;
		conn.unsent_bytes -= PAYLOAD;
		view[choice].queued_packets += !choice;
		view[choice].in_flight_packets += choice;
		view[choice].space_bytes -= choice ? PAYLOAD : 0;
		letters[i] = 'A' + choice;
	}
	letters[i] = '\0';
	return letters;
}

static void sliding(void)
{
	struct weft_subflow_view fast = subflow(0, 20, 20, 0), slow = subflow(1, 100, 20, 0);
	const char *placed;

	report(weft_stms_true_gap(&fast, &slow) == 40, "the gap is equation 2");
	report(weft_stms_true_gap(&slow, &fast) == 0, "a faster subflow has no gap");

	placed = place(1000, 44);
	report(strspn(placed, "A") == 40 && !strcmp(placed + 40, "BBB"),
	       "40 packets are left for the fast one, then the slow one's window");
	report(!strcmp(place(40, 44), ""),
	       "without a packet beyond the gap the slow one sends nothing");
	report(strspn(place(41, 44), "A") == 40, "with just that packet it does");
}

/* stms_a with packets 0..9 on the fast subflow and 10 on the slow one. */
static struct weft_stms_a *connection(void)
{
	static struct weft_stms_a a;

	memset(&a, 0, sizeof(a));
	a.view[0] = subflow(0, 20, 20, 20);
	a.view[1] = subflow(1, 100, 3, 0);
	a.n = 2;
	a.una = PAYLOAD;
	a.gap[1] = 40 * GAP_SCALE;
	weft_seq_map_add(&a.seq_map, PAYLOAD, 11 * PAYLOAD, 0);
	weft_seq_map_add(&a.seq_map, 11 * PAYLOAD, 12 * PAYLOAD, 1);
	weft_seq_map_add(&a.seq_map, 12 * PAYLOAD, 200 * PAYLOAD, 0);
	return &a;
}

/* Data ACKs of one packet, which say nothing, until the average has settled. */
static void settle(struct weft_stms_a *a)
{
	int i;

	for (i = 0; i < 100; i++)
		weft_stms_a_acked(a, a->una + PAYLOAD);
}

static void adjusting(void)
{
	struct weft_stms_a *a = connection();
	int i;

	weft_stms_a_acked(a, 11 * PAYLOAD);
	settle(a);
	report(a->gap[1] / GAP_SCALE == 30 || a->gap[1] / GAP_SCALE == 29,
	       "a leap of 10 that a fast packet held up shrinks the gap by 10");

	a = connection();
	a->una = 11 * PAYLOAD;
	weft_stms_a_acked(a, 21 * PAYLOAD);
	report(a->gap[1] > 40 * GAP_SCALE && a->gap[1] < 42 * GAP_SCALE,
	       "one that a slow packet held up grows it, a part of it at once");
	settle(a);
	report(a->gap[1] / GAP_SCALE == 50 || a->gap[1] / GAP_SCALE == 49,
	       "and by 10 in the end");

	/* B_f RTT_s = 20 packets in 20 ms, for 100 ms */
	a = connection();
	a->una = 11 * PAYLOAD;
	for (i = 0; i < 50; i++) {
		weft_seq_map_add(&a->seq_map, a->una, a->una + 50 * PAYLOAD, 1);
		weft_stms_a_acked(a, a->una + 50 * PAYLOAD);
	}
	report(a->gap[1] == 100 * GAP_SCALE, "the gap is at most what can be under way");

	a = connection();
	weft_stms_a_acked(a, 3 * PAYLOAD);
	report(a->gap[1] == 40 * GAP_SCALE, "two packets are a delayed ACK and change nothing");
	weft_stms_a_acked(a, 2 * PAYLOAD);
	report(a->una == 3 * PAYLOAD, "an old Data ACK is ignored");

	a = connection();
	report(adjusted_gap(a, &a->view[0], &a->view[1]) == 40, "the gap is the adjusted one");
	a->gap[1] = 0;
	adjusted_gap(a, &a->view[0], &a->view[1]);
	report(a->gap[1] == 40 * GAP_SCALE, "the first gap is the calculated one");
}

static void mapping(void)
{
	static struct weft_seq_map seq_map;
	u64 seq = ~0ULL - 1000;
	int i;

	report(weft_seq_map_find(&seq_map, 5) < 0, "an empty map has no slot for any byte");
	for (i = 0; i < 3 * WEFT_SEQ_MAP_RANGES; i++, seq += 10)
		weft_seq_map_add(&seq_map, seq, seq + 10, i % 2);
	report(weft_seq_map_find(&seq_map, ~0ULL - 1000) < 0, "a full map drops the oldest range");
	report(weft_seq_map_find(&seq_map, seq - 1) == 1 && weft_seq_map_find(&seq_map, seq) < 0,
	       "sequence numbers wrap");
	weft_seq_map_add(&seq_map, seq - 500, seq, 1);
	report(weft_seq_map_find(&seq_map, seq - 1) == 1, "a reinjection clears the map");

	for (i = 0; i < 4000; i++, seq += PAYLOAD)
		weft_seq_map_add(&seq_map, seq, seq + PAYLOAD, i % 2);
	report(weft_seq_map_find(&seq_map, seq - 3998 * PAYLOAD) == 0 &&
	       weft_seq_map_find(&seq_map, seq - 3997 * PAYLOAD) == 1,
	       "of 4000 packets that went to two slots in turn, it has all");

	for (i = 0; i < 600; i++, seq += 1000000)
		weft_seq_map_add(&seq_map, seq, seq + 1000000, 5);
	report(weft_seq_map_find(&seq_map, seq - 1) == 5, "data of one slot may go on for long");
}

int main(void)
{
	sliding();
	adjusting();
	mapping();
	never_stalls(weft_stms_c_choose, sizeof(struct weft_stms));
	never_stalls(weft_stms_a_choose, sizeof(struct weft_stms_a));
	return done_testing();
}
