// SPDX-License-Identifier: GPL-2.0
/*
 * The cost of an event of a program that includes <rtrace/event.h>, on this machine, without the module: anonymous memory
 * takes the place of the rings, and their limit is never reached. Prints the median and the least of 41 samples.
 */
#define _GNU_SOURCE
#include <rtrace/event.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SAMPLES 41
#define CALLS 200000
#define RING (256 << 10)

RTRACE_EVENT(bench, one, (u64, a));
RTRACE_EVENT(bench, six, (u64, a), (u64, b), (u64, c), (u64, d), (u64, e), (u64, f));
RTRACE_EVENT(bench, text, (u32, status), (string, path));

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static void *checked(void *mapping)
{
	if (mapping == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return mapping;
}

static void make_rings(void)
{
	long rings = sysconf(_SC_NPROCESSORS_CONF), fd = memfd_create("rings", MFD_CLOEXEC);
	static struct rtrace_rings made;

	if (fd < 0 || ftruncate(fd, rings * RING) || !&__rseq_offset || !__rseq_size) {
		fprintf(stderr, "no memfd, or no rseq in the C library\n");
		exit(1);
	}
	made.headers = checked(mmap(NULL, rings * sizeof(struct rtrace_header), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	made.mask = RING - 1;
	made.index_at = __rseq_offset + (getauxval(27) >= 28 ? 24 : 4);
	made.life = rtrace_thread.life = 1;
	for (long i = 0; i < rings; i++) {
		char *data = checked(mmap(NULL, 2 * RING, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

		for (int time = 0; time < 2; time++)
			checked(mmap(data + time * RING, RING, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, i * RING));
		memset(data, 1, RING);
		made.headers[i].data = (uint64_t)data;
		made.headers[i].limit = UINT64_C(1) << 62;
	}
	rtrace_state.rings = &made;
	rtrace_state.layout.count = rings;
}

static int compare(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return a < b ? -1 : a > b;
}

static void show(const char *name, double *samples)
{
	qsort(samples, SAMPLES, sizeof(*samples), compare);
	printf("%-14s %6.1f %6.1f\n", name, samples[SAMPLES / 2], samples[0]);
}

#define MEASURE(name, call)						\
	do {								\
		double samples[SAMPLES];				\
									\
		for (int n = 0; n < SAMPLES; n++) {			\
			double begin = now();				\
									\
			for (uint64_t i = 0; i < CALLS; i++)		\
				call;					\
			samples[n] = (now() - begin) / CALLS;		\
		}							\
		show(name, samples);					\
	} while (0)

int main(void)
{
	static uint32_t on = RTRACE_WORD_RING;

	printf("%-14s %6s %6s\n", "ns per event", "median", "least");
	MEASURE("off", rtrace_event(bench, one, i));
	make_rings();
	rtrace_event_bench_one.word = rtrace_event_bench_six.word = rtrace_event_bench_text.word = &on;
	MEASURE("rdtsc alone", __asm__ volatile("rdtsc" : : : "rax", "rdx"));
	MEASURE("8 bytes", rtrace_event(bench, one, i));
	MEASURE("48 bytes", rtrace_event(bench, six, i, i, i, i, i, i));
	MEASURE("u32 and text", rtrace_event(bench, text, i, "/cart/17"));
	/* The destructor must not unmap these rings. */
	fflush(stdout);
	_exit(0);
}
