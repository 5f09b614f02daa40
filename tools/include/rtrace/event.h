/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Events of a C or C++ program, for rtrace.
 *
 *	#include <rtrace/event.h>
 *
 *	RTRACE_EVENT(shop, request, (u32, status), (string, path));
 *
 *	rtrace_event(shop, request, 200, "/cart");
 *
 * RTRACE_EVENT(PROVIDER, NAME, (TYPE, FIELD)...) declares an event, outside of functions: up to 10 fields of the types
 * u8 to u64, s8 to s64, x8 to x64 (shown in hexadecimal) and string. rtrace_event(PROVIDER, NAME, VALUE...) records it
 * as user.PROVIDER:NAME. While nobody records the event, rtrace_event() tests a word, and does not evaluate the values.
 *
 * The program needs no library and no thread. At its start it opens the file `program` of rtrace and registers its
 * events. Without rtrace it works, and records nothing.
 *
 * A record goes into a ring in memory that the program and rtrace's module share, without a call. It is written in one
 * restartable sequence (rseq), which ends with the store of the ring's head. So it exists completely or not at all,
 * whatever interrupts the program: also a signal whose handler records, or SIGKILL. write(2) records the event where
 * there is no ring: on another processor than x86-64 and arm64, without rseq in the C library, or if the recording needs
 * more than a ring has, such as call stacks.
 *
 * A text has at most 511 bytes; a longer one is cut. The fields of a record have at most 1008 bytes; a record with more is
 * counted as lost.
 *
 * With -std=c11 or the like, define _DEFAULT_SOURCE before any header.
 *
 * Limits: a child of vfork(2) may only call exec or _exit, as POSIX says. It must not record. A debugger that steps
 * through the restartable sequence does not get to its end; after 100 attempts write(2) records the event.
 */
#ifndef RTRACE_EVENT_H
#define RTRACE_EVENT_H

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The state of this program or library: one definition, whatever the number of source files that include this. */
#define RTRACE_SHARED __attribute__((weak, visibility("hidden")))

/* The module's interface: Documentation/abi-programs.md. */
struct rtrace_layout {
	uint64_t words, words_size, headers, headers_size, data, ring_size;
	uint32_t count, version;
};

#define RTRACE_REGISTER		_IOW(0xF7, 9, char[513])
#define RTRACE_SHARE		_IOR(0xF7, 10, struct rtrace_layout)
#define RTRACE_ADD_RING		_IO(0xF7, 11)
#define RTRACE_NUMBER_THREAD	_IO(0xF7, 12)
#define RTRACE_WAKE		_IO(0xF7, 13)

/* Bits of an event's word. */
#define RTRACE_WORD_RING	1u
#define RTRACE_WORD_WRITE	2u

/* The header of a ring. */
struct rtrace_header {
	/* Written by the program: number of bytes ever written; number of lost records; address of the ring's mapping. */
	uint64_t head, lost, data;
	/* Written by the program: whether it cannot have this ring. */
	uint64_t no_ring;
	uint64_t unused[4];
	/* Written by the module: the program may write up to this head; whether RTRACE_WAKE raises the limit. */
	uint64_t limit, may_wake;
	uint64_t unused_too[6];
};

/* An event of the program. */
struct rtrace_event {
	/* Not 0 while the event is recorded. */
	const uint32_t *word;
	/* The text that registers the event. */
	const char *text;
	int index;
};

/* The rings of this process. It is in a page that a child of fork(2) finds all zero. */
struct rtrace_rings {
	struct rtrace_header *headers;
	uint64_t mask;
	/* Offset of the ring's index from the thread pointer. */
	int64_t index_at;
	/* Number of the process's life: differs from that of its parent. */
	uint64_t life;
	uint64_t busy;
};

/* Number of this thread in its records. */
struct rtrace_thread {
	uint64_t life, number;
};

struct rtrace_state {
	struct rtrace_rings *rings;
	struct rtrace_layout layout;
	void *words;
	int fd;
	int is_made;
};

RTRACE_SHARED struct rtrace_state rtrace_state;
RTRACE_SHARED uint32_t rtrace_words_off;
RTRACE_SHARED uint32_t rtrace_words_write = RTRACE_WORD_WRITE;
RTRACE_SHARED uint64_t rtrace_lives;
RTRACE_SHARED __thread struct rtrace_thread rtrace_thread;

