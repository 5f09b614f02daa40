/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of the probes and descriptions that the stages make.
 */
#ifndef RTRACE_PROBE_H
#define RTRACE_PROBE_H

#include <linux/bitmap.h>
#include <linux/build_bug.h>
#include <linux/stdarg.h>
#include <linux/string.h>
#include <linux/trace_events.h>
#include <linux/unaligned.h>
#include <linux/wordpart.h>
#include <asm/word-at-a-time.h>

#include "rtrace.h"

#define RTRACE_CONCATENATE_(a, b)	a##b
#define RTRACE_CONCATENATE(a, b)	RTRACE_CONCATENATE_(a, b)

/* GCC's numbers for kinds of types; only pointers and integers are used. */
enum { RTRACE_CLASS_POINTER = 5, RTRACE_CLASS_RECORD = 12 };
#define RTRACE_CLASS(type)	__builtin_classify_type(*(type *)0)
#define RTRACE_IS_POINTER(type)	(RTRACE_CLASS(type) == RTRACE_CLASS_POINTER)

/* True if a value is recorded as a number; otherwise it is recorded as bytes. */
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

/* The fields of a class's records, and how ftrace shows them: the text of TP_printk(). */
struct rtrace_class {
	struct rtrace_field *fields;
	size_t nr_fields;
	const char *text;
};

/* Names that TP_printk() gives to values of an expression, with the expression's text. */
struct rtrace_names {
	const struct rtrace_class *const *class;
	const char *expression;
	const struct rtrace_value_name *names;
	size_t nr_names;
};

/*
 * A part of variable size. @offset is in bytes from the beginning of the record; @is_put says whether a text was
 * written; @source is the address of a text to copy.
 */
struct rtrace_part {
	size_t offset;
	size_t size;
	bool is_put;
	const char *source;
};

/*
 * Clears the fixed part of a record, by small words: the compiler drops those that are always assigned, and merges
 * the others to large ones. Its code for memset() is longer.
 */
static __always_inline void rtrace_clear(void *entry, const size_t size)
{
	const size_t word = sizeof(u32);
	size_t at;

	if (size < word || size > 32 * word) {
		memset(entry, 0, size);
		return;
	}
#pragma GCC unroll 32
	for (at = 0; at + word <= size; at += word)
		put_unaligned(0U, (u32 *)(entry + at));
	/* Overlaps the previous one. */
	if (size % word)
		put_unaligned(0U, (u32 *)(entry + size - word));
}

/* The compiler sees memory without any other pointer to it, until rtrace_laid_down(). */
void *rtrace_record_begin(const void *data, struct rtrace_record *record, size_t len) __malloc;

/*
 * Makes all stores to the record visible to the compiler. Returns @room, through an instruction, so that its address
 * is not kept in a register meanwhile.
 */
static __always_inline struct rtrace_record *rtrace_laid_down(struct rtrace_record *room, void *entry)
{
	struct rtrace_record *same;

#ifdef CONFIG_X86
	asm volatile("lea %1, %0" : "=r" (same) : "m" (*room), "r" (entry) : "memory");
#else
	asm volatile("" : "=r" (same) : "0" (room), "r" (entry) : "memory");
#endif
	return same;
}

/* Returns the text as ftrace shows it. */
static __always_inline const char *rtrace_source(const char *text)
{
	return text ?: EVENT_NULL_STR;
}

/* Returns the offset of the next part. */
static __always_inline size_t rtrace_place_part(struct rtrace_part *part, size_t at, size_t size)
{
	part->offset = at;
	part->size = size;
	part->is_put = false;
	return at + size;
}

/* Leaves room for the number of elements before the array. */
static __always_inline size_t rtrace_place_array(struct rtrace_part *part, size_t at,
						 size_t count, size_t size)
{
	return rtrace_place_part(part, at + sizeof(u32), count * size);
}

static __always_inline void rtrace_put_empty_array(void *entry, const struct rtrace_part *part,
						   size_t size)
{
	put_unaligned((u32)(part->size / size), (u32 *)(entry + part->offset - sizeof(u32)));
	memset(entry + part->offset, 0, part->size);
}

/*
 * Texts are processed by words: the kernel's strlen() takes several instructions for each byte.
 */

/* Constants to examine words with. */
struct rtrace_bytes {
	unsigned long minus_ones;
	unsigned long highs;
};

/* Otherwise the compiler would compute them again for each word, and keep them while the record is reserved. */
static __always_inline struct rtrace_bytes rtrace_bytes(void)
{
	struct rtrace_bytes bytes = { -REPEAT_BYTE(0x01), REPEAT_BYTE(0x80) };

	asm volatile("" : "+r" (bytes.minus_ones), "+r" (bytes.highs));
	return bytes;
}

