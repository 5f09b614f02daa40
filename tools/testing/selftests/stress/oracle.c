// SPDX-License-Identifier: GPL-2.0
/*
 * Usage: oracle DIR MODE HEADERS RECORD_ID HUGE_ID
 *
 * Holds what reader has got of a trace of rtrace_stress, now stopped and read to its end,
 * against what was fired. In DIR are fired and stats, copies of the files of these names, and
 * cpuN.M, the M-th reader of CPU N's. MODE is that of the channel; HEADERS, compact or large,
 * those of the events, and the ids of the two events are in the trace's metadata.
 *
 * For each CPU:
 *   fired = recorded + discarded, recorded = overwritten + read, read = what readers got
 *   every record is whole, is there once, and is in the order of its context
 *   packets: their headers, times and numbers; the same bytes when got again
 *   discard mode: no packet is missing, also if its reader was killed
 * Prints totals; or what is wrong, and exits with 1.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frame.h"

#define MAX_CPUS 64
#define PAGE 4096

/* rust/abi/packet.rs and header.rs, put down a second time so that a change is noticed. */
#define PACKET_MAGIC 0xc1fc1fc1u
struct packet_header {
	u32 magic;
	u8 uuid[16];
	u32 stream_id;
	u64 stream_instance_id;
	u64 timestamp_begin;
	u64 timestamp_end;
	u64 content_size;
	u64 packet_size;
	u64 packet_seq_num;
	u64 events_discarded;
	u32 cpu_id;
} __attribute__((packed));

struct event_header {
	u32 id;
	u64 time;
	size_t size;
};
#define COMPACT_ESCAPE 31
#define LARGE_ESCAPE 65535

enum fate { PUT, UNPUT, KILLED };

struct packet {
	struct frame frame;
	const u8 *bytes;
	enum fate fate;
};

enum column {
	RECORDED, OVERWRITTEN, FULL, WRAPPED, TOO_LARGE, NESTED, NO_BUFFER, PACKETS, BYTES,
	READ_PACKETS, READ_RECORDS, COLUMNS
};

static const char *const column_names[COLUMNS] = {
	"recorded", "overwritten", "full", "wrapped", "too_large", "nested", "no_buffer",
	"packets", "bytes", "read_packets", "read_records"
};

struct cpu {
	u64 fired[STRESS_CONTEXTS];
	u64 stats[COLUMNS];
	int has_stats;
	struct packet *packets;
	size_t count;
	/* While records are looked at: the next number that may come, by context. */
	u64 next[STRESS_CONTEXTS];
};

static struct cpu cpus[MAX_CPUS];
static const char *dir;
static int discard_mode, compact;
static u32 record_id, huge_id;
static const u8 *uuid;
static u64 totals[STRESS_CONTEXTS], total_packets, total_again, total_missing;

/* Where we are, for complaints. */
static int at_cpu;
static const struct packet *at_packet;

static void wrong(const char *format, ...)
{
	va_list args;

	printf("wrong: cpu %d", at_cpu);
	if (at_packet)
		printf(", packet %llu", (unsigned long long)at_packet->frame.packet.sequence);
	printf(": ");
	va_start(args, format);
	vprintf(format, args);
	printf("\n");
	exit(1);
}

#define ULL(x) ((unsigned long long)(x))
#define expect(condition, ...) do { if (!(condition)) wrong(__VA_ARGS__); } while (0)
#define equal(what, a, b) \
	expect((a) == (b), "%s: %llu, not %llu", what, ULL(a), ULL(b))

static FILE *open_file(const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "r");
	expect(file, "cannot read %s", path);
	return file;
}

static void read_fired(void)
{
	FILE *file = open_file("fired");
	unsigned long long number;
	int cpu, context;

	while (fscanf(file, "%d %d %llu", &cpu, &context, &number) == 3) {
		expect(cpu >= 0 && cpu < MAX_CPUS && context < STRESS_CONTEXTS, "fired: %d", cpu);
		cpus[cpu].fired[context] = number;
	}
	fclose(file);
}

