// SPDX-License-Identifier: GPL-2.0
/*
 * Usage: decoded
 *
 * Makes each system call of the table in Documentation/system-calls.md at least once, with arguments that
 * have names, flags and structures. It makes files in the current directory. rtrace and strace watch it at the same
 * time, so addresses and ids are those of one run. A call may fail. At the end a child dies of a signal.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define call(name, ...) syscall(SYS_##name, ##__VA_ARGS__)

static void handler(int signal)
{
	(void)signal;
}

/* Waits for a child, which ends in one of several ways. */
static void child(int way)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		switch (way) {
		case 0:
			_exit(0);
		case 1:
			_exit(3);
		case 2:
			raise(SIGTERM);
			break;
		case 3:
			*(volatile int *)0 = 1;
			break;
		case 4:
			kill(getpid(), SIGKILL);
			break;
		case 5:
			raise(SIGSTOP);
			_exit(0);
		}
		_exit(9);
	}
	if (way == 5) {
		call(wait4, pid, &status, WUNTRACED, NULL);
		kill(pid, SIGCONT);
		call(wait4, pid, &status, WCONTINUED, NULL);
	}
	call(wait4, pid, &status, 0, NULL);
}

static void files(void)
{
	char buffer[4096] = "some bytes";
	struct iovec vector[2] = { { "one", 3 }, { "two\n", 4 } };
	struct statx statx;
	struct statfs statfs;
	struct stat stat;
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
	int fd, other;

#ifdef SYS_open
	fd = call(open, "decoded.file", O_RDWR | O_CREAT | O_TRUNC, 0644);
	close(fd);
	call(stat, "decoded.file", &stat);
	call(lstat, "/dev/null", &stat);
	call(lstat, "/nowhere", &stat);
	call(access, "/etc/passwd", R_OK | W_OK);
	call(readlink, "/proc/self/exe", buffer, sizeof(buffer));
	call(mkdir, "decoded.dir", 0755);
	call(rename, "decoded.dir", "decoded.other");
	call(rmdir, "decoded.other");
	call(unlink, "/nowhere/file");
	call(chmod, "decoded.file", 04755);
	call(pipe, NULL);
	call(dup2, 1, 77);
	close(77);
#endif
	fd = call(openat, AT_FDCWD, "decoded.file", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	call(openat, AT_FDCWD, "/nowhere/a\"b\\\n", O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_SYNC);
	other = call(openat, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY);
	call(openat2, AT_FDCWD, "decoded.file", &how, sizeof(how));
	call(write, fd, "a\"line\n", 7);
	call(pwrite64, fd, "x", 1, 3);
	call(pread64, fd, buffer, 16, 2);
	call(read, fd, buffer, 32);
	call(writev, fd, vector, 2);
	vector[0].iov_base = buffer;
	call(readv, fd, vector, 1);
	call(lseek, fd, 0, SEEK_SET);
	call(lseek, fd, -1, SEEK_END);
	call(fstat, fd, &stat);
	call(newfstatat, fd, "", &stat, AT_EMPTY_PATH);
	call(newfstatat, AT_FDCWD, "/dev/tty", &stat, AT_SYMLINK_NOFOLLOW);
	call(newfstatat, AT_FDCWD, "/nowhere", &stat, 0);
	call(newfstatat, AT_FDCWD, "/proc", NULL, 0);
	call(statx, AT_FDCWD, "/proc", AT_STATX_SYNC_AS_STAT | AT_NO_AUTOMOUNT, STATX_ALL, &statx);
	call(statx, AT_FDCWD, "decoded.file", AT_STATX_SYNC_AS_STAT, STATX_MODE | STATX_SIZE, &statx);
	call(statfs, "/proc", &statfs);
	call(getdents64, other, buffer, sizeof(buffer));
	call(fcntl, fd, F_GETFL);
	call(fcntl, fd, F_SETFL, O_RDWR | O_NONBLOCK);
	call(fcntl, fd, F_GETFD);
	call(fcntl, fd, F_SETFD, FD_CLOEXEC);
	call(fcntl, fd, F_DUPFD_CLOEXEC, 20);
	call(flock, fd, LOCK_EX | LOCK_NB);
	call(fsync, fd);
	call(fdatasync, fd);
	call(ftruncate, fd, 100);
	call(fallocate, fd, FALLOC_FL_KEEP_SIZE, 0, 4096);
	call(fchmod, fd, 0600);
	call(fchmodat, AT_FDCWD, "decoded.file", 0644);
	call(fchown, fd, -1, 0);
	call(ioctl, fd, TCGETS, buffer);
	call(ioctl, fd, FIONREAD, buffer);
	call(ioctl, 1, TIOCGWINSZ, buffer);
	call(ioctl, fd, TIOCSPGRP, buffer);
	call(ioctl, fd, 0x12345678, buffer);
	call(faccessat2, AT_FDCWD, "/etc/passwd", X_OK, AT_EACCESS);
	call(readlinkat, AT_FDCWD, "/proc/self/exe", buffer, sizeof(buffer));
	call(readlinkat, AT_FDCWD, "/nowhere", buffer, sizeof(buffer));
	call(getcwd, buffer, sizeof(buffer));
	call(getcwd, buffer, 1);
	call(chdir, ".");
	call(mkdirat, AT_FDCWD, "decoded.dir", 0700);
	call(renameat2, AT_FDCWD, "decoded.dir", AT_FDCWD, "decoded.other", RENAME_NOREPLACE);
	call(unlinkat, AT_FDCWD, "decoded.other", AT_REMOVEDIR);
	call(symlinkat, "target", AT_FDCWD, "decoded.link");
	call(linkat, AT_FDCWD, "decoded.file", AT_FDCWD, "decoded.linked", AT_SYMLINK_FOLLOW);
	call(unlinkat, AT_FDCWD, "decoded.link", 0);
	call(unlinkat, AT_FDCWD, "decoded.linked", 0);
	call(umask, 022);
	call(dup, fd);
	call(dup3, fd, 78, O_CLOEXEC);
	call(pipe2, vector, O_CLOEXEC | O_NONBLOCK);
	call(pipe2, vector, 0);
	call(sendfile, fd, other, NULL, 10);
	call(close_range, 60, ~0U, 0);
	call(close, fd);
	call(close, 99);
	call(unlinkat, AT_FDCWD, "decoded.file", 0);
	call(memfd_create, "decoded", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	call(mount, "none", "/nowhere", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=1m");
	call(umount2, "/nowhere", MNT_DETACH);
}

static void memory(void)
{
	char *at = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/proc/self/exe", O_RDONLY);

	mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 4096);
	mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
	call(mprotect, at, 4096, PROT_READ | PROT_WRITE);
	call(mprotect, at, 4096, PROT_NONE);
	call(madvise, at + 4096, 4096, MADV_DONTNEED);
	call(mremap, at + 8192, 4096, 8192, MREMAP_MAYMOVE);
	call(munmap, at, 8192);
	call(brk, NULL);
}

static void signals(void)
{
	struct {
		unsigned long handler, flags, restorer, mask;
	} action = { 0 };
	unsigned long set = 1UL << (SIGINT - 1) | 1UL << (SIGCHLD - 1) | 1UL << (SIGTERM - 1) | 1UL << 33 | 1UL << 34;
	unsigned long old;
	struct rlimit limit = { 100, RLIM_INFINITY };
	cpu_set_t cpus;

	call(rt_sigaction, SIGUSR1, NULL, &action, 8);
	call(rt_sigaction, SIGPIPE, &(struct { unsigned long a, b, c, d; }){ 1, SA_RESTART, 0, 0 }, NULL, 8);
	call(rt_sigaction, SIGPIPE, NULL, &action, 8);
	call(rt_sigaction, SIGKILL, &action, &action, 8);
	signal(SIGUSR1, handler);
	signal(SIGUSR2, handler);
	call(rt_sigaction, SIGUSR1, NULL, &action, 8);
	call(rt_sigprocmask, SIG_BLOCK, &set, &old, 8);
	call(rt_sigprocmask, SIG_SETMASK, NULL, &old, 8);
	set = ~set;
	call(rt_sigprocmask, SIG_UNBLOCK, &set, NULL, 8);
	set = ~0UL;
	call(rt_sigprocmask, SIG_SETMASK, &set, NULL, 8);
	set = 0;
	call(rt_sigprocmask, SIG_SETMASK, &set, NULL, 8);
	call(kill, getpid(), SIGUSR1);
	call(tgkill, getpid(), getpid(), SIGUSR2);
	call(kill, getpid(), 0);
	call(kill, 999999, SIGRTMIN);
	sigqueue(getpid(), SIGUSR1, (union sigval){ .sival_int = 7 });
	call(prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	call(prlimit64, 0, RLIMIT_STACK, NULL, &limit);
	limit.rlim_cur = 4096;
	call(prlimit64, 0, RLIMIT_CORE, &limit, NULL);
	call(prlimit64, 0, RLIMIT_CORE, NULL, &limit);
	call(sched_getaffinity, 0, sizeof(cpus), &cpus);
	call(sched_yield);
	call(getrusage, RUSAGE_SELF, &(struct rusage){ 0 });
}

static void sockets(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_un un = { AF_UNIX, "/nowhere/socket" };
	socklen_t len = sizeof(in);
	int pair[2], one = 1, value;
	char buffer[16];
	int fd = call(socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
	int local = call(socket, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct iovec vector = { "message", 7 };
	struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };

	call(setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	call(setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	call(bind, fd, &in, sizeof(in));
	call(listen, fd, 5);
	call(getsockname, fd, &in, &len);
	len = sizeof(value);
	call(getsockopt, fd, SOL_SOCKET, SO_ERROR, &value, &len);
	call(connect, local, &un, sizeof(un));
	call(accept4, fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK | (fcntl(fd, F_SETFL, O_NONBLOCK) & 0));
	call(socketpair, AF_UNIX, SOCK_DGRAM, 0, pair);
	call(sendto, pair[0], "bytes", 5, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
	call(recvfrom, pair[1], buffer, sizeof(buffer), MSG_PEEK, NULL, NULL);
	call(sendmsg, pair[0], &message, MSG_DONTWAIT);
	vector.iov_base = buffer;
	call(recvmsg, pair[1], &message, 0);
	call(shutdown, fd, SHUT_RDWR);
}

static void waits(void)
{
	struct timespec short_time = { 0, 1000000 }, now;
	struct epoll_event event = { EPOLLIN | EPOLLET, { .u64 = 5 } };
	int pair[2], word = 0;
	int epoll = call(epoll_create1, EPOLL_CLOEXEC);
	struct pollfd set;

	call(pipe2, pair, 0);
	set = (struct pollfd){ pair[0], POLLIN | POLLOUT, 0 };
	call(epoll_ctl, epoll, EPOLL_CTL_ADD, pair[0], &event);
	call(epoll_pwait, epoll, &event, 1, 0, NULL, 8);
#ifdef SYS_poll
	call(epoll_wait, epoll, &event, 1, 0);
	call(poll, &set, 1, 0);
#endif
	call(ppoll, &set, 1, &(struct timespec){ 0, 0 }, NULL, 8);
	call(pselect6, 0, NULL, NULL, NULL, &(struct timespec){ 0, 1000 }, NULL);
	call(eventfd2, 3, EFD_CLOEXEC | EFD_SEMAPHORE);
	call(timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC);
	call(nanosleep, &short_time, NULL);
	call(clock_nanosleep, CLOCK_MONOTONIC, 0, &short_time, NULL);
	call(clock_gettime, CLOCK_REALTIME, &now);
	call(futex, &word, FUTEX_WAKE_PRIVATE, 1);
	call(futex, &word, FUTEX_WAIT_PRIVATE, 7, NULL);
	call(futex, &word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 7, NULL, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void processes(void)
{
	struct clone_args args = { .flags = CLONE_FS | CLONE_FILES, .exit_signal = SIGCHLD };
	struct utsname name;
	pid_t pid;

	call(getpid);
	call(gettid);
	call(getppid);
	call(getuid);
	call(geteuid);
	call(getgid);
	call(getegid);
	call(getpgid, 0);
	call(setsid);
	call(uname, &name);
	call(sysinfo, NULL);
	call(prctl, PR_SET_NAME, "decoded");
	call(prctl, PR_GET_DUMPABLE);
	call(prctl, PR_SET_PDEATHSIG, SIGTERM);
	call(getrandom, NULL, 0, GRND_NONBLOCK);
	pid = call(clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		_exit(0);
	call(wait4, -1, NULL, __WALL, NULL);
	pid = call(clone3, &args, sizeof(args));
	if (pid == 0)
		_exit(1);
	call(wait4, -1, NULL, WNOHANG, NULL);
	call(wait4, pid, NULL, 0, NULL);
	pid = vfork();
	if (pid == 0) {
		execve("/nowhere/program", (char *[]){ "a \"quoted\\\" one", "two\n", "", NULL }, (char *[]){ "A=1", NULL });
		execve("/bin/true", (char *[]){ "true", "an argument", NULL }, environ);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

int main(void)
{
	files();
	memory();
	signals();
	sockets();
	waits();
	processes();
	for (int way = 0; way < 6; way++)
		child(way);
	return 0;
}
