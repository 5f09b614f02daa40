// SPDX-License-Identifier: GPL-2.0
/*
 * For tests of profiles: spends three parts of its time in one function and one part in another.
 *
 *	split ROUNDS
 *
 * runs ROUNDS rounds, or forever (0). Each function has a caller of its own, so that call stacks
 * differ, too. First prints the addresses of all of them, as /proc/kallsyms does.
 */
#include <stdio.h>
#include <stdlib.h>

/*
 * Iterations of a loop that is the same in both, so that times are in proportion. Their number differs from round to
 * round: otherwise the rounds could keep step with the timer of the samples.
 */
#define TURNS 100000
static unsigned int turns = TURNS;

static volatile unsigned int sink;

/* Without this a function that calls no other has no frame. */
#define have_frame() asm volatile("" : : "r"(__builtin_frame_address(0)))

#define spin(times)						\
	do {							\
		for (unsigned int i = 0; i < (times); i++)	\
			sink += i;				\
	} while (0)

__attribute__((noinline, noclone)) void three_parts(void)
{
	have_frame();
	spin(3 * turns);
}

__attribute__((noinline, noclone)) void one_part(void)
{
	have_frame();
	spin(turns);
}

__attribute__((noinline, noclone)) void call_three(void)
{
	three_parts();
	asm volatile(""); /* no jump: this frame stays */
}

__attribute__((noinline, noclone)) void call_one(void)
{
	one_part();
	asm volatile("");
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	unsigned int random = 1;

	printf("%lx T three_parts\n%lx T one_part\n%lx T call_three\n%lx T call_one\n%lx T main\n",
	       (unsigned long)three_parts, (unsigned long)one_part, (unsigned long)call_three,
	       (unsigned long)call_one, (unsigned long)main);
	fflush(stdout);
	for (unsigned long i = 0; !rounds || i < rounds; i++) {
		call_three();
		call_one();
		random = random * 1664525 + 1013904223;
		turns = TURNS / 2 + random % TURNS;
	}
	return 0;
}
