/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the stages' probes and descriptions are made of.
 */
#ifndef RTRACE_PROBE_H
#define RTRACE_PROBE_H

#include <linux/bitmap.h>
#include <linux/build_bug.h>
#include <linux/stdarg.h>
#include <linux/string.h>
#include <linux/trace_events.h>
#include <linux/unaligned.h>

#include "rtrace.h"

#define RTRACE_CONCATENATE_(a, b)	a##b
#define RTRACE_CONCATENATE(a, b)	RTRACE_CONCATENATE_(a, b)

/* What GCC calls a type's kind; only pointers and integers are of interest. */
enum { RTRACE_CLASS_POINTER = 5, RTRACE_CLASS_RECORD = 12 };
#define RTRACE_CLASS(type)	__builtin_classify_type(*(type *)0)
#define RTRACE_IS_POINTER(type)	(RTRACE_CLASS(type) == RTRACE_CLASS_POINTER)

/* Whether it is recorded as a number: as bytes if not. */
#define RTRACE_IS_NUMBER(type) \
	(RTRACE_CLASS(type) < RTRACE_CLASS_RECORD && \
	 (sizeof(type) == 1 || sizeof(type) == 2 || sizeof(type) == 4 || sizeof(type) == 8))
#define RTRACE_SIZE(type)	(RTRACE_IS_NUMBER(type) ? sizeof(type) : 1)
#define RTRACE_COUNT(type)	(RTRACE_IS_NUMBER(type) ? 0 : sizeof(type))
#define RTRACE_IS_SIGNED(type) \
	__builtin_choose_expr(RTRACE_CLASS(type) < RTRACE_CLASS_POINTER, \
		(typeof(__builtin_choose_expr(RTRACE_CLASS(type) < RTRACE_CLASS_POINTER, \
					      *(type *)0, 0)))-1 < \
		(typeof(__builtin_choose_expr(RTRACE_CLASS(type) < RTRACE_CLASS_POINTER, \
					      *(type *)0, 0)))1, 0)
#define RTRACE_TYPE(type) \
	(RTRACE_IS_POINTER(type) ? RTRACE_ADDRESS : \
	 RTRACE_IS_NUMBER(type) && RTRACE_IS_SIGNED(type) ? RTRACE_SIGNED : RTRACE_UNSIGNED)
#define RTRACE_TYPE_OF_ARRAY(type) \
	(__same_type(type, char) ? RTRACE_TEXT : RTRACE_TYPE(type))

/* A part of variable size: from the beginning of the record, in bytes. */
struct rtrace_part {
	u32 offset;
	u32 size;
};

/* As ftrace shows it. */
static __always_inline const char *rtrace_source(const char *text)
{
	return text ?: EVENT_NULL_STR;
}

static __always_inline size_t rtrace_place_string(struct rtrace_part *part, size_t at, size_t size)
{
	part->offset = at;
	part->size = size;
	return at + size;
}

/* Behind the number of its elements. */
static __always_inline size_t rtrace_place_array(struct rtrace_part *part, size_t at,
						 size_t count, size_t size)
{
	return rtrace_place_string(part, at + sizeof(u32), count * size);
}

static __always_inline void rtrace_put_count(void *entry, const struct rtrace_part *part,
					     size_t size)
{
	put_unaligned((u32)(part->size / size), (u32 *)(entry + part->offset - sizeof(u32)));
}

/*
 * Copies a text of so many bytes with its NUL. It may have changed since it was measured; but what a
 * reader finds must end where it was said to end.
 */
static __always_inline void rtrace_put_string(char *to, const char *from, size_t size)
{
	size_t i;

	for (i = 0; i + 1 < size && from[i]; i++)
		to[i] = from[i];
	for (; i + 1 < size; i++)
		to[i] = '#';
	to[i] = '\0';
}

/* Out of line: few events have one. */
void rtrace_put_vstring(char *to, size_t size, const char *format, va_list *args);

#endif
