/* SPDX-License-Identifier: GPL-2.0-only */
/* Claims, as TAP on standard output; and random numbers, the same everywhere. */
#ifndef _WEFT_TESTS_TAP_H
#define _WEFT_TESTS_TAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int tests, failures;

static inline bool report(bool ok, const char *claim)
{
	printf("%sok %d - %s\n", ok ? "" : "not ", ++tests, claim);
	if (!ok)
		failures++;
	return ok;
}

static inline int done_testing(void)
{
	printf("1..%d\n", tests);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline uint32_t draw(uint32_t below)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(state >> 33) % below;
}

#endif /* _WEFT_TESTS_TAP_H */