/* The table of stats; its columns by their names. */
static void read_stats(void)
{
	FILE *file = open_file("stats");
	enum column order[64];
	char line[4096], *word, *rest;
	int count = 0, i;

	expect(fgets(line, sizeof(line), file), "stats is empty");
	strtok_r(line, " \n", &rest);
	while ((word = strtok_r(NULL, " \n", &rest))) {
		for (i = 0; i < COLUMNS && strcmp(word, column_names[i]); i++)
			;
		order[count++] = i;
	}
	while (fgets(line, sizeof(line), file)) {
		word = strtok_r(line, " \n", &rest);
		if (!strcmp(word, "total"))
			break;
		at_cpu = atoi(word);
		expect(at_cpu < MAX_CPUS, "stats");
		cpus[at_cpu].has_stats = 1;
		for (i = 0; i < count && (word = strtok_r(NULL, " \n", &rest)); i++)
			if (order[i] < COLUMNS)
				cpus[at_cpu].stats[order[i]] = strtoull(word, NULL, 10);
		expect(i == count, "stats: a short line");
	}
	fclose(file);
}

/* Takes one reader's file apart. Only its last packet may be cut off, if it was killed. */
static void take_apart(struct cpu *cpu, const u8 *bytes, size_t size)
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
		cpu->packets = realloc(cpu->packets, (cpu->count + 1) * sizeof(packet));
		expect(cpu->packets, "no memory");
		cpu->packets[cpu->count++] = packet;
	}
}

static void read_packets(struct cpu *cpu)
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
			take_apart(cpu, bytes, stat.st_size);
		}
		close(fd);
	}
}

/* A packet that was got, not put, and got again, is there twice: the first one goes. */
static void merge_again(struct cpu *cpu)
{
	size_t kept = 0, i;

	for (i = 0; i < cpu->count; i++) {
		struct packet *packet = &cpu->packets[i];
		struct packet *last = kept ? &cpu->packets[kept - 1] : NULL;

		at_packet = packet;
		if (last && last->frame.packet.sequence == packet->frame.packet.sequence) {
			expect(last->fate != PUT, "was put, and comes again");
			expect(!memcmp(&last->frame, &packet->frame, sizeof(packet->frame)) &&
			       !memcmp(last->bytes, packet->bytes, packet->frame.packet.size),
			       "is another one when it is got again");
			total_again++;
			kept--;
		}
		cpu->packets[kept++] = *packet;
	}
	cpu->count = kept;
	at_packet = NULL;
}

/* What follows from who fired it and as his how many-th. */
static void check_record(struct cpu *cpu, const struct stress_record *record)
{
	u32 context = record->context;

	expect(record->cpu == (u32)at_cpu, "a record of CPU %u", record->cpu);
	expect(context < STRESS_CONTEXTS, "a record of context %u", context);
	expect(record->check == stress_check(record->cpu, context, record->seq),
	       "record %llu of context %u is torn", ULL(record->seq), context);
	expect(record->mark == STRESS_MARK, "record %llu of context %u has another mark",
	       ULL(record->seq), context);
	expect(record->seq < cpu->fired[context], "record %llu of context %u was never fired",
	       ULL(record->seq), context);
	expect(record->seq >= cpu->next[context],
	       "record %llu of context %u comes twice, or out of order (wanted: %llu or later)",
	       ULL(record->seq), context, ULL(cpu->next[context]));
	cpu->next[context] = record->seq + 1;
	totals[context]++;
}

/* Checks the fields at `at`; how many bytes they are. */
static size_t check_fields(struct cpu *cpu, u32 id, const u8 *at, size_t left)
{
	struct stress_record record;
	size_t end, i;

	expect(left > sizeof(record), "a record is cut off");
	memcpy(&record, at, sizeof(record));
	check_record(cpu, &record);
	if (id == huge_id) {
		expect(stress_is_huge(record.check), "a large record that was a small one");
		end = STRESS_HUGE;
	} else {
		expect(id == record_id, "a record of event %u", id);
		expect(!stress_is_huge(record.check), "a small record that was a large one");
		end = sizeof(record) + stress_text_len(record.check);
	}
	expect(left >= end + (id == record_id), "a record is cut off");
	for (i = sizeof(record); i < end; i++) {
		u8 byte = stress_byte(record.check, i - (id == record_id ? sizeof(record) : 0));

		expect(at[i] == byte, "record %llu of context %u: byte %zu is %#x, not %#x",
		       ULL(record.seq), record.context, i, at[i], byte);
	}
	if (id == record_id)
		expect(at[end++] == 0, "record %llu: no NUL", ULL(record.seq));
	return end;
}