/* The events of this program or library. */
extern struct rtrace_event *const __start_rtrace_events[] __attribute__((weak, visibility("hidden")));
extern struct rtrace_event *const __stop_rtrace_events[] __attribute__((weak, visibility("hidden")));

/* A record that is being made. write(2) takes it from the second half of `head` on. */
struct rtrace_record {
	uint64_t head;
	uint8_t fields[1024];
	size_t len;
	int is_too_large;
};

#define RTRACE_FIELDS_MAX	1008
#define RTRACE_TEXT_MAX		511

static inline void rtrace_put(struct rtrace_record *record, const void *bytes, size_t len)
{
	if (len > RTRACE_FIELDS_MAX - record->len) {
		record->is_too_large = 1;
		return;
	}
	memcpy(record->fields + record->len, bytes, len);
	record->len += len;
}

static inline void rtrace_put_string(struct rtrace_record *record, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (len > RTRACE_TEXT_MAX)
		len = RTRACE_TEXT_MAX;
	if (len >= RTRACE_FIELDS_MAX - record->len) {
		record->is_too_large = 1;
		return;
	}
	memcpy(record->fields + record->len, text ? text : "", len);
	record->fields[record->len + len] = 0;
	record->len += len + 1;
}

#if defined(__GLIBC__) && !defined(__ILP32__) && (defined(__x86_64__) || (defined(__aarch64__) && defined(__AARCH64EL__)))
#define RTRACE_HAS_RINGS 1

/* The C library's rseq area of each thread; older ones have none. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

enum { RTRACE_DONE, RTRACE_FULL, RTRACE_ABORTED, RTRACE_NO_RSEQ };

/*
 * rtrace_try() writes a record of `len` bytes, its 16 bytes of header included, into the ring of this thread's concurrency
 * id. One attempt. From label 1 to label 2 the kernel restarts the thread at label 4 if it was preempted, moved to another
 * CPU, or got a signal. The last instruction stores the head: before it the record does not exist.
 */
#ifdef __x86_64__
static inline __attribute__((always_inline)) int rtrace_try(const struct rtrace_rings *rings, const uint8_t *fields,
							     uint64_t len, uint64_t tag)
{
	__asm__ goto volatile(
		".pushsection __rseq_cs, \"aw\"\n\t"
		".balign 32\n"
		"3:\n\t"
		".long 0, 0\n\t"
		".quad 1f, 2f - 1f, 4f\n\t"
		".popsection\n\t"
		"leaq 3b(%%rip), %%rax\n\t"
		"movq %%rax, %%fs:8(%[area])\n"
		"1:\n\t"
		"movl %%fs:4(%[area]), %%r9d\n\t"		/* The CPU; negative: this thread has no rseq. */
		"testl %%r9d, %%r9d\n\t"
		"js %l[no_rseq]\n\t"
		"movl %%fs:(%[index_at]), %%ecx\n\t"
		"shlq $7, %%rcx\n\t"
		"addq %[headers], %%rcx\n\t"
		"movq 16(%%rcx), %%r11\n\t"			/* data */
		"testq %%r11, %%r11\n\t"
		"jz %l[full]\n\t"
		"movq (%%rcx), %%r8\n\t"			/* head */
		"leaq (%%r8,%[len]), %%r10\n\t"
		"movq %%r10, %%rax\n\t"
		"subq 64(%%rcx), %%rax\n\t"			/* limit */
		"jg %l[full]\n\t"
		"rdtsc\n\t"
		"shlq $32, %%rdx\n\t"
		"orq %%rdx, %%rax\n\t"
		"andq %[mask], %%r8\n\t"
		"addq %%r11, %%r8\n\t"
		"movq %%rax, (%%r8)\n\t"
		"shlq $48, %%r9\n\t"
		"orq %[tag], %%r9\n\t"
		"movq %%r9, 8(%%r8)\n\t"
		"leaq -16(%[len]), %%rdx\n\t"
		"testq %%rdx, %%rdx\n\t"
		"jz 6f\n"
		"5:\n\t"
		"movq -8(%[fields],%%rdx), %%rax\n\t"
		"movq %%rax, 8(%%r8,%%rdx)\n\t"
		"subq $8, %%rdx\n\t"
		"jnz 5b\n"
		"6:\n\t"
		"movq %%r10, (%%rcx)\n"
		"2:\n\t"
		/* The kernel reads what this points to at the next preemption, so it must not outlive this code (dlclose(3)). */
		"movq $0, %%fs:8(%[area])\n\t"
		".pushsection __rseq_failure, \"ax\"\n\t"
		".byte 0x0f, 0xb9, 0x3d\n\t"
		".long 0x53053053\n"				/* The signature that the C library has registered. */
		"4:\n\t"
		"jmp %l[aborted]\n\t"
		".popsection"
		:
		: [area] "r"(__rseq_offset), [index_at] "r"(rings->index_at), [headers] "r"(rings->headers),
		  [mask] "m"(rings->mask), [tag] "r"(tag), [len] "r"(len), [fields] "r"(fields)
		: "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc"
		: full, aborted, no_rseq);
	return RTRACE_DONE;
full:
	__asm__ volatile("movq $0, %%fs:8(%0)" : : "r"(__rseq_offset) : "memory");
	return RTRACE_FULL;
aborted:
	return RTRACE_ABORTED;
no_rseq:
	__asm__ volatile("movq $0, %%fs:8(%0)" : : "r"(__rseq_offset) : "memory");
	return RTRACE_NO_RSEQ;
}
#else
/*
 * The stores of a record follow the load of the limit by control dependency: the module has read what was there before. The
 * head is stored after them. If another CPU has written the ring before, the kernel's switch of tasks has ordered that.
 */
