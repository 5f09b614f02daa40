// SPDX-License-Identifier: GPL-2.0
/*
 * Usage: fuzz SEED SECONDS PROCESSES [PATH]...
 *
 * Does random things with the files below the paths (default: rtrace's), from some processes at
 * once, each with files of its own and now and then one that it shares with a fork: opens,
 * reads, writes (what the file may understand, or anything), ioctls, seeks, splices, polls,
 * maps, duplicates, and closes them, with good and bad arguments; some processes are killed by
 * SIGKILL wherever they are. It touches no other files than these, pipes, and one temporary
 * file. Decisions follow from the seed.
 *
 * Goes on for up to a minute until something was read, written, got, put and spliced. Prints
 * how often each operation succeeded and was tried. Exit status 1 if a process cannot be
 * killed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record.h"

#define GET_PACKET 0x8020f701u
#define PUT_PACKET 0x0000f702u
#define FLUSH 0x0000f703u

#define MAX_PROCESSES 32
#define FDS 24
#define BUFFER (128 << 10)
#define PAGE 4096
#define lengthof(array) (sizeof(array) / sizeof((array)[0]))

static u64 randomness;

static u32 below(u32 n)
{
	randomness = stress_mix(randomness);
	return n ? (randomness >> 32) % n : 0;
}

static int one_in(u32 n)
{
	return below(n) == 0;
}

/* Powers of two and their neighbours, small numbers, anything. */
static u64 any_number(void)
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

/* The files. */

static char **paths;
static size_t path_count, stream_count, control_count;
static char **events;
static size_t event_count;

static int is_stream(const char *path)
{
	const char *name = strrchr(path, '/') + 1;

	return !strncmp(name, "cpu", 3) && name[3] >= '0' && name[3] <= '9';
}

static int is_control(const char *path)
{
	return !is_stream(path) && !strstr(path, "/events/");
}

static int add_path(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)stat;
	(void)ftw;
	if (type != FTW_F && type != FTW_D)
		return 0;
	paths = realloc(paths, (path_count + 1) * sizeof(*paths));
	paths[path_count++] = strdup(path);
	return 0;
}

/* Streams, then controls, then the rest. */
static int by_kind(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	int kinds = (is_control(x) + 2 * is_stream(x)) - (is_control(y) + 2 * is_stream(y));

	return kinds ? -kinds : strcmp(x, y);
}

static void find_paths(int argc, char **argv)
{
	static const char *const ours[] = {
		"/sys/kernel/debug/rtrace", "/sys/module/rtrace/parameters"
	};
	size_t i;
	int arg;

	for (arg = 4; arg < argc; arg++)
		nftw(argv[arg], add_path, 16, FTW_PHYS);
	for (i = 0; argc <= 4 && i < lengthof(ours); i++)
		nftw(ours[i], add_path, 16, FTW_PHYS);
	if (!path_count) {
		fprintf(stderr, "fuzz: no files\n");
		exit(2);
	}
	qsort(paths, path_count, sizeof(*paths), by_kind);
	for (i = 0; i < path_count; i++) {
		stream_count += is_stream(paths[i]);
		control_count += is_control(paths[i]);
	}
}

static void find_events(void)
{
	FILE *file = fopen("/sys/kernel/debug/rtrace/available_events", "r");
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		events = realloc(events, (event_count + 1) * sizeof(*events));
		events[event_count++] = strdup(line);
	}
	if (file)
		fclose(file);
	if (!event_count) {
		events = realloc(events, sizeof(*events));
		events[event_count++] = strdup("sched:sched_switch");
	}
}

/* Half of the processes do little but read: whoever starts and stops holds up the others. */
static int likes_streams;

static const char *any_path(void)
{
	u32 n = below(likes_streams ? 55 : 100);

	if (n < 45 && stream_count)
		return paths[below(stream_count)];
	if (n < 85 && control_count)
		return paths[stream_count + below(control_count)];
	return paths[below(path_count)];
}

/* What this process has. */

