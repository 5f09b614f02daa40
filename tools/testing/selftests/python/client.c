// SPDX-License-Identifier: GPL-2.0
/*
 * python SOCKET ARGUMENT...: makes server.py at that socket run a program, and exits with its status. The ARGUMENTs
 * are those of python3.
 */

#include <err.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char message[128 << 10];
static size_t length;

static void add(const char *text)
{
	size_t size = strlen(text) + 1;

	if (length + size > sizeof(message))
		errx(2, "arguments and environment are too long");
	memcpy(message + length, text, size);
	length += size;
}

static int connected(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int server = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	if (server < 0 || strlen(path) >= sizeof(at.sun_path))
		errx(2, "%s: no socket of this name", path);
	strcpy(at.sun_path, path);
	if (connect(server, (struct sockaddr *)&at, sizeof(at)))
		err(2, "%s", path);
	return server;
}

int main(int argc, char **argv, char **environment)
{
	static const int standard[] = { 0, 1, 2 };
	union {
		char bytes[CMSG_SPACE(sizeof(standard))];
		struct cmsghdr aligned;
	} control = {};
	struct iovec part = { .iov_base = message };
	struct msghdr said = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *fds = CMSG_FIRSTHDR(&said);
	unsigned char status;
	char text[4096];
	int server, i;

	if (argc < 3)
		errx(2, "usage: python SOCKET ARGUMENT...");
	snprintf(text, sizeof(text), "%d", argc - 2);
	add(text);
	if (!getcwd(text, sizeof(text)))
		err(2, "the working directory");
	add(text);
	for (i = 2; i < argc; i++)
		add(argv[i]);
	for (; *environment; environment++)
		add(*environment);
	part.iov_len = length;
	fds->cmsg_level = SOL_SOCKET;
	fds->cmsg_type = SCM_RIGHTS;
	fds->cmsg_len = CMSG_LEN(sizeof(standard));
	memcpy(CMSG_DATA(fds), standard, sizeof(standard));
	server = connected(argv[1]);
	if (sendmsg(server, &said, 0) < 0)
		err(2, "what is to be run");
	/* A killed program sends no status. */
	if (read(server, &status, 1) != 1)
		errx(2, "the program was killed");
	return status;
}
