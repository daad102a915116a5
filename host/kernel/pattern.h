/* SPDX-License-Identifier: GPL-2.0-only */
/* The allocation pattern: from RTTs to gaps, from gaps to a sequence. */
#ifndef _WEFT_PATTERN_H
#define _WEFT_PATTERN_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include "tests/user.h"
#endif

#include "include/uapi/weft.h"

unsigned int weft_gaps(const u64 *rtt, unsigned int n, u32 *gap);
unsigned int weft_sequence(const u32 *gap, unsigned int n, u8 *sequence);

#endif /* _WEFT_PATTERN_H */