static inline __attribute__((always_inline)) int rtrace_try(const struct rtrace_rings *rings, const uint8_t *fields,
							     uint64_t len, uint64_t tag)
{
	char *self = (char *)__builtin_thread_pointer();
	uint64_t *area = (uint64_t *)(self + __rseq_offset);

	__asm__ goto volatile(
		".pushsection __rseq_cs, \"aw\"\n\t"
		".balign 32\n"
		"3:\n\t"
		".long 0, 0\n\t"
		".quad 1f, 2f - 1f, 4f\n\t"
		".popsection\n\t"
		"adrp x9, 3b\n\t"
		"add x9, x9, :lo12:3b\n\t"
		"str x9, [%[area], 8]\n"
		"1:\n\t"
		"ldr w10, [%[area], 4]\n\t"			/* The CPU; negative: this thread has no rseq. */
		"tbnz w10, 31, %l[no_rseq]\n\t"
		"ldr w11, [%[index]]\n\t"
		"add x11, %[headers], x11, lsl 7\n\t"
		"ldr x12, [x11, 16]\n\t"			/* data */
		"cbz x12, %l[full]\n\t"
		"ldr x13, [x11]\n\t"				/* head */
		"add x14, x13, %[len]\n\t"
		"ldr x15, [x11, 64]\n\t"			/* limit */
		"subs x15, x14, x15\n\t"
		"b.gt %l[full]\n\t"
		"and x13, x13, %[mask]\n\t"
		"add x12, x12, x13\n\t"
		"isb\n\t"					/* The time is not before that of the previous record. */
		"mrs x15, cntvct_el0\n\t"
		"orr x10, %[tag], x10, lsl 48\n\t"
		"stp x15, x10, [x12], 16\n\t"
		"subs x13, %[len], 16\n\t"
		"b.eq 6f\n"
		"5:\n\t"
		"sub x13, x13, 8\n\t"
		"ldr x15, [%[fields], x13]\n\t"
		"str x15, [x12, x13]\n\t"
		"cbnz x13, 5b\n"
		"6:\n\t"
		"stlr x14, [x11]\n"
		"2:\n\t"
		/* The kernel reads what this points to at the next preemption, so it must not outlive this code (dlclose(3)). */
		"str xzr, [%[area], 8]\n\t"
		".pushsection __rseq_failure, \"ax\"\n\t"
		".inst 0xd428bc00\n"				/* The signature that the C library has registered. */
		"4:\n\t"
		"b %l[aborted]\n\t"
		".popsection"
		:
		: [area] "r"(area), [index] "r"(self + rings->index_at), [headers] "r"(rings->headers), [mask] "r"(rings->mask),
		  [tag] "r"(tag), [len] "r"(len), [fields] "r"(fields)
		: "x9", "x10", "x11", "x12", "x13", "x14", "x15", "memory", "cc"
		: full, aborted, no_rseq);
	return RTRACE_DONE;
full:
	*(volatile uint64_t *)&area[1] = 0;
	return RTRACE_FULL;
aborted:
	return RTRACE_ABORTED;
no_rseq:
	*(volatile uint64_t *)&area[1] = 0;
	return RTRACE_NO_RSEQ;
}
#endif

