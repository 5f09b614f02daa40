// SPDX-License-Identifier: GPL-2.0
/*
 * Loads maps.bpf.o and attaches programs of one case.
 *
 *	bpf-maps OBJECT SIZE NAME...
 *
 * NAME is a program or a table. Each table has room for SIZE keys. Prints "ready". After a line of standard input, detaches them, and prints the number of updates.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

struct value { unsigned long long count, sum; };

static void die(const char *what)
{
	fprintf(stderr, "bpf-maps: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Adds up the counts of a per-CPU hash. */
static unsigned long long count_of(const struct bpf_map *map, int cpus)
{
	struct value *values = calloc(cpus, sizeof(*values));
	char key[64], next[64], *last = NULL;
	unsigned long long count = 0;
	int fd = bpf_map__fd(map), cpu;

	while (!bpf_map_get_next_key(fd, last, next)) {
		last = memcpy(key, next, sizeof(key));
		if (bpf_map_lookup_elem(fd, key, values))
			die("lookup");
		for (cpu = 0; cpu < cpus; cpu++)
			count += values[cpu].count;
	}
	free(values);
	return count;
}

/* Whether the name is among the arguments. */
static bool is_wanted(const char *name, int argc, char **argv)
{
	int i;

	for (i = 3; i < argc; i++)
		if (!strcmp(name, argv[i]))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct bpf_link *links[4];
	struct bpf_program *program;
	struct bpf_object *object;
	unsigned long long count = 0;
	struct bpf_map *map;
	char line[16];
	int n = 0;

	if (argc < 4)
		die("usage");
	object = bpf_object__open_file(argv[1], NULL);
	if (!object)
		die(argv[1]);
	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, is_wanted(bpf_program__name(program), argc, argv));
	bpf_object__for_each_map(map, object) {
		if (bpf_map__is_internal(map))
			continue;
		bpf_map__set_autocreate(map, is_wanted(bpf_map__name(map), argc, argv));
		bpf_map__set_max_entries(map, atoi(argv[2]));
	}
	if (bpf_object__load(object))
		die("load");
	bpf_object__for_each_program(program, object) {
		if (!bpf_program__autoload(program))
			continue;
		links[n] = bpf_program__attach(program);
		if (!links[n++])
			die(bpf_program__name(program));
	}
	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		die("standard input");
	while (n)
		bpf_link__destroy(links[--n]);
	bpf_object__for_each_map(map, object)
		if (bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_HASH && bpf_map__autocreate(map))
			count += count_of(map, libbpf_num_possible_cpus());
	printf("%llu\n", count);
	return 0;
}
