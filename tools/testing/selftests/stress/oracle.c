// SPDX-License-Identifier: GPL-2.0
/*
 * Usage: oracle DIR MODE HEADERS RECORD_ID HUGE_ID
 *
 * Compares the output of reader with the fired events, for a trace of rtrace_stress that was stopped and read
 * to its end. DIR has copies of the files fired and stats, and cpuN.M, written by the M-th reader of CPU N.
 * MODE is that of the channel; HEADERS, compact or large, those of the events. The ids of the two events are in
 * the trace's metadata.
 *
 * For each CPU:
 *   fired = recorded + discarded, recorded = overwritten + read, read = what readers got
 *   every record is complete, occurs once, and is in the order of its context
 *   packets: their headers, times and numbers; the same bytes when got again
 *   discard mode: no packet is missing, even if its reader was killed
 * Prints totals; or prints what is wrong, and exits with 1.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "frame.h"

enum fate { PUT, UNPUT, KILLED };

struct packet {
	struct frame frame;
	const u8 *bytes;
	enum fate fate;
};

/* The data that was read of a CPU's stream, in order. */
struct read {
	struct packet *packets;
	size_t count;
};

static struct cpu cpus[MAX_CPUS];
static struct read reads[MAX_CPUS];
static u64 total_again;

/* Splits one reader's file into packets. Only the last packet may be incomplete, if the reader was killed. */
static void take_apart(struct read *read, const u8 *bytes, size_t size)
{
	size_t at = 0;

	while (at < size) {
		struct packet packet = { .fate = KILLED };

		if (size - at < sizeof(packet.frame))
			return;
		memcpy(&packet.frame, bytes + at, sizeof(packet.frame));
		expect(packet.frame.magic == FRAME_MAGIC, "the reader's file: no frame at %zu", at);
		at += sizeof(packet.frame);
		if (size - at < packet.frame.packet.size)
			return;
		packet.bytes = bytes + at;
		at += packet.frame.packet.size;
		if (at < size) {
			packet.fate = bytes[at] == 'P' ? PUT : UNPUT;
			at++;
		}
		read->packets = realloc(read->packets, (read->count + 1) * sizeof(packet));
		expect(read->packets, "no memory");
		read->packets[read->count++] = packet;
	}
}

static void read_packets(struct read *read)
{
	unsigned int number;

	for (number = 0; ; number++) {
		struct stat stat;
		char path[4096];
		void *bytes;
		int fd;

		snprintf(path, sizeof(path), "%s/cpu%d.%u", dir, at_cpu, number);
		fd = open(path, O_RDONLY);
		if (fd < 0)
			return;
		expect(fstat(fd, &stat) == 0, "%s", path);
		if (stat.st_size) {
			bytes = mmap(NULL, stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
			expect(bytes != MAP_FAILED, "%s", path);
			take_apart(read, bytes, stat.st_size);
		}
		close(fd);
	}
}

/* A packet that was got, not put, and got again occurs twice: removes the first copy. */
static void merge_again(struct read *read)
{
	size_t kept = 0, i;

	for (i = 0; i < read->count; i++) {
		struct packet *packet = &read->packets[i];
		struct packet *last = kept ? &read->packets[kept - 1] : NULL;

		at_packet = (const void *)packet->bytes;
		if (last && last->frame.packet.sequence == packet->frame.packet.sequence) {
			expect(last->fate != PUT, "was put, and comes again");
			expect(!memcmp(&last->frame, &packet->frame, sizeof(packet->frame)) &&
			       !memcmp(last->bytes, packet->bytes, packet->frame.packet.size),
			       "is another one when it is got again");
			total_again++;
			kept--;
		}
		read->packets[kept++] = *packet;
	}
	read->count = kept;
	at_packet = NULL;
}

/* Returns whether a subset of the packets that may or may not have been put has SUM records. */
static int some_have(const u64 *records, size_t count, u64 sum)
{
	if (sum == 0)
		return 1;
	if (count == 0)
		return 0;
	return (records[0] <= sum && some_have(records + 1, count - 1, sum - records[0])) ||
	       some_have(records + 1, count - 1, sum);
}

/* Compares GET_PACKET's answer with the packet. */
static void check_frame(const struct frame *frame, const struct packet_header *header)
{
	at_packet = header;
	equal("content", header->content_size, frame->packet.content * 8);
	equal("size", header->packet_size, frame->packet.size * 8);
	equal("packet_seq_num", header->packet_seq_num, frame->packet.sequence);
}

static void check_cpu(struct cpu *cpu, struct read *read)
{
	const struct packet_header *last = NULL;
	u64 *maybe = calloc(read->count + 1, sizeof(*maybe));
	u64 got = 0, put = 0;
	size_t maybes = 0, i;

	check_counts(cpu);
	merge_again(read);
	for (i = 0; i < read->count; i++) {
		const struct packet *packet = &read->packets[i];
		const struct packet_header *header = (const void *)packet->bytes;
		u64 records;

		check_frame(&packet->frame, header);
		records = check_packet(cpu, header, last);
		equal("records", records, packet->frame.packet.records);
		last = header;
		if (packet->fate == PUT) {
			got += records;
			put++;
		} else if (packet->fate == KILLED) {
			/* Put just before the kill, or overwritten after it. */
			maybe[maybes++] = records;
		} else {
			expect(!discard_mode, "given back, and gone");
		}
	}
	at_packet = NULL;
	if (discard_mode) {
		/* The writer cannot overwrite it: it was put, or it would have come again. */
		for (i = 0; i < maybes; i++)
			got += maybe[i];
		put += maybes;
		maybes = 0;
	}
	expect(got <= cpu->stats[READ_RECORDS] &&
	       some_have(maybe, maybes, cpu->stats[READ_RECORDS] - got),
	       "records read: the kernel counts %llu, readers got %llu and perhaps those of %zu packets",
	       ULL(cpu->stats[READ_RECORDS]), ULL(got), maybes);
	expect(put <= cpu->stats[READ_PACKETS] && put + maybes >= cpu->stats[READ_PACKETS],
	       "packets read: the kernel counts %llu, readers got %llu and perhaps %zu",
	       ULL(cpu->stats[READ_PACKETS]), ULL(put), maybes);
	if (last)
		equal("events_discarded at the end", last->events_discarded,
		      cpu->stats[FULL] + cpu->stats[WRAPPED] + cpu->stats[TOO_LARGE] +
		      cpu->stats[NESTED]);
	free(maybe);
}

int main(int argc, char **argv)
{
	int cpu;

	if (argc != 6 || !take_arguments(argv + 2)) {
		fprintf(stderr,
			"usage: oracle DIR discard|overwrite compact|large RECORD_ID HUGE_ID\n");
		return 2;
	}
	dir = argv[1];
	read_fired(cpus);
	read_stats(cpus);
	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		at_cpu = cpu;
		read_packets(&reads[cpu]);
		if (cpus[cpu].has_stats)
			check_cpu(&cpus[cpu], &reads[cpu]);
		else
			equal("fired on a CPU without stats", fired_on(&cpus[cpu]), 0);
	}
	say_totals(cpus, total_again);
	return 0;
}