struct open_file {
	int fd;
	/* NULL for what is no file of ours. */
	const char *path;
};

static struct open_file files[FDS];
static int directory_of_mine;
static aio_context_t aio;

/* How often operations were tried and succeeded, for all processes. */
enum operation {
	OPEN, CLOSE, READ, PREAD, READV, WRITE, PWRITE, WRITEV, LSEEK, IOCTL_GET, IOCTL_PUT,
	IOCTL_FLUSH, IOCTL_ANY, IOCTL_COMPAT, SPLICE_OUT, SPLICE_IN, TEE, VMSPLICE, SENDFILE,
	COPY_FILE_RANGE, POLL, EPOLL_CTL, EPOLL_WAIT, AIO_POLL, AIO_READ, MMAP, FCNTL, DUP, REOPEN,
	STAT, TRUNCATE, MISC, INOTIFY, FORK, KILL, STARTS, OPERATIONS
};

static const char *const names[OPERATIONS] = {
	"open", "close", "read", "pread", "readv", "write", "pwrite", "writev", "lseek", "get",
	"put", "flush", "ioctl", "compat_ioctl", "splice_out", "splice_in", "tee", "vmsplice",
	"sendfile", "copy_file_range", "poll", "epoll_ctl", "epoll_wait", "aio_poll", "aio_read",
	"mmap", "fcntl", "dup", "reopen", "stat", "truncate", "misc", "inotify", "fork", "kill",
	"start"
};

static struct count { u64 tried, succeeded; } *counts;

static long counted(enum operation operation, long result)
{
	__atomic_fetch_add(&counts[operation].tried, 1, __ATOMIC_RELAXED);
	if (result >= 0)
		__atomic_fetch_add(&counts[operation].succeeded, 1, __ATOMIC_RELAXED);
	return result;
}

/* A page that can be read only, and one that cannot, behind a good one. */
static u8 *pages;
static u8 *buffer;
/* Below 4 GiB, for the calls of 32-bit programs. */
static u8 *low;

static void *any_pointer(void)
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

static size_t any_size(void)
{
	switch (below(8)) {
	case 0: return 0;
	case 1: return 1 + below(16);
	case 2: return any_number();
	case 3: return 84 + below(64);
	default: return below(BUFFER - 64);
	}
}

static struct open_file *any_file(void)
{
	return &files[below(FDS)];
}

static struct open_file *any_stream(void)
{
	u32 tries;

	for (tries = 0; tries < 8; tries++) {
		struct open_file *file = any_file();

		if (file->path && is_stream(file->path))
			return file;
	}
	return any_file();
}

static void close_file(struct open_file *file)
{
	if (file->fd >= 0)
		counted(CLOSE, close(file->fd));
	file->fd = -1;
	file->path = NULL;
}

static void keep(int fd, const char *path)
{
	struct open_file *file = any_file();

	if (fd < 0)
		return;
	close_file(file);
	file->fd = fd;
	file->path = path;
}

static void do_open(void)
{
	static const int more[] = {
		O_TRUNC, O_NONBLOCK, O_APPEND, O_DIRECT, O_ASYNC, O_CLOEXEC, O_DSYNC, O_NOATIME,
		O_NOFOLLOW, O_PATH, O_DIRECTORY, O_CREAT, O_CREAT | O_EXCL
	};
	const char *path = any_path();
	int flags = one_in(3) ? (int)below(4) : is_stream(path) ? O_RDONLY : (int)below(3);

	/* Blocking readers are for a few; the others shall get on. */
	if (is_stream(path) && !one_in(4))
		flags |= O_NONBLOCK;
	while (one_in(3))
		flags |= more[below(lengthof(more))];
	keep(counted(OPEN, open(path, flags, 0600)), path);
}

static void do_pipe(void)
{
	int fds[2];

	if (one_in(3)) {
		keep(epoll_create1(0), NULL);
	} else if (one_in(4)) {
		char path[64];

		snprintf(path, sizeof(path), "file.%u", below(4));
		keep(openat(directory_of_mine, path, O_RDWR | O_CREAT | O_TRUNC, 0600), NULL);
	} else if (!pipe2(fds, one_in(2) ? O_NONBLOCK : 0)) {
		keep(fds[0], NULL);
		keep(fds[1], NULL);
	}
}

