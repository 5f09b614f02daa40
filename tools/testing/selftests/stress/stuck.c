// SPDX-License-Identifier: GPL-2.0
/*
 * Usage: stuck fuse DIR | stuck userfault
 *
 * Makes a call, truncate(2), that waits for the memory of its path; no other process makes this call. Prints the
 * caller's process id when the call waits.
 *
 *   fuse       The path is in a mapping of a file in DIR, where this program mounts a FUSE file system. It answers all
 *              requests except reads. The caller is a child of it, the user 65534. The call ends when this program does.
 *   userfault  The path is in a mapping whose faults are not handled. The caller is this program.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE ((size_t)sysconf(_SC_PAGESIZE))
#define NOBODY 65534

/* Makes the call; it fails when the memory becomes unavailable. */
static void call(const char *path)
{
	truncate(path, 0);
	_exit(0);
}

static void say(pid_t caller)
{
	printf("%d\n", caller);
	fflush(stdout);
}

static void answer(int server, const struct fuse_in_header *in, int error, const void *data, size_t size)
{
	char reply[sizeof(struct fuse_out_header) + 256];
	struct fuse_out_header *out = (void *)reply;

	out->unique = in->unique;
	out->error = -error;
	out->len = sizeof(*out) + size;
	if (size)
		memcpy(out + 1, data, size);
	if (write(server, reply, out->len) < 0 && errno != ENOENT)
		err(1, "stuck: answer to %u", in->opcode);
}

/* Returns attributes of a file: node 1 is the directory, 2 the file. */
static struct fuse_attr attributes(unsigned long node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .size = SIZE, .blksize = SIZE };

	attr.mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0666;
	return attr;
}

static void serve(int server, pid_t caller)
{
	static char request[1 << 17];
	const struct fuse_in_header *in = (void *)request;

	for (;;) {
		struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 1 << 16 };
		struct fuse_entry_out entry = { .nodeid = 2, .entry_valid = 3600, .attr_valid = 3600 };
		struct fuse_attr_out attr = { .attr_valid = 3600 };
		struct fuse_open_out open = { .fh = 1 };
		ssize_t len = read(server, request, sizeof(request));

		if (len < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (len < 0)
			err(1, "stuck: read");
		switch (in->opcode) {
		case FUSE_INIT:
			answer(server, in, 0, &init, sizeof(init));
			break;
		case FUSE_LOOKUP:
			entry.attr = attributes(2);
			answer(server, in, 0, &entry, sizeof(entry));
			break;
		case FUSE_GETATTR:
			attr.attr = attributes(in->nodeid);
			answer(server, in, 0, &attr, sizeof(attr));
			break;
		case FUSE_OPEN:
		case FUSE_OPENDIR:
			answer(server, in, 0, &open, sizeof(open));
			break;
		case FUSE_READ:
			say(caller);
			break;
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
		case FUSE_INTERRUPT:
			break;
		case FUSE_FLUSH:
		case FUSE_RELEASE:
		case FUSE_RELEASEDIR:
			answer(server, in, 0, NULL, 0);
			break;
		default:
			answer(server, in, ENOSYS, NULL, 0);
		}
	}
}

static void fuse(const char *dir)
{
	char options[128], name[4096];
	pid_t caller;
	int server;

	server = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (server < 0)
		err(1, "stuck: /dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", server);
	if (mount("stuck", dir, "fuse", MS_NOSUID | MS_NODEV, options))
		err(1, "stuck: mount %s", dir);
	snprintf(name, sizeof(name), "%s/path", dir);
	caller = fork();
	if (caller == 0) {
		const char *path;
		int file;

		close(server);
		prctl(PR_SET_NAME, "stuck-caller");
		file = open(name, O_RDONLY);
		if (file < 0)
			err(1, "stuck: %s", name);
		if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
			err(1, "stuck: setresuid");
		path = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, file, 0);
		if (path == MAP_FAILED)
			err(1, "stuck: mmap");
		call(path);
	}
	if (caller < 0)
		err(1, "stuck: fork");
	signal(SIGCHLD, SIG_IGN);
	serve(server, caller);
}

static void userfault(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	pid_t caller = getpid();
	struct uffd_msg fault;
	void *path;
	int faults;

	faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (faults < 0)
		err(1, "stuck: userfaultfd");
	if (ioctl(faults, UFFDIO_API, &api))
		err(1, "stuck: UFFDIO_API");
	path = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (path == MAP_FAILED)
		err(1, "stuck: mmap");
	range.range.start = (unsigned long)path;
	range.range.len = SIZE;
	if (ioctl(faults, UFFDIO_REGISTER, &range))
		err(1, "stuck: UFFDIO_REGISTER");
	/* The child gets the fault's message, and ignores it. */
	switch (fork()) {
	case -1:
		err(1, "stuck: fork");
	case 0:
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(faults, &fault, sizeof(fault)) != sizeof(fault))
			err(1, "stuck: read");
		say(caller);
		pause();
		_exit(0);
	}
	call(path);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "fuse"))
		fuse(argv[2]);
	else if (argc == 2 && !strcmp(argv[1], "userfault"))
		userfault();
	else
		errx(2, "usage: stuck fuse DIR | stuck userfault");
}