/* The header of the ring that this thread would use now. */
static inline struct rtrace_header *rtrace_header(const struct rtrace_rings *rings, uint32_t *index)
{
	char *self = (char *)__builtin_thread_pointer();

	*index = *(volatile uint32_t *)(self + rings->index_at);
	return *index < rtrace_state.layout.count ? &rings->headers[*index] : NULL;
}
#endif

/* Opens the file, registers the events and makes the rings. */
RTRACE_SHARED void rtrace_make(void);

void rtrace_make(void)
{
	struct rtrace_event *const *event;
	struct rtrace_rings *rings = rtrace_state.rings;
	uint32_t *words = NULL;
	/* In a child: the state of the parent. */
	struct rtrace_state old = rtrace_state;
	size_t page = sysconf(_SC_PAGESIZE);
	int fd, saved = errno;

	fd = open("/sys/kernel/rtrace/program", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fd = open("/sys/kernel/debug/rtrace/program", O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		errno = saved;
		return;
	}
	for (event = __start_rtrace_events; event < __stop_rtrace_events; event++)
		(*event)->index = ioctl(fd, RTRACE_REGISTER, (*event)->text);
	if (!rings) {
		rings = (struct rtrace_rings *)mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (rings == MAP_FAILED)
			rings = NULL;
		else if (madvise(rings, page, MADV_WIPEONFORK)) {
			munmap(rings, page);
			rings = NULL;
		}
	}
	if (rings && !ioctl(fd, RTRACE_SHARE, &rtrace_state.layout) && rtrace_state.layout.version == 1) {
		words = (uint32_t *)mmap(NULL, rtrace_state.layout.words_size, PROT_READ, MAP_SHARED, fd,
					 (off_t)rtrace_state.layout.words);
		if (words == MAP_FAILED)
			words = NULL;
	}
	if (rings) {
		rings->life = ++rtrace_lives;
#ifdef RTRACE_HAS_RINGS
		if (words && rtrace_state.layout.count && &__rseq_offset && &__rseq_size && __rseq_size) {
			void *headers = mmap(NULL, rtrace_state.layout.headers_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
					     (off_t)rtrace_state.layout.headers);

			/* AT_RSEQ_FEATURE_SIZE: the kernel keeps the concurrency id (mm_cid). If not, there is a ring for each CPU. */
			rings->index_at = __rseq_offset + (getauxval(27) >= 28 ? 24 : 4);
			rings->mask = rtrace_state.layout.ring_size - 1;
			if (headers != MAP_FAILED)
				rings->headers = (struct rtrace_header *)headers;
		}
#endif
	}
	rtrace_state.rings = rings;
	rtrace_state.words = words;
	rtrace_state.fd = fd;
	for (event = __start_rtrace_events; event < __stop_rtrace_events; event++) {
		int index = (*event)->index;
		const uint32_t *word = &rtrace_words_off;

		if (index >= 0)
			word = words ? words + index : &rtrace_words_write;
		__atomic_store_n(&(*event)->word, word, __ATOMIC_RELEASE);
	}
	if (old.words)
		munmap(old.words, old.layout.words_size);
	if (old.fd >= 0)
		close(old.fd);
	errno = saved;
}

/* Once for the program or library, before main(). */
RTRACE_SHARED __attribute__((constructor)) void rtrace_begin(void);

void rtrace_begin(void)
{
	if (!rtrace_state.is_made) {
		rtrace_state.is_made = 1;
		rtrace_state.fd = -1;
		rtrace_make();
	}
}

/* The beginning of this program or library, which the linker knows. */
extern const ElfW(Ehdr) rtrace_file __asm__("__ehdr_start") __attribute__((weak, visibility("hidden")));

/* Whether this is the main program: its end is that of the process, and its threads may go on recording meanwhile. */
static inline int rtrace_is_main(void)
{
	return &rtrace_file && (uintptr_t)&rtrace_file + rtrace_file.e_phoff == getauxval(AT_PHDR);
}

/* Before the library is unloaded. None of its threads records any more, also at the end of the process. */
RTRACE_SHARED __attribute__((destructor)) void rtrace_end(void);

void rtrace_end(void)
{
	struct rtrace_event *const *event;

	for (event = __start_rtrace_events; event < __stop_rtrace_events; event++)
		__atomic_store_n(&(*event)->word, &rtrace_words_off, __ATOMIC_RELEASE);
	if (!rtrace_state.is_made || rtrace_state.fd < 0 || rtrace_is_main())
		return;
	if (rtrace_state.rings) {
		struct rtrace_header *headers = rtrace_state.rings->headers;

		for (uint32_t i = 0; headers && i < rtrace_state.layout.count; i++)
			if (headers[i].data)
				munmap((void *)headers[i].data, 2 * rtrace_state.layout.ring_size);
		if (headers)
			munmap(headers, rtrace_state.layout.headers_size);
		munmap(rtrace_state.rings, sysconf(_SC_PAGESIZE));
	}
	if (rtrace_state.words)
		munmap(rtrace_state.words, rtrace_state.layout.words_size);
	close(rtrace_state.fd);
	rtrace_state.fd = -1;
	rtrace_state.rings = NULL;
}

/* Number of records that had no room in a ring. */
static inline uint64_t rtrace_lost(void)
{
	uint64_t lost = 0;

	if (rtrace_state.rings && rtrace_state.rings->headers)
		for (uint32_t i = 0; i < rtrace_state.layout.count; i++)
			lost += __atomic_load_n(&rtrace_state.rings->headers[i].lost, __ATOMIC_RELAXED);
	return lost;
}

/* Records the event by a call. */
static inline void rtrace_write(const struct rtrace_event *event, struct rtrace_record *record)
{
	int saved = errno;
	char *from = (char *)record + 4;
	uint32_t index = event->index;

	memcpy(from, &index, sizeof(index));
	/* EBADF: nobody records the event any more. */
	if (write(rtrace_state.fd, from, sizeof(index) + record->len) < 0)
		errno = saved;
}

#ifdef RTRACE_HAS_RINGS
/* Makes room in the ring of this thread, if that is possible. Returns whether to try again; -1: use write(2). */
RTRACE_SHARED __attribute__((noinline, cold)) int rtrace_make_room(void);

int rtrace_make_room(void)
{
	struct rtrace_rings *rings = rtrace_state.rings;
	int saved = errno, result = -1;
	uint32_t index;
	struct rtrace_header *header = rtrace_header(rings, &index);

	if (!header || header->no_ring)
		return -1;
	if (header->data) {
		/* Once for each half of the ring. */
		if (!__atomic_load_n(&header->may_wake, __ATOMIC_RELAXED))
			return 0;
		result = !ioctl(rtrace_state.fd, RTRACE_WAKE, (unsigned long)index);
		errno = saved;
		return result;
	}
	/* Another thread, or the code that this handler of a signal has interrupted, makes a ring. */
	if (__atomic_exchange_n(&rings->busy, 1, __ATOMIC_ACQUIRE))
		return -1;
	if (header->data) {
		result = 1;
	} else if (!ioctl(rtrace_state.fd, RTRACE_ADD_RING, (unsigned long)index)) {
		size_t size = 2 * rtrace_state.layout.ring_size;
		void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, rtrace_state.fd,
				  (off_t)(rtrace_state.layout.data + index * size));

		if (data != MAP_FAILED) {
			__atomic_store_n(&header->data, (uint64_t)data, __ATOMIC_RELEASE);
			result = 1;
		}
	}
	if (result < 0)
		header->no_ring = 1;
	__atomic_store_n(&rings->busy, 0, __ATOMIC_RELEASE);
	errno = saved;
	return result;
}