static void do_read(void)
{
	struct open_file *file = one_in(2) ? any_stream() : any_file();
	struct iovec vec[3];
	size_t i;

	switch (below(4)) {
	case 0:
		counted(PREAD, pread(file->fd, any_pointer(), any_size(), any_number()));
		break;
	case 1:
		for (i = 0; i < lengthof(vec); i++) {
			vec[i].iov_base = any_pointer();
			vec[i].iov_len = any_size();
		}
		counted(READV, one_in(2) ? readv(file->fd, vec, 1 + below(3)) :
			preadv2(file->fd, vec, 1 + below(3), any_number(), below(64)));
		break;
	default:
		counted(READ, read(file->fd, any_pointer(), any_size()));
	}
}

/* Texts that a file may understand, and their like. */

static char text[BUFFER];
static size_t text_len;

static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_len += vsnprintf(text + text_len, sizeof(text) - text_len, format, args);
	va_end(args);
	if (text_len >= sizeof(text))
		text_len = sizeof(text) - 1;
}

static void say_pattern(void)
{
	static const char *const words[] = {
		"sched", "sched:*", "irq", "?", "[", "sched:sched_[sw]*", ":", "::", "!", "!!sched",
		"stress:*", "*mknod*", "sched:", ":sched_switch", "\\", "[!", "nmi", "timer:*",
		"a:b:c", "\t", "stress:stress_record"
	};
	/* These take long. */
	static const char *const wide[] = { "*", "syscalls:*", "syscalls", "*:*", "[a-z]*", "*read*" };
	char *at;

	say("%s", one_in(3) ? "!" : "");
	if (one_in(16)) {
		say("%s", wide[below(lengthof(wide))]);
		return;
	}
	if (one_in(2)) {
		say("%s", words[below(lengthof(words))]);
		return;
	}
	say("%s", events[below(event_count)]);
	at = text + text_len - 1 - below(8);
	if (one_in(3) && at > text)
		*at = "*?[]!:x"[below(7)];
}

static void say_number(void)
{
	static const char *const units[] = { "", "", "K", "M", "k", "G", "T", " K", "KK" };

	switch (below(4)) {
	case 0:
		say("%llu%s", (unsigned long long)any_number(), units[below(lengthof(units))]);
		break;
	case 1:
		say("%s%u", one_in(4) ? "-" : one_in(4) ? "0x" : "", below(100000));
		break;
	default:
		/* Allowed, and small enough for tracing to go on. */
		say("%u", 1u << below(18));
	}
}

static void say_something(const char *path)
{
	static const char *const other[] = {
		"0", "1", "X", "2", "01", "yes", "discard", "overwrite", "tsc", "mono", "", " ", "\n",
		"1\n0", "\xff\xfe", "\xf0\x9f\x98\x80", "%s%n%p", "discard overwrite"
	};
	const char *name = path ? strrchr(path, '/') + 1 : "";
	u32 words;

	text_len = 0;
	if (one_in(20)) {
		for (text_len = 0; text_len < any_size() % 4000; text_len++)
			text[text_len] = below(256);
	} else if (one_in(100)) {
		while (text_len < 60000 + below(10000))
			say("%s ", events[below(event_count)]);
	} else if (one_in(10)) {
		say("%s", other[below(lengthof(other))]);
	} else if (!strcmp(name, "set_event")) {
		for (words = 1 + below(5); words; words--) {
			say_pattern();
			say("%c", " \t\n  "[below(5)]);
		}
	} else if (!strcmp(name, "enable")) {
		say("%u", below(2));
	} else if (!strcmp(name, "mode")) {
		say(one_in(2) ? "discard" : "overwrite");
	} else if (!strcmp(name, "clock")) {
		say(one_in(2) ? "mono" : "tsc");
	} else {
		say_number();
	}
	say(one_in(2) ? "\n" : "");
}

