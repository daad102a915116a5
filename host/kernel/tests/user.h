/* SPDX-License-Identifier: GPL-2.0-only */
/* The few kernel helpers that decisions use, for the tests in user space. */
#ifndef _WEFT_TESTS_USER_H
#define _WEFT_TESTS_USER_H

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define BITS_PER_LONG	(sizeof(long) * CHAR_BIT)
#define DECLARE_BITMAP(name, bits) \
	unsigned long name[((bits) + BITS_PER_LONG - 1) / BITS_PER_LONG]

#define min_t(type, a, b)	((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define max_t(type, a, b)	((type)(a) > (type)(b) ? (type)(a) : (type)(b))
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define clamp(value, low, high)	min(max(value, low), high)
#define clamp_t(type, value, low, high)	\
	clamp((type)(value), (type)(low), (type)(high))
#define READ_ONCE(value)	(value)
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline s64 div_s64(s64 dividend, s32 divisor)
{
	return dividend / divisor;
}

static inline void bitmap_zero(unsigned long *map, unsigned int bits)
{
	memset(map, 0, (bits + CHAR_BIT - 1) / CHAR_BIT);
}

static inline void __set_bit(unsigned int bit, unsigned long *map)
{
	map[bit / BITS_PER_LONG] |= 1UL << (bit % BITS_PER_LONG);
}

static inline bool test_bit(unsigned int bit, const unsigned long *map)
{
	return map[bit / BITS_PER_LONG] >> (bit % BITS_PER_LONG) & 1;
}

#endif /* _WEFT_TESTS_USER_H */
