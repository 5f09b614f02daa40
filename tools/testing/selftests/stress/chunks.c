// SPDX-License-Identifier: GPL-2.0
/*
 * Usage: chunks DIR MODE HEADERS RECORD_ID HUGE_ID
 *
 * Compares a rtrace_stress trace in pieces (chunks or snapshots) with the fired events, while it is being
 * recorded. Standard input names the pieces, one per line, in order, each as soon as it is complete. Checked
 * pieces are removed, so that no large disk is needed. At the end DIR has copies of the files fired and
 * stats. MODE is that of the channel; HEADERS, compact or large, those of the events. The ids of the two
 * events are in the trace's metadata.
 *
 * For each CPU, over all pieces:
 *   fired = recorded + discarded, recorded = overwritten + read, read = the records in the pieces
 *   every record is complete, occurs once, and is in the order of its context
 *   packets: their headers, times and numbers; in discard mode none is missing
 * Prints totals; or prints what is wrong, and exits with 1.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

/* A CPU's stream, up to now. */
struct stream {
	u64 packets;
	u64 records;
	/* Header of the last packet. */
	struct packet_header last;
};

static struct cpu cpus[MAX_CPUS];
static struct stream streams[MAX_CPUS];

static void check_stream(struct cpu *cpu, struct stream *stream, const u8 *bytes, size_t size)
{
	size_t at = 0;

	while (at < size) {
		const struct packet_header *header = (const void *)(bytes + at);

		expect(size - at >= sizeof(*header), "a packet is cut off");
		equal("magic", header->magic, PACKET_MAGIC);
		expect(size - at >= header->packet_size / 8, "a packet is cut off");
		stream->records += check_packet(cpu, header, stream->packets ? &stream->last : NULL);
		stream->packets++;
		stream->last = *header;
		at += header->packet_size / 8;
	}
	at_packet = NULL;
}

/* Checks the contents of a file, if it exists. */
static void check_file(const char *path, struct cpu *cpu, struct stream *stream)
{
	int fd = open(path, O_RDONLY);
	struct stat stat;
	void *bytes;

	if (fd < 0)
		return;
	expect(fstat(fd, &stat) == 0, "%s", path);
	if (stat.st_size) {
		bytes = mmap(NULL, stat.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
		expect(bytes != MAP_FAILED, "%s", path);
		check_stream(cpu, stream, bytes, stat.st_size);
		munmap(bytes, stat.st_size);
	}
	close(fd);
}

/* Renames it at once, for programs that list the pieces; then removes its files. */
static void remove_piece(const char *piece)
{
	struct dirent *entry;
	char path[5000];
	DIR *entries;

	snprintf(path, sizeof(path), "%s/removed", dir);
	expect(rename(piece, path) == 0, "cannot rename %s", piece);
	entries = opendir(path);
	expect(entries, "cannot read %s", path);
	while ((entry = readdir(entries)))
		if (entry->d_type == DT_REG)
			unlinkat(dirfd(entries), entry->d_name, 0);
	closedir(entries);
	expect(rmdir(path) == 0, "cannot remove %s", path);
}

static void check_piece(const char *piece)
{
	char path[5000];

	expect(access(piece, R_OK) == 0, "there is no %s", piece);
	for (at_cpu = 0; at_cpu < MAX_CPUS; at_cpu++) {
		snprintf(path, sizeof(path), "%s/channel0_cpu%d", piece, at_cpu);
		check_file(path, &cpus[at_cpu], &streams[at_cpu]);
	}
	remove_piece(piece);
}

/* While recording, the final number of fired events is unknown. */
static void fire_any(void)
{
	int cpu, context;

	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		for (context = 0; context < STRESS_CONTEXTS; context++)
			cpus[cpu].fired[context] = -1ULL;
}

/* Checks the totals at the end. */
static void check_end(const struct cpu *cpu, const struct stream *stream)
{
	int context;

	for (context = 0; context < STRESS_CONTEXTS; context++)
		expect(cpu->next[context] <= cpu->fired[context], "record %llu of context %d was never fired",
		       ULL(cpu->next[context] - 1), context);
	if (!cpu->has_stats) {
		equal("fired on a CPU without stats", fired_on(cpu), 0);
		return;
	}
	check_counts(cpu);
	equal("records read, and those in the pieces", cpu->stats[READ_RECORDS], stream->records);
	equal("packets read, and those in the pieces", cpu->stats[READ_PACKETS], stream->packets);
	if (stream->packets)
		equal("events_discarded at the end", stream->last.events_discarded,
		      cpu->stats[FULL] + cpu->stats[WRAPPED] + cpu->stats[TOO_LARGE] +
		      cpu->stats[NESTED]);
}

int main(int argc, char **argv)
{
	char piece[4096];

	if (argc != 6 || !take_arguments(argv + 2)) {
		fprintf(stderr,
			"usage: chunks DIR discard|overwrite compact|large RECORD_ID HUGE_ID\n");
		return 2;
	}
	dir = argv[1];
	fire_any();
	while (fgets(piece, sizeof(piece), stdin)) {
		piece[strcspn(piece, "\n")] = 0;
		check_piece(piece);
	}
	for (at_cpu = 0; at_cpu < MAX_CPUS; at_cpu++)
		memset(cpus[at_cpu].fired, 0, sizeof(cpus[at_cpu].fired));
	read_fired(cpus);
	read_stats(cpus);
	for (at_cpu = 0; at_cpu < MAX_CPUS; at_cpu++)
		check_end(&cpus[at_cpu], &streams[at_cpu]);
	say_totals(cpus, 0);
	return 0;
}