static void do_write(void)
{
	struct open_file *file = any_file();
	struct iovec vec[2];
	void *data = text;
	size_t size;
	long result;

	say_something(file->path);
	size = text_len;
	if (one_in(16))
		data = any_pointer();
	if (one_in(16))
		size = any_size();
	if (data == text && size > sizeof(text))
		size = sizeof(text);
	switch (below(8)) {
	case 0:
		counted(PWRITE, pwrite(file->fd, data, size, any_number()));
		break;
	case 1:
		vec[0].iov_base = data;
		vec[0].iov_len = size / 2;
		vec[1].iov_base = (u8 *)data + size / 2;
		vec[1].iov_len = size - size / 2;
		counted(WRITEV, writev(file->fd, vec, 2));
		break;
	default:
		result = counted(WRITE, write(file->fd, data, size));
		if (data == text && text[0] == '1' && file->path &&
		    strstr(file->path, "rtrace/enable"))
			counted(STARTS, result);
	}
}

static void do_lseek(void)
{
	struct open_file *file = any_file();

	counted(LSEEK, lseek(file->fd, one_in(2) ? 0 : any_number(), one_in(2) ? 0 : below(6)));
}

static u32 any_request(void)
{
	static const u32 known[] = {
		GET_PACKET, PUT_PACKET, FLUSH, FIONREAD, FIONBIO, FIOASYNC, FIOCLEX, 0x5401, 0x5413,
		0, ~0u, 0xf700, 0xf704, 0x8020f702, 0xc020f701, 0x4020f701, 0x8010f701
	};
	u32 request = known[below(lengthof(known))];

	while (one_in(3))
		request ^= 1u << below(32);
	return request;
}

/* As a 32-bit program calls. */
static long compat_ioctl(int fd, u32 request, u32 argument)
{
#ifdef __x86_64__
	long result;

	asm volatile("int $0x80" : "=a" (result)
		     : "a" (54L), "b" ((long)fd), "c" ((long)request), "d" ((long)argument)
		     : "memory", "r8", "r9", "r10", "r11");
	return (int)result;
#else
	return ioctl(fd, request, (unsigned long)argument);
#endif
}

static void do_ioctl(void)
{
	struct open_file *file = one_in(8) ? any_file() : any_stream();
	u32 packet = (unsigned long)low + below(64);

	switch (below(10)) {
	case 0:
		counted(IOCTL_ANY, ioctl(file->fd, any_request(), any_pointer()));
		break;
	case 1:
		counted(IOCTL_COMPAT, compat_ioctl(file->fd, any_request(),
						   one_in(4) ? below(~0u) : packet));
		break;
	case 2:
		counted(IOCTL_FLUSH, ioctl(file->fd, FLUSH));
		break;
	case 3: case 4: case 5:
		counted(IOCTL_PUT, ioctl(file->fd, PUT_PACKET));
		break;
	default:
		counted(IOCTL_GET, ioctl(file->fd, GET_PACKET,
					 one_in(8) ? any_pointer() : buffer));
	}
}

static void do_splice(void)
{
	struct open_file *from = any_file(), *to = any_file();
	struct iovec vec = { any_pointer(), any_size() % BUFFER };
	loff_t offset = any_number();
	/* The kernel may wait for room as long as it likes; alarms end that. */
	u32 flags = one_in(4) ? below(16) : SPLICE_F_NONBLOCK;

	switch (below(10)) {
	case 0:
		counted(TEE, tee(from->fd, to->fd, any_size(), flags));
		break;
	case 1:
		counted(VMSPLICE, vmsplice(to->fd, &vec, 1, flags));
		break;
	case 2:
		counted(SENDFILE, sendfile(to->fd, one_in(2) ? any_stream()->fd : from->fd, NULL,
					   any_size() % BUFFER));
		break;
	case 3:
		counted(COPY_FILE_RANGE, copy_file_range(from->fd, one_in(2) ? &offset : NULL,
							 to->fd, NULL, any_size() % BUFFER, 0));
		break;
	case 4: case 5:
		counted(SPLICE_IN, splice(from->fd, NULL, to->fd, one_in(4) ? &offset : NULL,
					  any_size(), flags));
		break;
	default:
		counted(SPLICE_OUT, splice(any_stream()->fd, one_in(8) ? &offset : NULL, to->fd,
					   NULL, any_size(), flags));
	}
}

