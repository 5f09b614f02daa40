// SPDX-License-Identifier: GPL-2.0
/*
 * The cost of an event of a program that includes <rtrace/event.h>, on this machine, without the module: anonymous memory
 * takes the place of the rings, and their limit is never reached.
 */
#define _GNU_SOURCE
#include <rtrace/event.h>

#include "measure.h"

#define RING (256 << 10)

RTRACE_EVENT(bench, one, (u64, a));
RTRACE_EVENT(bench, six, (u64, a), (u64, b), (u64, c), (u64, d), (u64, e), (u64, f));
RTRACE_EVENT(bench, text, (u32, status), (string, path));

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

int main(void)
{
	static uint32_t on = RTRACE_WORD_RING;

	MEASURE("rtrace: off", (void)i, rtrace_event(bench, one, i));
	make_rings();
	rtrace_event_bench_one.word = rtrace_event_bench_six.word = rtrace_event_bench_text.word = &on;
	MEASURE("rtrace: 8 bytes", TSC, rtrace_event(bench, one, i));
	MEASURE("rtrace: 48 bytes", TSC, rtrace_event(bench, six, i, i, i, i, i, i));
	MEASURE("rtrace: u32 and text", TSC, rtrace_event(bench, text, i, "/cart/17"));
	/* The destructor must not unmap these rings. */
	_exit(0);
}