static void check_header(const struct packet *packet, const struct packet_header *header,
			 const struct packet_header *last)
{
	if (!uuid)
		uuid = header->uuid;
	equal("magic", header->magic, PACKET_MAGIC);
	expect(!memcmp(header->uuid, uuid, 16), "another trace's uuid");
	equal("stream_id", header->stream_id, 0);
	equal("cpu_id", header->cpu_id, (u64)at_cpu);
	equal("stream_instance_id", header->stream_instance_id, (u64)at_cpu);
	equal("content", header->content_size, packet->frame.packet.content * 8);
	equal("size", header->packet_size, packet->frame.packet.size * 8);
	equal("size beyond the page", packet->frame.packet.size % PAGE, 0);
	equal("packet_seq_num", header->packet_seq_num, packet->frame.packet.sequence);
	expect(packet->frame.packet.content >= sizeof(*header) &&
	       packet->frame.packet.content <= packet->frame.packet.size, "content");
	expect(header->timestamp_begin <= header->timestamp_end, "ends before it begins");
	if (discard_mode)
		equal("number", header->packet_seq_num, last ? last->packet_seq_num + 1 : 0);
	else
		total_missing += header->packet_seq_num - (last ? last->packet_seq_num + 1 : 0);
	if (!last)
		return;
	expect(header->packet_seq_num > last->packet_seq_num, "number goes back");
	expect(header->timestamp_begin >= last->timestamp_end, "overlaps the one before");
	expect(header->events_discarded >= last->events_discarded, "events_discarded goes back");
}

/* Bytes as they stand, little endian. */
static u64 bytes_at(const u8 *at, size_t bytes)
{
	u64 value = 0;

	memcpy(&value, at, bytes);
	return value;
}

/* The event header at `at`; `last` is the time of the record before. */
static struct event_header event_header(const u8 *at, size_t left, u64 last)
{
	/* Behind the id or its escape: bytes and bits of the short time. */
	size_t begin = compact ? 1 : 2;
	unsigned int escape = compact ? COMPACT_ESCAPE : LARGE_ESCAPE;
	u64 mask = compact ? (1 << 27) - 1 : 0xffffffff;
	struct event_header header;
	u64 low;

	expect(left > (compact ? 4 : 6), "an event header is cut off");
	header.id = compact ? at[0] & 31 : bytes_at(at, 2);
	if (header.id == escape) {
		expect(left > begin + 12, "an event header is cut off");
		header.id = bytes_at(at + begin, 4);
		header.time = bytes_at(at + begin + 4, 8);
		header.size = begin + 12;
	} else {
		low = compact ? bytes_at(at, 4) >> 5 : bytes_at(at + 2, 4);
		header.time = last + ((low - last) & mask);
		header.size = compact ? 4 : 6;
	}
	return header;
}

/* Checks a packet; how many records it has. */
static u64 check_packet(struct cpu *cpu, const struct packet *packet,
			const struct packet_header *last)
{
	const struct packet_header *header = (const void *)packet->bytes;
	const u8 *at = packet->bytes + sizeof(*header);
	const u8 *end = packet->bytes + packet->frame.packet.content;
	u64 time = header->timestamp_begin;
	u64 records = 0;

	check_header(packet, header, last);
	while (at < end) {
		struct event_header event = event_header(at, end - at, time);

		expect(event.time >= time, "time goes back from %llu to %llu", ULL(time),
		       ULL(event.time));
		expect(event.time <= header->timestamp_end, "time %llu after the packet's end",
		       ULL(event.time));
		time = event.time;
		at += event.size;
		at += check_fields(cpu, event.id, at, end - at);
		records++;
	}
	expect(at == end, "the last record goes beyond the packet");
	equal("records", records, packet->frame.packet.records);
	expect(records || header->events_discarded > (last ? last->events_discarded : 0),
	       "empty, and tells nothing");
	return records;
}