/* The held packet's pages into a pipe, and out of it sooner or later. */
static void splice_out(int fd)
{
	static int pipes[2];

	if (!pipes[1] && pipe2(pipes, O_NONBLOCK))
		return;
	counted(SPLICE_OUT, splice(fd, NULL, pipes[1], NULL, any_size(), SPLICE_F_NONBLOCK));
	if (one_in(2))
		read(pipes[0], buffer, below(BUFFER));
	if (one_in(16)) {
		close(pipes[0]);
		close(pipes[1]);
		pipes[0] = pipes[1] = 0;
	}
}

/* What a reader does, in no good order. */
static void do_packets(void)
{
	struct open_file *file = any_stream();
	struct pollfd poller = { .fd = file->fd, .events = POLLIN | POLLPRI };
	u32 n;

	if (!file->path || !is_stream(file->path)) {
		const char *path = paths[below(stream_count)];

		if (stream_count)
			keep(counted(OPEN, open(path, O_RDONLY | O_NONBLOCK)), path);
		return;
	}
	for (n = below(16); n; n--) {
		switch (below(10)) {
		case 0: case 1: case 2: counted(IOCTL_GET, ioctl(file->fd, GET_PACKET, buffer)); break;
		case 3: case 4: counted(IOCTL_PUT, ioctl(file->fd, PUT_PACKET)); break;
		case 5: case 6: splice_out(file->fd); break;
		case 7: counted(READ, read(file->fd, buffer, below(10000))); break;
		case 8: counted(IOCTL_FLUSH, ioctl(file->fd, FLUSH)); break;
		default: counted(POLL, poll(&poller, 1, 1 + below(5)));
		}
	}
}

static void do_poll(void)
{
	struct epoll_event event = { .events = below(1 << 16) | (one_in(2) ? EPOLLET : 0) };
	struct epoll_event got[4];
	struct pollfd fds[FDS];
	u32 i;

	switch (below(6)) {
	case 0: case 1:
		for (i = 0; i < FDS; i++) {
			fds[i].fd = files[i].fd;
			fds[i].events = below(1 << 12);
		}
		counted(POLL, poll(fds, FDS, below(10)));
		break;
	case 2:
		counted(EPOLL_WAIT, epoll_wait(any_file()->fd, got, lengthof(got), below(10)));
		break;
	default:
		counted(EPOLL_CTL, epoll_ctl(any_file()->fd, 1 + below(3), any_file()->fd, &event));
	}
}

static void do_aio(void)
{
	struct iocb block = {}, *blocks = &block;
	struct timespec soon = { 0, 1000000 };
	struct io_event got[4];

	if (!aio && syscall(SYS_io_setup, 16, &aio))
		return;
	block.aio_fildes = any_stream()->fd;
	block.aio_lio_opcode = one_in(4) ? IOCB_CMD_PREAD : IOCB_CMD_POLL;
	block.aio_buf = block.aio_lio_opcode == IOCB_CMD_POLL ? POLLIN | POLLPRI : (u64)buffer;
	block.aio_nbytes = block.aio_lio_opcode == IOCB_CMD_POLL ? 0 : 1000;
	counted(block.aio_lio_opcode == IOCB_CMD_POLL ? AIO_POLL : AIO_READ,
		syscall(SYS_io_submit, aio, 1, &blocks) == 1 ? 0 : -1);
	if (one_in(4))
		syscall(SYS_io_cancel, aio, &block, got);
	if (one_in(4))
		syscall(SYS_io_getevents, aio, 0, lengthof(got), got, &soon);
	if (one_in(32)) {
		syscall(SYS_io_destroy, aio);
		aio = 0;
	}
}

