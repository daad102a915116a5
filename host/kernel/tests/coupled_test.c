// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of the formulas of coupled congestion control in user space; TAP on
 * standard output. The expected values are worked out by hand from the papers'
 * formulas, as the comments show.
 */
#include "../congestion/lia.c"
#include "../congestion/olia.c"
#include "../congestion/balia.c"
#include "../congestion/wvegas.c"
#include "tap.h"

/* Whether growth is @numerator / @denominator of a packet within 0.1 %. */
static void growth_is(const char *claim, s64 got, s64 numerator, s64 denominator)
{
	s64 expected = COUPLED_ONE * numerator / denominator;
	s64 tolerance = labs(expected) / 1000 + 1;

	if (!report(labs(got - expected) <= tolerance, claim))
		printf("# expected %lld\n#      got %lld\n", (long long)expected,
		       (long long)got);
}

static void number_is(const char *claim, u64 got, u64 expected)
{
	if (!report(got == expected, claim))
		printf("# expected %llu\n#      got %llu\n",
		       (unsigned long long)expected, (unsigned long long)got);
}

static struct coupled_path path_of(u32 cwnd_packets, u32 rtt_us)
{
	return (struct coupled_path){
		.cwnd_packets = cwnd_packets, .rtt_us = rtt_us,
	};
}

static void lia_cases(void)
{
	struct coupled_path equal[] = { path_of(10, 100), path_of(10, 100) };
	struct coupled_path rtts[] = { path_of(10, 100), path_of(20, 200) };
	struct coupled_path capped[] = { path_of(100, 1000), path_of(10, 100) };
	struct coupled_path four[] = {
		path_of(25, 50), path_of(25, 50), path_of(25, 50), path_of(25, 50),
	};

	/* alpha = 20 (10 / rtt^2) / (20 / rtt)^2 = 1/2; 1/2 / 20 */
	growth_is("lia: two equal paths grow by 1/(4w) each",
		  lia_growth(equal, 2, 0), 1, 40);
	/* alpha = 100 25 / 100^2 = 1/4; 1/4 / 100 */
	growth_is("lia: n equal paths grow by 1/(n^2 w) each",
		  lia_growth(four, 4, 3), 1, 400);
	/*
	 * max(10 / 100^2, 20 / 200^2) = 10^-3, sum = 0.1 + 0.1:
	 * alpha = 30 10^-3 / 0.04 = 3/4; 3/4 / 30
	 */
	growth_is("lia: the path of the best w/rtt^2 decides with different RTTs",
		  lia_growth(rtts, 2, 0), 1, 40);
	growth_is("lia: all paths grow alike, far from the bound",
		  lia_growth(rtts, 2, 1), 1, 40);
	/*
	 * max(100 / 1000^2, 10 / 100^2) = 10^-3, sum = 0.1 + 0.1:
	 * 10^-3 / 0.04 = 1/40 is more than 1/100
	 */
	growth_is("lia: no path grows faster than TCP would",
		  lia_growth(capped, 2, 0), 1, 100);
	growth_is("lia: the other path is not held back by that",
		  lia_growth(capped, 2, 1), 1, 40);
}

static void olia_cases(void)
{
	struct coupled_path path[] = { path_of(10, 100), path_of(10, 100) };
	struct coupled_path three[] = {
		path_of(20, 100), path_of(20, 100), path_of(10, 100),
	};

	/* both have the largest window: B\M is empty, alpha = 0 */
	path[0].acked_packets = 500;
	path[1].acked_packets = 100;
	growth_is("olia: without alpha two equal paths grow by 1/(4w) each",
		  olia_growth(path, 2, 0), 1, 40);

	/*
	 * path 1 is best (1000 > 500) and has the smaller window: B\M = {1}, M = {0}
	 * path 0: (20/30)^2 / 20 - 1/(2 1) / 20 = (4/9 - 1/2) / 20 = -1/360
	 * path 1: (10/30)^2 / 10 + 1/(2 1) / 10 = (1/9 + 1/2) / 10 = 11/180
	 */
	path[0].cwnd_packets = 20;
	path[1].acked_packets = 1000;
	growth_is("olia: the largest window shrinks for a better path",
		  olia_growth(path, 2, 0), -1, 360);
	growth_is("olia: the better path of the smaller window gains",
		  olia_growth(path, 2, 1), 11, 180);

	/* path 0 is best and has the largest window: alpha = 0 */
	path[0].acked_packets = 2000;
	growth_is("olia: the best path of the largest window has alpha 0",
		  olia_growth(path, 2, 0), 4, 9 * 20);
	growth_is("olia: and so has the other one",
		  olia_growth(path, 2, 1), 1, 9 * 10);

	/* RTT counts twice: 1000 / 100^2 = 0.1 < 400 / 50^2 = 0.16, though 10 > 8 */
	path[0] = (struct coupled_path){ 20, 100, 1000, 0 };
	path[1] = (struct coupled_path){ 10, 50, 400, 0 };
	/* v = 10, 10: (1/2)^2 / 10 + 1/2 / 10 = 3/40 */
	growth_is("olia: a path is better by l/rtt^2",
		  olia_growth(path, 2, 1), 3, 40);

	/*
	 * M = {0, 1}, B\M = {2}, n = 3, V = 50
	 * path 0: ((20/50)^2 - 1/6) / 20 = (4/25 - 1/6) / 20 = -1/3000
	 * path 2: ((10/50)^2 + 1/3) / 10 = (1/25 + 1/3) / 10 = 28/750
	 */
	three[2].acked_packets = 1000;
	growth_is("olia: what is taken is shared by the largest windows",
		  olia_growth(three, 3, 0), -1, 3000);
	growth_is("olia: and given to the collected paths",
		  olia_growth(three, 3, 2), 28, 750);
}

