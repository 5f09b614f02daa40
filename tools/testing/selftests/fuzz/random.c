// SPDX-License-Identifier: GPL-2.0
/* Random numbers, and random arguments of calls, good and bad: numbers, sizes, pointers. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "fuzz.h"

u64 randomness;

u32 below(u32 n)
{
	randomness = stress_mix(randomness);
	return n ? (randomness >> 32) % n : 0;
}

int one_in(u32 n)
{
	return below(n) == 0;
}

/* Powers of two and their neighbours, small numbers, anything. */
u64 any_number(void)
{
	u64 any = (u64)below(~0u) << 32 | below(~0u);

	switch (below(5)) {
	case 0: return (1ULL << below(64)) + below(3) - 1;
	case 1: return below(10);
	case 2: return -(u64)below(10);
	case 3: return any >> below(64);
	default: return below(BUFFER);
	}
}

/* A page that can be read only, and one that cannot, behind a good one. */
static u8 *pages;
u8 *buffer;
u8 *low;

/* Only x86-64 has the flag. Elsewhere the address is a hint, where a static program has nothing. */
#ifdef MAP_32BIT
#define LOW NULL
#else
#define LOW ((void *)0x10000000)
#define MAP_32BIT 0
#endif

void set_up_memory(void)
{
	buffer = malloc(BUFFER + 4096);
	pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(pages + PAGE, PAGE, PROT_READ);
	mprotect(pages + 2 * PAGE, PAGE, PROT_NONE);
	low = mmap(LOW, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
}

void *any_pointer(void)
{
	switch (below(12)) {
	case 0: return NULL;
	case 1: return (void *)any_number();
	case 2: return (void *)(0xffff888000000000ULL + below(1 << 30));
	case 3: return (void *)(0xffffffff81000000ULL + below(1 << 20));
	case 4: return pages + PAGE - below(64);
	case 5: return pages + 2 * PAGE - below(64);
	case 6: return pages + PAGE + below(PAGE);
	default: return buffer + below(64);
	}
}

size_t any_size(void)
{
	switch (below(8)) {
	case 0: return 0;
	case 1: return 1 + below(16);
	case 2: return any_number();
	case 3: return 84 + below(64);
	default: return below(BUFFER - 64);
	}
}
