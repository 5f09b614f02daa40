// SPDX-License-Identifier: GPL-2.0
/*
 * Usage: uring FILE | uring across
 *
 * Makes known requests of io_uring by raw system calls, and prints a line for each operation, as the program sees it:
 *
 *   RING OPERATION requests results errors bytes
 *
 * RING is `own`, or `thread` for a ring whose requests a thread of the kernel takes (SQPOLL). Further results of a
 * request with several results are a line `further`. FILE is read and written; descriptor 0 of the ring's registered
 * files is the same file.
 *
 * `across` has a request in flight while a trace begins, and another one while it ends: it prints `ready`, and after
 * each line that it reads it ends the request before by writing into the pipe that the request reads, and submits the
 * next one.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRIES 32
/* An operation that no kernel has. */
#define INVALID 250

struct ring {
	int fd;
	unsigned flags;
	unsigned *sq_tail, *sq_mask, *sq_flags, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static struct {
	const char *name;
	unsigned requests, results, errors;
	unsigned long bytes;
} counts[256] = {
	[IORING_OP_NOP] = { .name = "NOP" },
	[IORING_OP_FSYNC] = { .name = "FSYNC" },
	[IORING_OP_READ] = { .name = "READ" },
	[IORING_OP_WRITE] = { .name = "WRITE" },
	[IORING_OP_POLL_ADD] = { .name = "POLL_ADD" },
	[IORING_OP_POLL_REMOVE] = { .name = "POLL_REMOVE" },
	[IORING_OP_TIMEOUT] = { .name = "TIMEOUT" },
	[IORING_OP_OPENAT] = { .name = "OPENAT" },
	[IORING_OP_CLOSE] = { .name = "CLOSE" },
	[INVALID] = { .name = "INVALID" },
};
static unsigned further;
static char buffer[4096];

static struct ring ring(unsigned flags)
{
	struct io_uring_params params = { .flags = flags, .sq_thread_idle = 1000 };
	struct ring ring = { .flags = flags };
	unsigned *array;
	char *rings;

	ring.fd = syscall(SYS_io_uring_setup, ENTRIES, &params);
	if (ring.fd < 0)
		err(77, "io_uring_setup");
	if (!(params.features & IORING_FEAT_SINGLE_MMAP))
		errx(77, "the kernel has no IORING_FEAT_SINGLE_MMAP");
	rings = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(*ring.cqes), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
	ring.sqes = mmap(NULL, params.sq_entries * sizeof(*ring.sqes), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES);
	if (rings == MAP_FAILED || ring.sqes == MAP_FAILED)
		err(1, "mmap");
	ring.sq_tail = (unsigned *)(rings + params.sq_off.tail);
	ring.sq_mask = (unsigned *)(rings + params.sq_off.ring_mask);
	ring.sq_flags = (unsigned *)(rings + params.sq_off.flags);
	ring.cq_head = (unsigned *)(rings + params.cq_off.head);
	ring.cq_tail = (unsigned *)(rings + params.cq_off.tail);
	ring.cq_mask = (unsigned *)(rings + params.cq_off.ring_mask);
	ring.cqes = (struct io_uring_cqe *)(rings + params.cq_off.cqes);
	array = (unsigned *)(rings + params.sq_off.array);
	for (unsigned place = 0; place < params.sq_entries; place++)
		array[place] = place;
	return ring;
}

/* Puts a request into the ring, without telling the kernel. */
static void put(struct ring *ring, struct io_uring_sqe request)
{
	unsigned tail = *ring->sq_tail;

	request.user_data = (uint64_t)request.opcode << 32 | counts[request.opcode].requests++;
	ring->sqes[tail & *ring->sq_mask] = request;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
}

/* Tells the kernel of `submitted` requests, and takes `results` results. Returns the last one. */
static int take(struct ring *ring, unsigned submitted, unsigned results)
{
	int last = 0;

	if (ring->flags & IORING_SETUP_SQPOLL) {
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (__atomic_load_n(ring->sq_flags, __ATOMIC_RELAXED) & IORING_SQ_NEED_WAKEUP &&
		    syscall(SYS_io_uring_enter, ring->fd, submitted, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0) < 0)
			err(1, "io_uring_enter");
		submitted = 0;
	}
	while (submitted || results) {
		unsigned head = *ring->cq_head;

		if (submitted || head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE)) {
			int taken = syscall(SYS_io_uring_enter, ring->fd, submitted, results ? 1 : 0,
					    results ? IORING_ENTER_GETEVENTS : 0, NULL, 0);
			if (taken < 0 && errno != EINTR)
				err(1, "io_uring_enter");
			submitted -= taken < 0 ? 0 : taken;
			continue;
		}
		struct io_uring_cqe result = ring->cqes[head & *ring->cq_mask];
		unsigned operation = result.user_data >> 32;

		__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
		results--;
		last = result.res;
		if (result.flags & IORING_CQE_F_MORE) {
			further++;
			continue;
		}
		counts[operation].results++;
		counts[operation].errors += result.res < 0;
		if (result.res > 0 && (operation == IORING_OP_READ || operation == IORING_OP_WRITE))
			counts[operation].bytes += result.res;
	}
	return last;
}