/* In a child of fork(2): makes rings of its own. */
RTRACE_SHARED __attribute__((noinline, cold)) void rtrace_remake(void);

void rtrace_remake(void)
{
	struct rtrace_rings *rings = rtrace_state.rings;

	if (rings && !rings->life && !__atomic_exchange_n(&rings->busy, 1, __ATOMIC_ACQUIRE)) {
		rtrace_make();
		/* Without a file of its own, it goes on with write(2) to its parent's. */
		if (!rings->life)
			rings->life = ++rtrace_lives;
		__atomic_store_n(&rings->busy, 0, __ATOMIC_RELEASE);
	}
}

RTRACE_SHARED __attribute__((noinline, cold)) void rtrace_number(void);

void rtrace_number(void)
{
	int saved = errno;
	int number = ioctl(rtrace_state.fd, RTRACE_NUMBER_THREAD);

	/* 0: too many threads have a number. */
	rtrace_thread.number = number < 0 ? 0 : number;
	rtrace_thread.life = rtrace_state.rings->life;
	errno = saved;
}
#endif

static inline __attribute__((always_inline)) void rtrace_emit(const struct rtrace_event *event, struct rtrace_record *record)
{
#ifdef RTRACE_HAS_RINGS
	struct rtrace_rings *rings = rtrace_state.rings;
	uint64_t len = 16 + ((record->len + 7) & ~(size_t)7);
	int left = 100;

	if (__builtin_expect(rings && !rings->life, 0))
		rtrace_remake();
	if (__builtin_expect(record->is_too_large, 0)) {
		if (rings && rings->headers)
			__atomic_fetch_add(&rings->headers[0].lost, 1, __ATOMIC_RELAXED);
		return;
	}
	if (__builtin_expect(rings && rings->headers &&
				     !(__atomic_load_n(event->word, __ATOMIC_RELAXED) & RTRACE_WORD_WRITE), 1)) {
		uint64_t tag;

		if (__builtin_expect(rtrace_thread.life != rings->life, 0))
			rtrace_number();
		tag = len / 8 | (uint64_t)event->index << 10 | rtrace_thread.number << 26;
		while (left--) {
			int result = rtrace_try(rings, record->fields, len, tag);

			if (__builtin_expect(result == RTRACE_DONE, 1))
				return;
			if (result == RTRACE_NO_RSEQ)
				break;
			if (result == RTRACE_FULL) {
				uint32_t index;
				struct rtrace_header *header;

				result = rtrace_make_room();
				if (result < 0)
					break;
				if (result > 0)
					continue;
				header = rtrace_header(rings, &index);
				if (header)
					__atomic_fetch_add(&header->lost, 1, __ATOMIC_RELAXED);
				return;
			}
		}
	}
#endif
	if (!record->is_too_large)
		rtrace_write(event, record);
}

