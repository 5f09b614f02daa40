// SPDX-License-Identifier: GPL-2.0
/*
 * Usage: reader DIR SEED KILL_MS CPU...
 *
 * Reads the streams of these CPUs to their end, each in a process of its own, by GET_PACKET,
 * splice or read, and PUT_PACKET. Sometimes it flushes, takes all packets at once, pauses, or
 * closes with the packet held. If KILL_MS is not 0, kills a process by SIGKILL about that often, at any
 * point, and starts another in its place.
 *
 * The N-th process of a CPU writes DIR/cpuCPU.N: for each packet a struct frame, its
 * bytes, and then one of
 *	P	put
 *	U	closed without PUT
 * A frame without this letter was held when the process was killed. Prints a line for each kill.
 *
 * Environment: RTRACE_STREAMS, folder of the streams; READER_PAUSE_US, the longest pause.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record.h"
#include "frame.h"

#define GET_PACKET 0x8020f701
#define PUT_PACKET 0x0000f702
#define FLUSH 0x0000f703
#define TAKE_ALL 0x8008f707

#define MAX_CPUS 512

static const char *streams = "/sys/kernel/debug/rtrace/sessions/default/channels/channel0";
static unsigned int pause_us = 2000;
static u64 randomness;

static u32 random_below(u32 n)
{
	randomness = stress_mix(randomness);
	return (randomness >> 32) % n;
}

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "reader: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, ": %m\n");
	exit(1);
}

/*
 * Returns -1 if the stream has been read to its end. That is possible (@may_be_read) only for a process that replaces
 * a killed one: that one may have seen the end, and then the buffers are gone.
 */
static int open_stream(int cpu, int may_be_read)
{
	char path[4096];
	int fd, tries;

	snprintf(path, sizeof(path), "%s/cpu%d", streams, cpu);
	for (tries = 0; tries < 200; tries++) {
		fd = open(path, O_RDONLY | O_NONBLOCK);
		if (fd >= 0)
			return fd;
		if (errno == ENODATA && may_be_read)
			return -1;
		if (errno != EBUSY)
			break;
		/* The killed process is about to close it. */
		usleep(10000);
	}
	die("%s", path);
	return -1;
}

static void write_all(int fd, const void *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0)
			die("writing");
		data = (const char *)data + n;
		size -= n;
	}
}

/* Reads exactly SIZE bytes from fd, in pieces. */
static void read_all(int fd, char *to, size_t size)
{
	while (size) {
		size_t piece = random_below(4) ? size : 1 + random_below(size);
		ssize_t n = read(fd, to, piece);

		if (n <= 0)
			die("reading %zu of a held packet gave %zd", piece, n);
		to += n;
		size -= n;
	}
}

/* Moves the held packet's bytes through a pipe: the pages themselves. */
static void splice_all(int fd, char *to, size_t size)
{
	static int pipes[2];

	if (!pipes[1] && pipe(pipes))
		die("pipe");
	while (size) {
		ssize_t n = splice(fd, NULL, pipes[1], NULL, size, SPLICE_F_NONBLOCK);

		if (n <= 0)
			die("splicing %zu of a held packet gave %zd", size, n);
		read_all(pipes[0], to, n);
		to += n;
		size -= n;
	}
}

static void dawdle(u32 one_in)
{
	if (pause_us && !random_below(one_in))
		usleep(random_below(pause_us));
}

