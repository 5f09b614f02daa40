// SPDX-License-Identifier: GPL-2.0
/*
 * Loads peer.bpf.o and attaches its programs to tracepoints.
 *
 *	bpf-peer OBJECT BYTES MODE ARGUMENTS FILTER CONTEXTS ONLY FILE TRACEPOINT...
 *
 * BYTES: the ring's size, a power of two. MODE: discard or overwrite. ARGUMENTS: 1: with the
 * arguments of system calls. FILTER, CONTEXTS, ONLY: see peer.bpf.c. FILE: records are written to it
 * as they come; with "-" there is no reader. The reader is not woken: it checks every READ_PERIOD_MS.
 * bpf-peer takes commands from standard input, one a line, and answers each with a line:
 *
 *	usage	bytes that were written into the ring so far, and records lost
 *	detach	the programs are detached; what is left is written
 *	quit
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define MAX_PROGRAMS 64
#define READ_PERIOD_MS 1
/* BPF_F_RB_OVERWRITE of Linux 6.19, which the headers of Debian 13 lack. */
#define RING_OVERWRITE (1U << 19)

static FILE *out;

static int on_record(void *context, void *data, size_t size)
{
	return fwrite(data, size, 1, out) == 1 ? 0 : -errno;
}

static void die(const char *what)
{
	fprintf(stderr, "bpf-peer: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Returns the map of the object's variables of this section. */
static struct bpf_map *section(struct bpf_object *object, const char *name)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
		if (strstr(bpf_map__name(map), name))
			return map;
	die(name);
	return NULL;
}

/* The writer's position in the ring: the page after the reader's. */
static const void *writer_position(int ring)
{
	long page = sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, page, PROT_READ, MAP_SHARED, ring, page);

	if (at == MAP_FAILED)
		die("mmap");
	return at;
}

/* Reads a line of standard input, byte by byte: later bytes stay for poll. */
static bool read_line(char *line, size_t size)
{
	size_t n = 0;

	while (n + 1 < size && read(0, line + n, 1) == 1) {
		if (line[n] == '\n') {
			line[n] = 0;
			return true;
		}
		n++;
	}
	return false;
}

/* peer.bpf.c's variables in their sections. */
struct constants { bool arguments; int filter; bool contexts; int only; };
struct counters { struct { unsigned long long n; char pad[56]; } lost[64]; };

int main(int argc, char **argv)
{
	struct bpf_link *links[MAX_PROGRAMS];
	struct constants *constants;
	struct counters *counters;
	struct ring_buffer *reader = NULL;
	struct bpf_object *object;
	struct bpf_program *program;
	struct bpf_map *ring;
	const void *written;
	char line[64], name[128];
	int n = 0, i;
	size_t size;

	if (argc < 10)
		die("usage");
	object = bpf_object__open_file(argv[1], NULL);
	if (!object)
		die(argv[1]);
	ring = bpf_object__find_map_by_name(object, "ring");
	bpf_map__set_max_entries(ring, atoi(argv[2]));
	if (!strcmp(argv[3], "overwrite"))
		bpf_map__set_map_flags(ring, RING_OVERWRITE);
	constants = bpf_map__initial_value(section(object, ".rodata"), &size);
	constants->arguments = atoi(argv[4]);
	constants->filter = atoi(argv[5]);
	constants->contexts = atoi(argv[6]);
	constants->only = atoi(argv[7]);
	if (strcmp(argv[8], "-")) {
		out = fopen(argv[8], "w");
		if (!out)
			die(argv[8]);
		setvbuf(out, NULL, _IOFBF, 1 << 20);
	}
	bpf_object__for_each_program(program, object) {
		bool wanted = false;

		for (i = 9; i < argc; i++) {
			snprintf(name, sizeof(name), "on_%s", argv[i]);
			wanted |= !strcmp(bpf_program__name(program), name);
		}
		bpf_program__set_autoload(program, wanted);
	}
	if (bpf_object__load(object))
		die("load");
	counters = bpf_map__initial_value(section(object, ".bss"), &size);
	written = writer_position(bpf_map__fd(ring));
	if (out) {
		reader = ring_buffer__new(bpf_map__fd(ring), on_record, NULL, NULL);
		if (!reader)
			die("ring_buffer__new");
	}
	bpf_object__for_each_program(program, object) {
		if (!bpf_program__autoload(program))
			continue;
		links[n] = bpf_program__attach(program);
		if (!links[n++])
			die(bpf_program__name(program));
	}
	printf("ready %d\n", n);
	fflush(stdout);
	for (;;) {
		struct pollfd input = { .fd = 0, .events = POLLIN };

		if (poll(&input, 1, reader ? READ_PERIOD_MS : -1) < 0)
			die("poll");
		if (reader)
			ring_buffer__consume(reader);
		if (!(input.revents & (POLLIN | POLLHUP)))
			continue;
		if (!read_line(line, sizeof(line)) || !strcmp(line, "quit"))
			break;
		if (!strcmp(line, "detach")) {
			while (n)
				bpf_link__destroy(links[--n]);
			if (reader)
				ring_buffer__consume(reader);
			if (out)
				fflush(out);
		}
		{
			unsigned long long lost = 0;

			for (i = 0; i < 64; i++)
				lost += counters->lost[i].n;
			printf("%llu %llu\n", *(const volatile unsigned long long *)written, lost);
			fflush(stdout);
		}
	}
	return 0;
}
