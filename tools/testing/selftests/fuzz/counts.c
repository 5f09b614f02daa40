// SPDX-License-Identifier: GPL-2.0
/* Counts how often each operation was tried and succeeded, in all processes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

#include "fuzz.h"

/* In the order of enum operation. */
static const char *const names[OPERATIONS] = {
	"open", "close", "read", "pread", "readv", "write", "pwrite", "writev", "lseek", "get",
	"put", "flush", "ioctl", "compat_ioctl", "splice_out", "splice_in", "tee", "vmsplice",
	"sendfile", "copy_file_range", "poll", "epoll_ctl", "epoll_wait", "aio_poll", "aio_read",
	"mmap", "fcntl", "dup", "reopen", "stat", "truncate", "misc", "inotify", "fork", "kill",
	"start"
};

static struct count { u64 tried, succeeded; } *counts;

void set_up_counts(void)
{
	counts = mmap(NULL, OPERATIONS * sizeof(*counts), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

long counted(enum operation operation, long result)
{
	__atomic_fetch_add(&counts[operation].tried, 1, __ATOMIC_RELAXED);
	if (result >= 0)
		__atomic_fetch_add(&counts[operation].succeeded, 1, __ATOMIC_RELAXED);
	return result;
}

int got_somewhere(void)
{
	static const enum operation wanted[] = {
		OPEN, READ, WRITE, IOCTL_GET, IOCTL_PUT, IOCTL_FLUSH, SPLICE_OUT, POLL
	};
	size_t i;

	for (i = 0; i < lengthof(wanted); i++)
		if (stream_count && !__atomic_load_n(&counts[wanted[i]].succeeded, __ATOMIC_RELAXED))
			return 0;
	return 1;
}

void print_counts(void)
{
	int i;

	for (i = 0; i < OPERATIONS; i++)
		printf("%s=%llu/%llu%c", names[i], (unsigned long long)counts[i].succeeded,
		       (unsigned long long)counts[i].tried, i % 12 == 11 ? '\n' : ' ');
}