/* Whether some of the packets that may or may not have been put have so many records. */
static int some_have(const u64 *records, size_t count, u64 sum)
{
	if (sum == 0)
		return 1;
	if (count == 0)
		return 0;
	return (records[0] <= sum && some_have(records + 1, count - 1, sum - records[0])) ||
	       some_have(records + 1, count - 1, sum);
}

static u64 fired_on(const struct cpu *cpu)
{
	u64 sum = 0;
	int context;

	for (context = 0; context < STRESS_CONTEXTS; context++)
		sum += cpu->fired[context];
	return sum;
}

static void check_counts(const struct cpu *cpu)
{
	const u64 *stats = cpu->stats;

	equal("fired, and recorded + discarded", fired_on(cpu),
	      stats[RECORDED] + stats[FULL] + stats[WRAPPED] + stats[TOO_LARGE] +
	      stats[NESTED] + stats[NO_BUFFER]);
	equal("recorded, and overwritten + read", stats[RECORDED],
	      stats[OVERWRITTEN] + stats[READ_RECORDS]);
	equal("nested", stats[NESTED], 0);
	if (discard_mode)
		equal("overwritten in discard mode", stats[OVERWRITTEN], 0);
	else
		equal("full in overwrite mode", stats[FULL], 0);
}

static void check_cpu(struct cpu *cpu)
{
	const struct packet_header *last = NULL;
	u64 *maybe = calloc(cpu->count + 1, sizeof(*maybe));
	u64 read = 0, put = 0;
	size_t maybes = 0, i;

	check_counts(cpu);
	merge_again(cpu);
	for (i = 0; i < cpu->count; i++) {
		struct packet *packet = &cpu->packets[i];
		u64 records;

		at_packet = packet;
		records = check_packet(cpu, packet, last);
		last = (const void *)packet->bytes;
		if (packet->fate == PUT) {
			read += records;
			put++;
		} else if (packet->fate == KILLED) {
			/* Put just before the kill, or overwritten after it. */
			maybe[maybes++] = records;
		} else {
			expect(!discard_mode, "given back, and gone");
		}
		total_packets++;
	}
	at_packet = NULL;
	if (discard_mode) {
		/* Nobody overwrites it: it was put, or it would have come again. */
		for (i = 0; i < maybes; i++)
			read += maybe[i];
		put += maybes;
		maybes = 0;
	}
	expect(read <= cpu->stats[READ_RECORDS] &&
	       some_have(maybe, maybes, cpu->stats[READ_RECORDS] - read),
	       "records read: the kernel counts %llu, readers got %llu and perhaps those of %zu packets",
	       ULL(cpu->stats[READ_RECORDS]), ULL(read), maybes);
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
	static const char *const contexts[] = { "thread", "softirq", "irq", "nmi", "debug" };
	u64 fired = 0, lost[COLUMNS] = {};
	int i, cpu;

	if (argc != 6 || (strcmp(argv[2], "discard") && strcmp(argv[2], "overwrite")) ||
	    (strcmp(argv[3], "compact") && strcmp(argv[3], "large"))) {
		fprintf(stderr,
			"usage: oracle DIR discard|overwrite compact|large RECORD_ID HUGE_ID\n");
		return 2;
	}
	dir = argv[1];
	discard_mode = !strcmp(argv[2], "discard");
	compact = !strcmp(argv[3], "compact");
	record_id = atoi(argv[4]);
	huge_id = atoi(argv[5]);
	read_fired();
	read_stats();
	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		at_cpu = cpu;
		read_packets(&cpus[cpu]);
		if (!cpus[cpu].has_stats) {
			equal("fired on a CPU without stats", fired_on(&cpus[cpu]), 0);
			continue;
		}
		check_cpu(&cpus[cpu]);
		fired += fired_on(&cpus[cpu]);
		for (i = 0; i < COLUMNS; i++)
			lost[i] += cpus[cpu].stats[i];
	}
	printf("fired=%llu packets=%llu again=%llu missing=%llu", ULL(fired), ULL(total_packets),
	       ULL(total_again), ULL(total_missing));
	for (i = 0; i < COLUMNS; i++)
		printf(" %s=%llu", column_names[i], ULL(lost[i]));
	for (i = 0; i < STRESS_CONTEXTS; i++)
		printf(" %s=%llu", contexts[i], ULL(totals[i]));
	printf("\n");
	return 0;
}