static void balia_cases(void)
{
	struct coupled_path equal[] = { path_of(10, 100), path_of(10, 100) };
	struct coupled_path uneven[] = { path_of(30, 100), path_of(10, 100) };
	struct coupled_path close[] = { path_of(12, 100), path_of(10, 100) };
	struct coupled_path one[] = { path_of(11, 100) };

	/* alpha = 1: x / (rtt 4 x^2) = 1/(4w) */
	growth_is("balia: two equal paths grow by 1/(4w) each",
		  balia_growth(equal, 2, 0), 1, 40);
	/* alpha = 3: 10 / 40^2 (1 + 3)/2 (4 + 3)/5 = 1/160 14/5 = 7/400 */
	growth_is("balia: the smaller path grows by (1+a)/2 (4+a)/5 more",
		  balia_growth(uneven, 2, 1), 7, 400);
	growth_is("balia: the larger path has alpha 1",
		  balia_growth(uneven, 2, 0), 30, 1600);
	growth_is("balia: one path grows as Reno",
		  balia_growth(one, 1, 0), 1, 11);

	number_is("balia: one path is halved as Reno", balia_ssthresh(one, 1, 0), 5);
	/* 30 - 30/2 */
	number_is("balia: the larger path is halved",
		  balia_ssthresh(uneven, 2, 0), 15);
	/* 10 - 10/2 1.5 = 2.5, what goes is rounded up */
	number_is("balia: alpha counts as at most 1.5 at a loss",
		  balia_ssthresh(uneven, 2, 1), 2);
	/* 10 - 10/2 1.2 */
	number_is("balia: a loss takes alpha/2 of the window",
		  balia_ssthresh(close, 2, 1), 4);
	uneven[1].cwnd_packets = 1;
	number_is("balia: one packet stays", balia_ssthresh(uneven, 2, 1), 1);
}

static void wvegas_cases(void)
{
	/* 20 packets in 1.25 ms, 1 ms of it without a queue: 20 / 5 wait */
	struct wvegas_round round = { 20, 1250, 1000 };
	struct coupled_path path[] = { path_of(30, 100), path_of(10, 100) };
	const u64 packet = 1ULL << WVEGAS_BITS;
	u32 queue_delay = 0;

	number_is("wvegas: the backlog is the share of the RTT that is queueing",
		  wvegas_backlog(&round), 4 * packet);

	number_is("wvegas: weights follow the rates",
		  wvegas_weight(path, 2, 0), packet * 3 / 4);
	number_is("wvegas: the backlog is shared by weight",
		  wvegas_target(wvegas_weight(path, 2, 0), 10), packet * 15 / 2);
	number_is("wvegas: a share is at least two packets",
		  wvegas_target(0, 10), 2 * packet);
	path[1].rate = 3 * wvegas_rate(30, 100);
	number_is("wvegas: a rate in equilibrium counts before the present one",
		  wvegas_weight(path, 2, 0), packet / 4);

	number_is("wvegas: below its share the window grows by one",
		  wvegas_window(&round, 5 * packet, &queue_delay), 21);
	number_is("wvegas: the lowest queueing delay is remembered", queue_delay, 250);
	number_is("wvegas: above its share the window shrinks by one",
		  wvegas_window(&round, 3 * packet, &queue_delay), 19);
	number_is("wvegas: at its share the window stays",
		  wvegas_window(&round, 4 * packet, &queue_delay), 20);
	/* 500 us is twice 250 us: 20 x 1000 / (2 x 1500) = 6 */
	round.rtt_us = 1500;
	number_is("wvegas: twice the lowest queueing delay drains the queue",
		  wvegas_window(&round, 10 * packet, &queue_delay), 6);
	number_is("wvegas: after a drain the delay is measured again", queue_delay, 0);
	/* 20 x 40 / 1040 < 1 */
	round.rtt_us = 1040;
	queue_delay = 5;
	number_is("wvegas: less than a packet in the queue is not drained",
		  wvegas_window(&round, 10 * packet, &queue_delay), 21);
	round.cwnd_packets = 2;
	round.rtt_us = 8000;
	number_is("wvegas: two packets stay",
		  wvegas_window(&round, packet, &queue_delay), 2);
}