static void do_mmap(void)
{
	size_t size = (1 + below(16)) * PAGE;
	u8 *at = mmap(NULL, size, below(8), one_in(2) ? MAP_SHARED : MAP_PRIVATE, any_file()->fd,
		      one_in(2) ? 0 : any_number() & ~(u64)(PAGE - 1));

	counted(MMAP, at == MAP_FAILED ? -1 : 0);
	if (at != MAP_FAILED)
		munmap(at, size);
}

static void do_fcntl(void)
{
	static const int commands[] = {
		F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_GETOWN, F_GETLEASE,
		F_SETLEASE, F_SETPIPE_SZ, F_GETPIPE_SZ, F_ADD_SEALS, F_GET_SEALS, F_GET_RW_HINT,
		F_SET_RW_HINT, F_OFD_SETLK, F_GETSIG
	};
	struct open_file *file = any_file();
	int command = commands[below(lengthof(commands))];
	unsigned long argument = one_in(4) ? any_number() : (unsigned long)buffer;

	memset(buffer, 0, sizeof(struct flock));
	if (command == F_SETFL)
		argument = (one_in(2) ? O_NONBLOCK : 0) | (one_in(4) ? O_APPEND : 0) |
			   (one_in(8) ? O_ASYNC | O_DIRECT | O_NOATIME : 0);
	if (command == F_SETPIPE_SZ)
		argument = PAGE << below(6);
	counted(FCNTL, fcntl(file->fd, command, argument));
}