/* The types of fields. */
#define RTRACE_C_u8 uint8_t
#define RTRACE_C_u16 uint16_t
#define RTRACE_C_u32 uint32_t
#define RTRACE_C_u64 uint64_t
#define RTRACE_C_s8 int8_t
#define RTRACE_C_s16 int16_t
#define RTRACE_C_s32 int32_t
#define RTRACE_C_s64 int64_t
#define RTRACE_C_x8 uint8_t
#define RTRACE_C_x16 uint16_t
#define RTRACE_C_x32 uint32_t
#define RTRACE_C_x64 uint64_t
#define RTRACE_C_string const char *

#define RTRACE_PUT_u8(field) rtrace_put(rtrace_r, &field, sizeof(field))
#define RTRACE_PUT_u16(field) RTRACE_PUT_u8(field)
#define RTRACE_PUT_u32(field) RTRACE_PUT_u8(field)
#define RTRACE_PUT_u64(field) RTRACE_PUT_u8(field)
#define RTRACE_PUT_s8(field) RTRACE_PUT_u8(field)
#define RTRACE_PUT_s16(field) RTRACE_PUT_u8(field)
#define RTRACE_PUT_s32(field) RTRACE_PUT_u8(field)
#define RTRACE_PUT_s64(field) RTRACE_PUT_u8(field)
#define RTRACE_PUT_x8(field) RTRACE_PUT_u8(field)
#define RTRACE_PUT_x16(field) RTRACE_PUT_u8(field)
#define RTRACE_PUT_x32(field) RTRACE_PUT_u8(field)
#define RTRACE_PUT_x64(field) RTRACE_PUT_u8(field)
#define RTRACE_PUT_string(field) rtrace_put_string(rtrace_r, field)