/* Mostly small numbers, now and then the largest that are allowed. */
static u32 draw_up_to(u32 most)
{
	u32 bits = draw(32);

	if (draw(16) == 0)
		return most;
	return 1 + draw(min_t(u32, most, 1U << bits));
}

struct properties {
	bool lia_bounded, olia_bounded, olia_balanced, balia_bounded;
	bool balia_decreases, weights_sum, single_is_reno;
};

static void check_single(struct properties *all, const struct coupled_path *path)
{
	s64 reno = COUPLED_ONE / path->cwnd_packets;
	s64 slack = reno / 1000 + 1;

	all->single_is_reno &= labs(lia_growth(path, 1, 0) - reno) <= slack &&
			       labs(olia_growth(path, 1, 0) - reno) <= slack &&
			       labs(balia_growth(path, 1, 0) - reno) <= slack;
}

static void check_case(struct properties *all, unsigned int paths)
{
	struct coupled_path path[COUPLED_PATHS_MAX];
	s64 alpha_sum = 0;
	u64 weights = 0;
	unsigned int i;

	for (i = 0; i < paths; i++) {
		path[i] = path_of(draw_up_to(COUPLED_CWND_MAX),
				  draw_up_to(COUPLED_RTT_MAX_US));
		path[i].acked_packets = draw_up_to(COUPLED_ACKED_MAX) - 1;
		if (draw(2))
			path[i].rate = wvegas_rate(path[i].cwnd_packets,
						   path[i].rtt_us);
	}
	check_single(all, path);
	for (i = 0; i < paths; i++) {
		u32 cwnd = path[i].cwnd_packets;
		s64 reno = COUPLED_ONE / cwnd;
		s64 lia = lia_growth(path, paths, i);
		s64 olia = olia_growth(path, paths, i);
		s64 balia = balia_growth(path, paths, i);
		u32 ssthresh = balia_ssthresh(path, paths, i);
		u32 rtt_min = coupled_rtt_min_us(path, paths);
		u64 total = coupled_total(path, paths, rtt_min);
		u64 share = (coupled_share(&path[i], rtt_min) << 30) / total;

		all->lia_bounded &= lia >= 0 && lia <= reno;
		all->olia_bounded &= labs(olia) <= reno * 3 / 2 + 1;
		/* w_i times the second term of growth is alpha_i */
		alpha_sum += olia * cwnd - (s64)(share * share >> 28);
		all->balia_bounded &= balia >= 0 && balia <= reno + 1;
		all->balia_decreases &= ssthresh <= max_t(u32, cwnd / 2, 1) &&
					ssthresh >= max_t(u32, cwnd / 4, 1);
		weights += wvegas_weight(path, paths, i);
	}
	/* each growth is rounded by less than w_i units */
	all->olia_balanced &= labs(alpha_sum) <=
			      (s64)paths * (COUPLED_CWND_MAX + 1LL);
	all->weights_sum &= weights <= 1 << WVEGAS_BITS &&
			    weights + paths >= 1 << WVEGAS_BITS;
}

static void random_cases(void)
{
	struct properties all = { true, true, true, true, true, true, true };
	int i;

	for (i = 0; i < 100000; i++)
		check_case(&all, 1 + draw(COUPLED_PATHS_MAX));

	report(all.single_is_reno, "one path grows as Reno under lia, olia, balia");
	report(all.lia_bounded, "lia grows by 0 to 1/w for random paths");
	report(all.olia_bounded, "olia changes by at most 1.5/w for random paths");
	report(all.olia_balanced, "olia's alphas sum to zero");
	report(all.balia_bounded, "balia grows by 0 to 1/w for random paths");
	report(all.balia_decreases, "balia leaves a quarter to a half at a loss");
	report(all.weights_sum, "wvegas' weights sum to one");
}

static void those_that_do_not_count(void)
{
	struct coupled_path path[] = {
		path_of(0, 0), path_of(10, 100), path_of(7, 0), path_of(10, 100),
	};

	growth_is("an empty slot and an unknown RTT count for nothing in lia",
		  lia_growth(path, 4, 1), 1, 40);
	growth_is("nor in olia", olia_growth(path, 4, 3), 1, 40);
	growth_is("nor in balia", balia_growth(path, 4, 3), 1, 40);
	number_is("nor in wvegas", wvegas_weight(path, 4, 1), 1 << (WVEGAS_BITS - 1));
	number_is("two of the four take part", coupled_count(path, 4), 2);
}

int main(void)
{
	lia_cases();
	olia_cases();
	balia_cases();
	wvegas_cases();
	those_that_do_not_count();
	random_cases();
	return done_testing();
}
