// SPDX-License-Identifier: GPL-2.0
/* The files that a process has open: opening, and choosing one for the next operation. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "fuzz.h"

struct open_file files[FDS];
static int directory_of_mine;

void set_up_files(void)
{
	int n;

	for (n = 0; n < FDS; n++)
		files[n].fd = -1;
	directory_of_mine = open(".", O_RDONLY | O_DIRECTORY);
}

struct open_file *any_file(void)
{
	return &files[below(FDS)];
}

struct open_file *any_stream(void)
{
	u32 tries;

	for (tries = 0; tries < 8; tries++) {
		struct open_file *file = any_file();

		if (file->path && is_stream(file->path))
			return file;
	}
	return any_file();
}

void close_file(struct open_file *file)
{
	if (file->fd >= 0)
		counted(CLOSE, close(file->fd));
	file->fd = -1;
	file->path = NULL;
}

void keep(int fd, const char *path)
{
	struct open_file *file = any_file();

	if (fd < 0)
		return;
	close_file(file);
	file->fd = fd;
	file->path = path;
}

void do_open(void)
{
	static const int more[] = {
		O_TRUNC, O_NONBLOCK, O_APPEND, O_DIRECT, O_ASYNC, O_CLOEXEC, O_DSYNC, O_NOATIME,
		O_NOFOLLOW, O_PATH, O_DIRECTORY, O_CREAT, O_CREAT | O_EXCL
	};
	const char *path = any_path();
	int flags = one_in(3) ? (int)below(4) : is_stream(path) ? O_RDONLY : (int)below(3);

	/* Only a few processes are blocking readers, so that the others make progress. */
	if (is_stream(path) && !one_in(4))
		flags |= O_NONBLOCK;
	while (one_in(3))
		flags |= more[below(lengthof(more))];
	keep(counted(OPEN, open(path, flags, 0600)), path);
}

void do_pipe(void)
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

void do_dup(void)
{
	struct open_file *file = any_file();
	char path[64];

	if (one_in(2)) {
		keep(counted(DUP, dup(file->fd)), file->path);
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	/* The other end of a pipe would never be opened. */
	keep(counted(REOPEN, open(path, below(3) | O_NONBLOCK)), file->path);
}
