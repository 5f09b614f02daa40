// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Records events of this program with rtrace. Usage: own_events [COUNT]
 *
 *   rtrace record -e 'user.shop' -o trace -- ./own_events 3
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define RTRACE_REGISTER _IOW(0xF7, 9, char[513])

/* A record: the event's index, then the fields without padding. */
struct __attribute__((packed)) request {
	unsigned int index;
	unsigned int status;
	char path[32];
};

static int open_program(void)
{
	int fd = open("/sys/kernel/rtrace/program", O_RDWR | O_CLOEXEC);

	return fd < 0 ? open("/sys/kernel/debug/rtrace/program", O_RDWR | O_CLOEXEC) : fd;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	int fd = open_program();
	int index;

	if (fd < 0) {
		perror("program");
		return 1;
	}
	index = ioctl(fd, RTRACE_REGISTER, "shop:request u32 status; string path");
	if (index < 0) {
		char why[1024];
		ssize_t len = read(fd, why, sizeof(why) - 1);

		fprintf(stderr, "register: %s\n%.*s", strerror(errno), len > 0 ? (int)len : 0, why);
		return 1;
	}
	for (int i = 0; i < count; i++) {
		struct request record = { .index = index, .status = 200 + i };

		snprintf(record.path, sizeof(record.path), "/cart/%d", i);
		/* EBADF: no session records the event. */
		if (write(fd, &record, offsetof(struct request, path) + strlen(record.path) + 1) < 0 && errno != EBADF)
			perror("write");
	}
	return 0;
}