static void do_dup(void)
{
	struct open_file *file = any_file();
	char path[64];

	if (one_in(2)) {
		keep(counted(DUP, dup(file->fd)), file->path);
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	/* A pipe's other end would not come for ever. */
	keep(counted(REOPEN, open(path, below(3) | O_NONBLOCK)), file->path);
}

static void do_misc(void)
{
	struct open_file *file = any_file();
	struct stat stat;
	int fd;

	switch (below(12)) {
	case 0: counted(STAT, fstat(file->fd, &stat)); break;
	case 1: counted(MISC, fsync(file->fd)); break;
	case 2: counted(MISC, posix_fadvise(file->fd, any_number(), any_number(), below(6)) ? -1 : 0); break;
	case 3: counted(MISC, readahead(file->fd, any_number(), any_size())); break;
	case 4: counted(MISC, fallocate(file->fd, below(4), 0, any_size() % BUFFER)); break;
	case 5: counted(MISC, flock(file->fd, below(16) | LOCK_NB)); break;
	case 6: counted(TRUNCATE, ftruncate(file->fd, below(8192))); break;
	case 7: counted(MISC, syscall(SYS_getdents64, file->fd, buffer, BUFFER)); break;
	case 8: counted(STAT, lstat(any_path(), &stat)); break;
	case 9: counted(MISC, access(any_path(), below(8))); break;
	case 10: counted(MISC, sync_file_range(file->fd, 0, PAGE, below(8))); break;
	default:
		fd = inotify_init1(IN_NONBLOCK);
		counted(INOTIFY, inotify_add_watch(fd, any_path(), IN_ALL_EVENTS));
		keep(fd, NULL);
	}
}

static void do_something(void);

/* Alarms end whatever waits. A fork has none by itself. */
static void set_alarms(void)
{
	struct itimerval often = { { 0, 20000 }, { 0, 20000 } };

	setitimer(ITIMER_REAL, &often, NULL);
}

/* A process that shares our files for a while, and may die of a signal then. */
static void do_fork(void)
{
	u32 seed = below(~0u);
	pid_t pid = counted(FORK, fork());
	u32 n;

	if (pid < 0)
		return;
	if (pid == 0) {
		set_alarms();
		randomness = seed;
		aio = 0;
		for (n = below(40); n; n--)
			do_something();
		_exit(0);
	}
	if (one_in(2)) {
		usleep(below(5000));
		counted(KILL, kill(pid, SIGKILL));
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int forked_below;

static void do_something(void)
{
	u32 n = below(100);

	if (n < 12) do_open();
	else if (n < 18) do_packets();
	else if (n < 22) close_file(any_file());
	else if (n < 26) do_pipe();
	else if (n < 38) do_read();
	else if (n < 50) do_write();
	else if (n < 54) do_lseek();
	else if (n < 70) do_ioctl();
	else if (n < 82) do_splice();
	else if (n < 87) do_poll();
	else if (n < 90) do_aio();
	else if (n < 91) do_mmap();
	else if (n < 94) do_fcntl();
	else if (n < 96) do_dup();
	else if (n < 99) do_misc();
	else if (!forked_below) {
		forked_below = 1;
		do_fork();
		forked_below = 0;
	}
}

static void nothing(int signal)
{
	(void)signal;
}

static void set_up(void)
{
	struct sigaction action = { .sa_handler = nothing };
	int n;

	sigaction(SIGALRM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN);
	signal(SIGBUS, SIG_DFL);
	buffer = malloc(BUFFER + 4096);
	pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(pages + PAGE, PAGE, PROT_READ);
	mprotect(pages + 2 * PAGE, PAGE, PROT_NONE);
	low = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	for (n = 0; n < FDS; n++)
		files[n].fd = -1;
	directory_of_mine = open(".", O_RDONLY | O_DIRECTORY);
	set_alarms();
}

static pid_t start_process(u64 seed)
{
	pid_t pid = fork();

	if (pid < 0) {
		perror("fuzz: fork");
		exit(2);
	}
	if (pid)
		return pid;
	/* Of a group of its own, with what it forks. */
	setpgid(0, 0);
	randomness = stress_mix(seed);
	likes_streams = seed & 1;
	set_up();
	for (;;)
		do_something();
}

/* Kills a process and its forks; whether they die of it. */
static int kill_process(pid_t pid)
{
	char path[64], line[256];
	int waited, status;
	FILE *file;

	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	for (waited = 0; waited < 3000; waited++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return 1;
		usleep(10000);
	}
	printf("process %d does not die:\n", pid);
	snprintf(path, sizeof(path), "/proc/%d/stack", pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		printf("  %s", line);
	return 0;
}

/* Whether what a reader does has succeeded at least once. */
static int got_somewhere(void)
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

int main(int argc, char **argv)
{
	pid_t pids[MAX_PROCESSES];
	int processes = argc > 3 ? atoi(argv[3]) : 0;
	u64 next_seed;
	double seconds, passed;
	struct timespec now, begin;
	int i, bad = 0;

	if (processes < 1 || processes > MAX_PROCESSES) {
		fprintf(stderr, "usage: fuzz SEED SECONDS PROCESSES [PATH]...\n");
		return 2;
	}
	next_seed = strtoull(argv[1], NULL, 0) << 16;
	seconds = atof(argv[2]);
	find_paths(argc, argv);
	find_events();
	counts = mmap(NULL, OPERATIONS * sizeof(*counts), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	randomness = stress_mix(next_seed);
	for (i = 0; i < processes; i++)
		pids[i] = start_process(next_seed++);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		usleep(below(200000));
		i = below(processes);
		if (!kill_process(pids[i]))
			return 1;
		counted(KILL, 0);
		pids[i] = start_process(next_seed++);
		clock_gettime(CLOCK_MONOTONIC, &now);
		passed = now.tv_sec - begin.tv_sec + (now.tv_nsec - begin.tv_nsec) / 1e9;
	} while (passed < seconds || (passed < 60 && !got_somewhere()));
	for (i = 0; i < processes; i++)
		bad |= !kill_process(pids[i]);
	for (i = 0; i < OPERATIONS; i++)
		printf("%s=%llu/%llu%c", names[i], (unsigned long long)counts[i].succeeded,
		       (unsigned long long)counts[i].tried, i % 12 == 11 ? '\n' : ' ');
	return bad;
}
