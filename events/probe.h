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
#define RTRACE_COUNT(type)	(RTRACE_IS_NUMBER(type) ? 0 : RTRACE_LENGTH(sizeof(type)))
#define RTRACE_LENGTH(count)	((count) + BUILD_BUG_ON_ZERO((count) >= RTRACE_VARIES))
#define RTRACE_IS_SIGNED(type) \
	_Generic(*(type *)0, signed char: 1, short: 1, int: 1, long: 1, long long: 1, default: 0)
#define RTRACE_TYPE(type) \
	(RTRACE_IS_POINTER(type) ? RTRACE_ADDRESS : \
	 RTRACE_IS_NUMBER(type) && RTRACE_IS_SIGNED(type) ? RTRACE_SIGNED : RTRACE_UNSIGNED)
#define RTRACE_TYPE_OF_ARRAY(type) \
	(__same_type(type, char) ? RTRACE_TEXT : RTRACE_TYPE(type))

/* What the records of a class have, and how ftrace shows them: the text of TP_printk(). */
struct rtrace_class {
	struct rtrace_field *fields;
	size_t nr_fields;
	const char *text;
};

/* Names that TP_printk() gives to values of an expression, whose text this is. */
struct rtrace_names {
	const struct rtrace_class *const *class;
	const char *expression;
	const struct rtrace_value_name *names;
	size_t nr_names;
};

/* A part of variable size: from the beginning of the record, in bytes; whether it is a text that is there. */
struct rtrace_part {
	u32 offset;
	u32 size;
	bool is_put;
};

/* As ftrace shows it. */
static __always_inline const char *rtrace_source(const char *text)
{
	return text ?: EVENT_NULL_STR;
}

static __always_inline size_t rtrace_place_string(struct rtrace_part *part, size_t at, size_t size)
{
	*part = (struct rtrace_part){ .offset = at, .size = size };
	return at + size;
}

/* Behind the number of its elements. */
static __always_inline size_t rtrace_place_array(struct rtrace_part *part, size_t at,
						 size_t count, size_t size)
{
	return rtrace_place_string(part, at + sizeof(u32), count * size);
}

static __always_inline void rtrace_put_empty_array(void *entry, const struct rtrace_part *part,
						   size_t size)
{
	put_unaligned((u32)(part->size / size), (u32 *)(entry + part->offset - sizeof(u32)));
	memset(entry + part->offset, 0, part->size);
}

/*
 * Copies a text with its NUL. It may have changed since it was measured; but what a reader finds must
 * end where it was said to end.
 */
static __always_inline void rtrace_put_string(void *entry, struct rtrace_part *part, const char *from)
{
	char *to = entry + part->offset;
	size_t i, last = part->size - 1;

	for (i = 0; i < last && from[i]; i++)
		to[i] = from[i];
	for (; i < last; i++)
		to[i] = '#';
	to[i] = '\0';
	part->is_put = true;
}

/* Out of line: few events have one. */
void rtrace_put_vstring(void *entry, struct rtrace_part *part, const char *format, va_list *args);

#endif