/* Takes one packet, if there is one, and writes it to OUT. Returns whether there may be another. */
static int take(int *fd, int cpu, int out)
{
	struct frame frame = { .magic = FRAME_MAGIC };
	char *bytes;

	if (ioctl(*fd, GET_PACKET, &frame.packet)) {
		struct pollfd poller = { .fd = *fd, .events = POLLIN };

		if (errno == ENODATA)
			return 0;
		if (errno != EAGAIN)
			die("GET_PACKET");
		poll(&poller, 1, 20);
		return 1;
	}
	bytes = malloc(sizeof(frame) + frame.packet.size);
	if (!bytes)
		die("malloc");
	memcpy(bytes, &frame, sizeof(frame));
	dawdle(8);
	if (random_below(2))
		splice_all(*fd, bytes + sizeof(frame), frame.packet.size);
	else
		read_all(*fd, bytes + sizeof(frame), frame.packet.size);
	write_all(out, bytes, sizeof(frame) + frame.packet.size);
	free(bytes);
	dawdle(8);
	if (!random_below(16)) {
		close(*fd);
		write_all(out, "U", 1);
		*fd = open_stream(cpu, 0);
		return 1;
	}
	if (ioctl(*fd, PUT_PACKET))
		die("PUT_PACKET");
	write_all(out, "P", 1);
	return 1;
}

/* Takes all packets at once, if possible. */
static void take_all(int fd)
{
	u64 packets;

	if (ioctl(fd, TAKE_ALL, &packets) && errno != EAGAIN && errno != EBUSY &&
	    errno != EOPNOTSUPP && errno != ENOMEM)
		die("TAKE_ALL");
}

static void read_stream(int cpu, int out, unsigned int number)
{
	int fd = open_stream(cpu, number > 1);

	if (fd < 0)
		exit(0);
	do {
		if (!random_below(4) && ioctl(fd, FLUSH))
			die("FLUSH");
		if (!random_below(8))
			take_all(fd);
	} while (take(&fd, cpu, out));
	exit(0);
}

struct child {
	int cpu;
	pid_t pid;
	unsigned int number;
};

static void start_child(struct child *child, const char *dir)
{
	u32 seed = random_below(~0u);
	char path[4096];
	int out;

	/* In the parent, because the child may be killed before it does anything. */
	snprintf(path, sizeof(path), "%s/cpu%d.%u", dir, child->cpu, child->number++);
	out = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (out < 0)
		die("%s", path);
	child->pid = fork();
	if (child->pid < 0)
		die("fork");
	if (child->pid == 0) {
		randomness = seed;
		read_stream(child->cpu, out, child->number);
	}
	close(out);
}

/* Waits for the child, blocking or not; returns whether it still runs. */
static int still_reads(struct child *child, int flags)
{
	int status;

	if (!child->pid || waitpid(child->pid, &status, flags) != child->pid)
		return child->pid != 0;
	child->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return 1;
	fprintf(stderr, "reader: the one of CPU %d ended with status %#x\n", child->cpu, status);
	exit(1);
}

/* Kills one of them at a time, at any point of its work, until all have read to the end. */
static void kill_at_random(struct child *children, int count, const char *dir, int kill_ms)
{
	int left, i;

	do {
		usleep(random_below(2000 * kill_ms));
		for (left = i = 0; i < count; i++)
			left += still_reads(&children[i], WNOHANG);
		i = random_below(count);
		if (!children[i].pid)
			continue;
		kill(children[i].pid, SIGKILL);
		if (still_reads(&children[i], 0)) {
			dprintf(1, "killed the %u. of CPU %d\n", children[i].number, children[i].cpu);
			start_child(&children[i], dir);
		}
	} while (left);
}

int main(int argc, char **argv)
{
	struct child children[MAX_CPUS] = {};
	int count = argc - 4;
	int i;

	if (count < 1 || count > MAX_CPUS) {
		fprintf(stderr, "usage: reader DIR SEED KILL_MS CPU...\n");
		return 2;
	}
	randomness = strtoull(argv[2], NULL, 0);
	if (getenv("RTRACE_STREAMS"))
		streams = getenv("RTRACE_STREAMS");
	if (getenv("READER_PAUSE_US"))
		pause_us = atoi(getenv("READER_PAUSE_US"));
	for (i = 0; i < count; i++) {
		children[i].cpu = atoi(argv[4 + i]);
		start_child(&children[i], argv[1]);
	}
	if (atoi(argv[3]))
		kill_at_random(children, count, argv[1], atoi(argv[3]));
	for (i = 0; i < count; i++)
		still_reads(&children[i], 0);
	return 0;
}