static int one(struct ring *ring, struct io_uring_sqe request)
{
	put(ring, request);
	return take(ring, 1, 1);
}

static struct io_uring_sqe io(unsigned operation, int fd, unsigned len, unsigned flags)
{
	return (struct io_uring_sqe){
		.opcode = operation, .fd = fd, .addr = (uintptr_t)buffer, .len = len, .flags = flags,
	};
}

/* Prints the counts so far, and begins anew. */
static void print(const char *ring)
{
	for (unsigned operation = 0; operation < 256; operation++) {
		if (counts[operation].requests)
			printf("%s %s %u %u %u %lu\n", ring, counts[operation].name, counts[operation].requests,
			       counts[operation].results, counts[operation].errors, counts[operation].bytes);
		counts[operation].requests = counts[operation].results = counts[operation].errors = 0;
		counts[operation].bytes = 0;
	}
	if (further)
		printf("%s further %u\n", ring, further);
	further = 0;
	fflush(stdout);
}

static void known(const char *path)
{
	struct ring own = ring(0), thread = ring(IORING_SETUP_SQPOLL);
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644), counter = eventfd(0, EFD_NONBLOCK), fd;
	struct __kernel_timespec soon = { .tv_nsec = 1000000 };
	uint64_t number = 1;

	if (file < 0 || counter < 0)
		err(1, "%s", path);
	for (int n = 0; n < 8; n++)
		one(&thread, io(IORING_OP_WRITE, file, 10, 0));
	print("thread");
	/* Several at once. */
	for (int n = 0; n < 10; n++)
		put(&own, io(IORING_OP_NOP, -1, 0, 0));
	take(&own, 10, 10);
	for (int n = 0; n < 20; n++)
		one(&own, io(IORING_OP_WRITE, file, 100 + n, 0));
	for (int n = 0; n < 15; n++)
		one(&own, io(IORING_OP_READ, file, 50, 0));
	/* By a worker thread. */
	for (int n = 0; n < 3; n++)
		one(&own, (struct io_uring_sqe){ .opcode = IORING_OP_FSYNC, .fd = file, .flags = IOSQE_ASYNC });
	/* No such descriptor: 5 errors. */
	for (int n = 0; n < 5; n++)
		one(&own, io(IORING_OP_READ, 999, 50, 0));
	/* Refused at once. */
	for (int n = 0; n < 2; n++)
		one(&own, io(INVALID, -1, 0, 0));
	/* The second one is cancelled, because the first one fails. */
	put(&own, io(IORING_OP_READ, 999, 50, IOSQE_IO_LINK));
	put(&own, io(IORING_OP_NOP, -1, 0, 0));
	take(&own, 2, 2);
	/* A registered file. */
	if (syscall(SYS_io_uring_register, own.fd, IORING_REGISTER_FILES, &file, 1) < 0)
		err(1, "io_uring_register");
	for (int n = 0; n < 7; n++)
		one(&own, io(IORING_OP_READ, 0, 20, IOSQE_FIXED_FILE));
	one(&own, (struct io_uring_sqe){
		.opcode = IORING_OP_TIMEOUT, .fd = -1, .addr = (uintptr_t)&soon, .len = 1,
	});
	/* No result, because the requests succeed. */
	for (int n = 0; n < 4; n++)
		put(&own, io(IORING_OP_NOP, -1, 0, IOSQE_CQE_SKIP_SUCCESS));
	take(&own, 4, 0);
	/* A descriptor that only requests open and close. After that, rtrace knows no descriptor of this process. */
	fd = one(&own, (struct io_uring_sqe){
		.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (uintptr_t)path, .open_flags = O_RDONLY,
	});
	one(&own, io(IORING_OP_READ, fd, 30, 0));
	one(&own, (struct io_uring_sqe){ .opcode = IORING_OP_CLOSE, .fd = fd });
	/* Three results, and a last one when the request is removed. */
	put(&own, (struct io_uring_sqe){
		.opcode = IORING_OP_POLL_ADD, .fd = counter, .poll32_events = POLLIN, .len = IORING_POLL_ADD_MULTI,
	});
	take(&own, 1, 0);
	for (int n = 0; n < 3; n++) {
		if (write(counter, &number, sizeof(number)) < 0)
			err(1, "write");
		take(&own, 0, 1);
		if (read(counter, &number, sizeof(number)) < 0)
			err(1, "read");
	}
	put(&own, (struct io_uring_sqe){
		.opcode = IORING_OP_POLL_REMOVE, .fd = -1, .addr = (uint64_t)IORING_OP_POLL_ADD << 32,
	});
	take(&own, 1, 2);
	print("own");
}

static void across(void)
{
	struct ring own = ring(0);
	int ends[2];

	if (pipe(ends) < 0)
		err(1, "pipe");
	for (int n = 0;; n++) {
		put(&own, io(IORING_OP_READ, ends[0], 1, 0));
		take(&own, 1, 0);
		printf("ready\n");
		fflush(stdout);
		if (getchar() == EOF)
			return;
		if (write(ends[1], "x", 1) < 0)
			err(1, "write");
		take(&own, 0, 1);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "usage: uring FILE | uring across");
	if (!strcmp(argv[1], "across"))
		across();
	else
		known(argv[1]);
	return 0;
}
