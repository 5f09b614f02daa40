/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Nanoseconds per call: the median and the least of 1,001 samples, which are so short that most of them are not preempted.
 * Beside each sample stands one of the clock alone, which the call reads: so figures of a busy machine can be compared.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SAMPLES 1001
#define CALLS 2000

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static int compare(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return a < b ? -1 : a > b;
}

static void show(const char *name, double (*samples)[SAMPLES])
{
	printf("%-24s", name);
	for (int of = 0; of < 2; of++) {
		qsort(samples[of], SAMPLES, sizeof(**samples), compare);
		printf(" %6.1f %6.1f", samples[of][SAMPLES / 2], samples[of][0]);
	}
	printf("\n");
	fflush(stdout);
}

#define SAMPLE(call)						\
	({							\
		double begin = now();				\
								\
		for (uint64_t i = 0; i < CALLS; i++)		\
			call;					\
		(now() - begin) / CALLS;			\
	})

#define MEASURE(name, clock, call)				\
	do {							\
		double samples[2][SAMPLES];			\
								\
		for (int n = 0; n < SAMPLES; n++) {		\
			samples[1][n] = SAMPLE(clock);		\
			samples[0][n] = SAMPLE(call);		\
		}						\
		show(name, samples);				\
	} while (0)

#define TSC __asm__ volatile("rdtsc" : : : "rax", "rdx")
