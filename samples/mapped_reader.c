// SPDX-License-Identifier: GPL-2.0
/*
 * Reads a stream through mmap(2): each packet directly in the kernel's buffer, without a copy.
 *
 *   gcc -O2 -o mapped_reader mapped_reader.c
 *   ./mapped_reader /sys/kernel/debug/rtrace/sessions/default/channels/channel0/cpu0 >channel0_cpu0
 *
 * The output is the stream's file of a trace. babeltrace2 and `rtrace report` can read it if the session's
 * `metadata` is in the same directory. Replace take() to process the packets yourself.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* As in rust/abi/ioctl.rs. */
struct mapped_packet {
	uint64_t sequence; /* number in the stream; a gap is overwritten packets */
	uint64_t size;     /* bytes, a multiple of the page size */
	uint64_t content;  /* of those, bytes of headers and records */
	uint64_t records;
	uint64_t offset;   /* offset in the mapping */
};

#define PUT_PACKET _IO(0xF7, 2)
#define GET_MAPPED _IOR(0xF7, 4, struct mapped_packet)
#define MAP_SIZE _IOR(0xF7, 5, uint64_t)

static const char usage[] =
	"Usage: mapped_reader [-n PACKETS] STREAM\n"
	"\n"
	"Writes the packets of STREAM (a file cpuN of a channel) to standard output until the trace\n"
	"is over. Then prints how many packets there were.\n"
	"\n"
	"  -n PACKETS  end after PACKETS packets\n"
	"  -h, --help  show this text\n"
	"\n"
	"Exit status: 0 on success, also if interrupted (SIGINT, SIGTERM); 1 on failure, 2 on wrong usage.\n";

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

static void die(const char *what)
{
	fprintf(stderr, "mapped_reader: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Processes a packet. Its bytes do not change until PUT_PACKET. */
static void take(const char *packet, size_t size)
{
	while (size) {
		ssize_t written = write(STDOUT_FILENO, packet, size);

		if (written < 0 && errno != EINTR)
			die("standard output");
		if (written > 0) {
			packet += written;
			size -= written;
		}
	}
}

int main(int argc, char **argv)
{
	unsigned long long most = -1ULL, packets = 0, records = 0, overwritten = 0, next = 0;
	const struct sigaction action = { .sa_handler = interrupt };
	struct mapped_packet packet;
	struct pollfd stream = { .events = POLLIN };
	const char *map;
	uint64_t size;
	char *end;
	int option;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	while ((option = getopt(argc, argv, "hn:")) != -1) {
		switch (option) {
		case 'h':
			fputs(usage, stdout);
			return 0;
		case 'n':
			errno = 0;
			most = strtoull(optarg, &end, 10);
			if (!*optarg || *end || errno || *optarg == '-') {
				fprintf(stderr, "mapped_reader: -n: '%s' is not a number\n", optarg);
				return 2;
			}
			break;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (argc - optind != 1) {
		fputs(usage, stderr);
		return 2;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);

	stream.fd = open(argv[optind], O_RDONLY);
	if (stream.fd < 0)
		die(argv[optind]);
	if (ioctl(stream.fd, MAP_SIZE, &size))
		die("MAP_SIZE");
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, stream.fd, 0);
	if (map == MAP_FAILED)
		die("mmap");

	while (packets < most && !interrupted) {
		if (ioctl(stream.fd, GET_MAPPED, &packet)) {
			if (errno == ENODATA)
				break;
			if (errno != EAGAIN)
				die("GET_MAPPED");
			/* No packet yet. Wait with a limit, because a signal may have arrived just before. */
			if (poll(&stream, 1, 1000) < 0 && errno != EINTR)
				die("poll");
			continue;
		}
		if (packets)
			overwritten += packet.sequence - next;
		next = packet.sequence + 1;
		take(map + packet.offset, packet.size);
		if (ioctl(stream.fd, PUT_PACKET))
			die("PUT_PACKET");
		packets++;
		records += packet.records;
	}
	fprintf(stderr, "%llu packets, %llu records, %llu packets overwritten between them\n", packets,
		records, overwritten);
	return 0;
}