/* The code for a field (TYPE, FIELD). */
#define RTRACE_PARAMETER_FIRST(type, field) RTRACE_C_##type field
#define RTRACE_PARAMETER(type, field) , RTRACE_C_##type field
#define RTRACE_TEXT_FIRST(type, field) " " #type " " #field
#define RTRACE_TEXT(type, field) "; " #type " " #field
#define RTRACE_PUT(type, field) RTRACE_PUT_##type(field);

/* RTRACE_EACH(FIRST, REST, FIELD...): FIRST FIELD REST FIELD ... */
#define RTRACE_COUNT_(_0, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, count, ...) count
#define RTRACE_COUNT(...) RTRACE_COUNT_(0, ##__VA_ARGS__, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define RTRACE_JOIN_(a, b) a##b
#define RTRACE_JOIN(a, b) RTRACE_JOIN_(a, b)
#define RTRACE_EACH(first, rest, ...) RTRACE_JOIN(RTRACE_EACH_, RTRACE_COUNT(__VA_ARGS__))(first, rest, ##__VA_ARGS__)
#define RTRACE_EACH_0(first, rest)
#define RTRACE_EACH_1(first, rest, a) first a
#define RTRACE_EACH_2(first, rest, a, ...) first a RTRACE_EACH_1(rest, rest, __VA_ARGS__)
#define RTRACE_EACH_3(first, rest, a, ...) first a RTRACE_EACH_2(rest, rest, __VA_ARGS__)
#define RTRACE_EACH_4(first, rest, a, ...) first a RTRACE_EACH_3(rest, rest, __VA_ARGS__)
#define RTRACE_EACH_5(first, rest, a, ...) first a RTRACE_EACH_4(rest, rest, __VA_ARGS__)
#define RTRACE_EACH_6(first, rest, a, ...) first a RTRACE_EACH_5(rest, rest, __VA_ARGS__)
#define RTRACE_EACH_7(first, rest, a, ...) first a RTRACE_EACH_6(rest, rest, __VA_ARGS__)
#define RTRACE_EACH_8(first, rest, a, ...) first a RTRACE_EACH_7(rest, rest, __VA_ARGS__)
#define RTRACE_EACH_9(first, rest, a, ...) first a RTRACE_EACH_8(rest, rest, __VA_ARGS__)
#define RTRACE_EACH_10(first, rest, a, ...) first a RTRACE_EACH_9(rest, rest, __VA_ARGS__)

#define RTRACE_EVENT(provider, name, ...)									\
	static struct rtrace_event rtrace_event_##provider##_##name = {						\
		&rtrace_words_off,										\
		#provider ":" #name RTRACE_EACH(RTRACE_TEXT_FIRST, RTRACE_TEXT, ##__VA_ARGS__),			\
		-1,												\
	};													\
	static struct rtrace_event *const rtrace_entry_##provider##_##name					\
		__attribute__((section("rtrace_events"), used)) = &rtrace_event_##provider##_##name;		\
	static inline __attribute__((unused)) void rtrace_record_##provider##_##name(				\
		RTRACE_EACH(RTRACE_PARAMETER_FIRST, RTRACE_PARAMETER, ##__VA_ARGS__))				\
	{													\
		struct rtrace_record rtrace_made, *rtrace_r = &rtrace_made;					\
														\
		rtrace_r->len = 0;										\
		rtrace_r->is_too_large = 0;									\
		RTRACE_EACH(RTRACE_PUT, RTRACE_PUT, ##__VA_ARGS__)						\
		rtrace_emit(&rtrace_event_##provider##_##name, rtrace_r);					\
	}													\
	struct rtrace_event

/* Whether the event is recorded: to leave out work that only its values need. */
#define rtrace_enabled(provider, name) \
	__builtin_expect(__atomic_load_n(rtrace_event_##provider##_##name.word, __ATOMIC_RELAXED) != 0, 0)

#define rtrace_event(provider, name, ...)					\
	do {									\
		if (rtrace_enabled(provider, name))				\
			rtrace_record_##provider##_##name(__VA_ARGS__);		\
	} while (0)

#ifdef __cplusplus
}
#endif

#endif
