// SPDX-License-Identifier: GPL-2.0
/* Operations that move data: reads, writes, splices, and the packets of a stream. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fuzz.h"

#define GET_PACKET 0x8020f701u
#define PUT_PACKET 0x0000f702u
#define FLUSH 0x0000f703u
#define GET_MAPPED 0x8028f704u
#define MAP_SIZE 0x8008f705u
#define PREPARE 0x0000f706u
#define TAKE_ALL 0x8008f707u

void do_read(void)
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

void do_write(void)
{
	struct open_file *file = any_file();
	struct iovec vec[2];
	void *data = text;
	size_t size = say_something(file->path);
	long result;

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

static u32 any_request(void)
{
	static const u32 known[] = {
		GET_PACKET, PUT_PACKET, FLUSH, GET_MAPPED, MAP_SIZE, PREPARE, TAKE_ALL, FIONREAD,
		FIONBIO, FIOASYNC, FIOCLEX, 0x5401, 0x5413,
		0, ~0u, 0xf700, 0xf704, 0x8020f702, 0xc020f701, 0x4020f701, 0x8010f701
	};
	u32 request = known[below(lengthof(known))];

	while (one_in(3))
		request ^= 1u << below(32);
	return request;
}

/* Calls as a 32-bit program does. */
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

void do_ioctl(void)
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
		if (one_in(2))
			counted(IOCTL_FLUSH, ioctl(file->fd, FLUSH));
		else
			counted(IOCTL_GET, ioctl(file->fd, TAKE_ALL, buffer));
		break;
	case 3: case 4: case 5:
		counted(IOCTL_PUT, ioctl(file->fd, PUT_PACKET));
		break;
	default:
		counted(IOCTL_GET, ioctl(file->fd, GET_PACKET,
					 one_in(8) ? any_pointer() : buffer));
	}
}

void do_splice(void)
{
	struct open_file *from = any_file(), *to = any_file();
	struct iovec vec = { any_pointer(), any_size() % BUFFER };
	loff_t offset = any_number();
	/* The kernel may wait for room forever; alarms end that. */
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

/* Splices the held packet's pages into a pipe, and sometimes out of it. */
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

/* Does the operations of a reader, in random order. */
void do_packets(void)
{
	struct open_file *file = any_stream();
	struct pollfd poller = { .fd = file->fd, .events = POLLIN | POLLPRI };
	u32 n;

	if (!file->path || !is_stream(file->path)) {
		const char *path = any_stream_path();

		if (path)
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
