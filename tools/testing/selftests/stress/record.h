/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The records of the stress tests: every byte follows from the context that fired, and from the
 * record's number. Shared by the module that fires and the program that checks.
 */
#ifndef STRESS_RECORD_H
#define STRESS_RECORD_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
#endif

/* The context that fires. Each has its own numbers on each CPU, which grow by one. */
enum stress_context {
	STRESS_THREAD,
	STRESS_SOFTIRQ,
	STRESS_IRQ,
	STRESS_NMI,
	STRESS_DEBUG,	/* from a data breakpoint, between reserve and commit of a thread's */
	STRESS_CONTEXTS
};

#define STRESS_MARK 0x5a
#define STRESS_TEXT_MAX 255
/* Fields of the second event, of 255 bytes each: more than a packet of one page can have. */
#define STRESS_HUGE_FIELDS 16
#define STRESS_HUGE (STRESS_HUGE_FIELDS * 255)

/* The beginning of stress:stress_record, followed by a string; and of stress:stress_huge. */
struct stress_record {
	u64 seq;
	u32 cpu;
	u8 context;
	u64 check;
	/* Always STRESS_MARK: only the tracer touches it while a record is made. */
	u8 mark;
} __attribute__((packed));

static inline u64 stress_mix(u64 x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* Computes the field check, from which the rest of the record follows. */
static inline u64 stress_check(u32 cpu, u8 context, u64 seq)
{
	return stress_mix(stress_mix(seq) ^ ((u64)cpu << 8 | context));
}

static inline int stress_is_huge(u64 check)
{
	return check >> 57 == 0;
}

static inline u32 stress_text_len(u64 check)
{
	return check & 7 ? check % 31 : check % (STRESS_TEXT_MAX + 1);
}

static inline u8 stress_byte(u64 check, u32 at)
{
	return 33 + ((u8)(check >> 8 * (at % 8)) ^ (at & 0x7f)) % 94;
}

#endif
