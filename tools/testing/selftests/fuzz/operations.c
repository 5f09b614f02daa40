// SPDX-License-Identifier: GPL-2.0
/* The remaining operations on files, also by forks that share them; and the choice of the next operation. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

static void do_lseek(void)
{
	struct open_file *file = any_file();

	counted(LSEEK, lseek(file->fd, one_in(2) ? 0 : any_number(), one_in(2) ? 0 : below(6)));
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

static aio_context_t aio;

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
	/* The last mapping stays, whatever happens to its file. */
	static u8 *mapped = MAP_FAILED;
	static size_t size;

	if (mapped != MAP_FAILED)
		munmap(mapped, size);
	size = (1 + below(16)) * PAGE;
	mapped = mmap(NULL, size, below(8), one_in(2) ? MAP_SHARED : MAP_PRIVATE,
		      one_in(2) ? any_stream()->fd : any_file()->fd,
		      one_in(2) ? 0 : any_number() & ~(u64)(PAGE - 1));
	counted(MMAP, mapped == MAP_FAILED ? -1 : 0);
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

/* Forks a process that shares our files for a while, and may die of a signal. */
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

void do_something(void)
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