/*
 * Returns bits that are all clear if no byte is NUL or non-ASCII: a quick check before has_zero(). Bits of the bytes
 * before the first NUL are as if there were no NUL.
 */
static __always_inline unsigned long rtrace_maybe_nuls(unsigned long word, const struct rtrace_bytes *bytes)
{
	return (word + bytes->minus_ones) & bytes->highs;
}

/* Returns whether a byte is NUL, and stores the index of the first in @first. */
static __always_inline bool rtrace_has_nul(unsigned long word, const struct rtrace_bytes *bytes, size_t *first)
{
	/* Some processors need none. */
	const struct word_at_a_time constants __maybe_unused = WORD_AT_A_TIME_CONSTANTS;
	unsigned long nuls = rtrace_maybe_nuls(word, bytes);

	if (likely(!nuls))
		return false;
	/* As in has_zero(). */
	nuls &= ~word;
	if (!nuls)
		return false;
	*first = find_zero(create_zero_mask(prep_zero_mask(word, nuls, &constants)));
	return true;
}

/* strlen() */
static __always_inline size_t rtrace_text_len(const char *text)
{
	const struct rtrace_bytes bytes = rtrace_bytes();
	size_t len, nul;

	for (len = 0; !rtrace_has_nul(load_unaligned_zeropad(text + len), &bytes, &nul); len += sizeof(long))
		;
	return len + nul;
}

/* strnlen() */
static __always_inline size_t rtrace_text_len_of(const char *text, size_t most)
{
	const struct rtrace_bytes bytes = rtrace_bytes();
	size_t len, nul;

	for (len = 0; len < most; len += sizeof(long))
		if (rtrace_has_nul(load_unaligned_zeropad(text + len), &bytes, &nul))
			return min(len + nul, most);
	return most;
}

/* Copies a word of a text, unless it may have a NUL. */
static __always_inline bool rtrace_put_word(char *to, const char *from, const struct rtrace_bytes *bytes)
{
	unsigned long word = get_unaligned((const unsigned long *)from);

	if (unlikely(rtrace_maybe_nuls(word, bytes)))
		return false;
	put_unaligned(word, (unsigned long *)to);
	return true;
}

/* Copies a non-empty text of less than a word, unless there may be a NUL in it. */
static __always_inline bool rtrace_put_part_of_word(char *to, const char *from, size_t len,
						    const struct rtrace_bytes *bytes)
{
	unsigned long word = load_unaligned_zeropad(from);

	if (unlikely(rtrace_maybe_nuls(word, bytes) & ~(~0UL << BITS_PER_BYTE * len)))
		return false;
	if (len & 4) {
		put_unaligned((u32)word, (u32 *)to);
		word >>= 32;
		to += 4;
	}
	if (len & 2) {
		put_unaligned((u16)word, (u16 *)to);
		word >>= 16;
		to += 2;
	}
	if (len & 1)
		*to = word;
	return true;
}

/* Copies a text of this length and a NUL, byte by byte: it may have become shorter. */
void rtrace_put_bytes(char *to, const char *from, size_t len);

/*
 * Copies a text with its NUL. It may have changed since it was measured, but for a reader it must end at the
 * announced place.
 */
static __always_inline void rtrace_put_string(void *entry, struct rtrace_part *part)
{
	const char *from = part->source;
	char *to = entry + part->offset;
	const size_t len = part->size - 1, word = sizeof(long);
	const struct rtrace_bytes bytes = rtrace_bytes();

	part->is_put = true;
	if (len >= word) {
		const size_t last = len - word;
		size_t at;

		for (at = 0; at < last; at += word)
			if (!rtrace_put_word(to + at, from + at, &bytes))
				goto bytes;
		/* Overlaps the previous one. */
		if (!rtrace_put_word(to + last, from + last, &bytes))
			goto bytes;
	} else if (len && !rtrace_put_part_of_word(to, from, len, &bytes)) {
		goto bytes;
	}
	to[len] = '\0';
	return;
bytes:
	rtrace_put_bytes(to, from, len);
}

/* Fills the place of a text that was announced and not put. */
static __always_inline void rtrace_put_no_string(void *entry, struct rtrace_part *part)
{
	rtrace_put_bytes(entry + part->offset, "", part->size - 1);
}

/* Out of line: few events have one. */
void rtrace_put_vstring(void *entry, struct rtrace_part *part, const char *format, va_list *args);

#endif
