// SPDX-License-Identifier: GPL-2.0-only
/* Tests of pattern.c in user space; TAP on standard output. */
#include "../pattern.h"
#include "tap.h"
#include "user.h"

/* The sequence as letters, A for subflow 0. */
static const char *letters(const u32 *gap, unsigned int n)
{
	static char text[WEFT_SEQUENCE_MAX + 1];
	u8 sequence[WEFT_SEQUENCE_MAX];
	unsigned int i, length = weft_sequence(gap, n, sequence);

	for (i = 0; i < length; i++)
		text[i] = 'A' + sequence[i];
	text[length] = '\0';
	return text;
}

static void sequence_is(const char *claim, unsigned int n, const u64 *rtt,
			const char *expected)
{
	u32 gap[WEFT_PATHS_MAX];
	const char *got = "";

	if (weft_gaps(rtt, n, gap))
		got = letters(gap, n);
	if (!report(!strcmp(got, expected), claim))
		printf("# expected %s\n#      got %s\n", expected, got);
}

#define SEQUENCE_IS(claim, expected, ...) \
	sequence_is(claim, sizeof((u64[]){ __VA_ARGS__ }) / sizeof(u64), \
		    (u64[]){ __VA_ARGS__ }, expected)

static void golden_cases(void)
{
	SEQUENCE_IS("the paper's figure 8", "ABABCABAACD", 1, 2, 3, 5);
	SEQUENCE_IS("units do not matter", "ABABCABAACD",
		    100000, 200000, 300000, 500000);
	SEQUENCE_IS("order of subflows only renames", "CBCBACBCCAD", 3, 2, 1, 5);
	SEQUENCE_IS("ratio 4:1 gives four to one", "AAAAB", 100, 400);
	SEQUENCE_IS("ratio 1:4 with the slow one first", "BBBBA", 400, 100);
	SEQUENCE_IS("two equal RTTs alternate", "AB", 7, 7);
	SEQUENCE_IS("eight equal RTTs take turns", "ABCDEFGH",
		    5, 5, 5, 5, 5, 5, 5, 5);
	SEQUENCE_IS("almost equal RTTs alternate", "AB", 100, 149);
	SEQUENCE_IS("half rounds up", "AAB", 100, 150);
	SEQUENCE_IS("one subflow takes all", "A", 42);
	SEQUENCE_IS("two fast and one slow", "ABABABABC", 1, 1, 4);
	SEQUENCE_IS("an unknown RTT gives no pattern", "", 100, 0);
}

static void gaps_of_the_figure(void)
{
	const u64 rtt[] = { 1, 2, 3, 5 };
	u32 gap[4];

	report(weft_gaps(rtt, 4, gap) == 11 && gap[0] == 5 && gap[1] == 3 &&
	       gap[2] == 2 && gap[3] == 1, "gaps of figure 8 are 5, 3, 2, 1");
}

static void refusals(void)
{
	const u64 rtt[WEFT_PATHS_MAX + 1] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	const u32 long_gap[] = { WEFT_SEQUENCE_MAX, 1 };
	const u32 wrapping_gap[] = { 2, 0xffffffff };
	const u32 no_gap[] = { 0, 0 };
	u8 sequence[WEFT_SEQUENCE_MAX];
	u32 gap[WEFT_PATHS_MAX + 1];

	report(!weft_gaps(rtt, 0, gap), "no subflow, no gaps");
	report(!weft_gaps(rtt, WEFT_PATHS_MAX + 1, gap),
	       "too many subflows are refused");
	report(!weft_sequence(long_gap, 2, sequence),
	       "gaps that sum up to too much are refused");
	report(!weft_sequence(wrapping_gap, 2, sequence),
	       "gaps that wrap around are refused");
	report(!weft_sequence(no_gap, 2, sequence),
	       "all gaps zero, no sequence");
	report(!strcmp(letters((const u32[]){ 2, 0, 1 }, 3), "AAC"),
	       "a gap of zero leaves the subflow out");
}

static void extreme_ratios_are_flattened(void)
{
	const u64 wide[] = { 1, 1000000000 };
	const u64 widest[] = { 1, ~0ULL, ~0ULL };
	u32 gap[3];
	unsigned int length;

	length = weft_gaps(wide, 2, gap);
	report(length <= WEFT_SEQUENCE_MAX && gap[1] == 1 &&
	       gap[0] > WEFT_SEQUENCE_MAX * 9 / 10,
	       "a billion to one fits and keeps its shape");
	length = weft_gaps(widest, 3, gap);
	report(length && length <= WEFT_SEQUENCE_MAX && gap[1] == 1,
	       "the largest RTT does not overflow");
}

struct properties {
	bool length_bounded, exact_counts, slowest_last, no_early_slow;
};

static void check_case(struct properties *all, unsigned int n, u32 spread)
{
	unsigned int count[WEFT_PATHS_MAX] = { 0 };
	u8 sequence[WEFT_SEQUENCE_MAX];
	unsigned int i, length;
	u64 rtt[WEFT_PATHS_MAX];
	u32 gap[WEFT_PATHS_MAX];
	unsigned int slow = 0;

	for (i = 0; i < n; i++)
		rtt[i] = 1 + draw(spread);
	length = weft_gaps(rtt, n, gap);
	all->length_bounded &= length >= n && length <= WEFT_SEQUENCE_MAX;
	all->exact_counts &= weft_sequence(gap, n, sequence) == length;

	for (i = 0; i < length; i++)
		count[sequence[i]]++;
	for (i = 0; i < n; i++) {
		all->exact_counts &= count[i] == gap[i];
		if (gap[i] <= gap[slow])
			slow = i;
	}
	all->slowest_last &= sequence[length - 1] == slow;
	/* a subflow of gap 1 has its one packet in the last n positions */
	for (i = 0; i + n < length; i++)
		all->no_early_slow &= gap[sequence[i]] > 1;
}

static void random_cases(void)
{
	struct properties all = { true, true, true, true };
	int i;

	for (i = 0; i < 100000; i++)
		check_case(&all, 1 + draw(WEFT_PATHS_MAX), 1U << draw(24));

	report(all.length_bounded, "length is within bounds for random RTTs");
	report(all.exact_counts, "each subflow appears as often as its gap");
	report(all.slowest_last, "the slowest subflow has the last position");
	report(all.no_early_slow, "subflows of gap 1 stand at the end");
}

int main(void)
{
	golden_cases();
	gaps_of_the_figure();
	refusals();
	extreme_ratios_are_flattened();
	random_cases();
	return done_testing();
}
