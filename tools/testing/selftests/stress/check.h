/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks of the packets of a rtrace_stress trace, CPU by CPU, independent of the reader. Programs include this
 * file, and check one stream after the other (at_cpu).
 */
#ifndef STRESS_CHECK_H
#define STRESS_CHECK_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record.h"

#define MAX_CPUS 512

/* Copied from rust/abi/packet.rs and header.rs, so that a change is noticed. */
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

enum column {
	RECORDED, OVERWRITTEN, FULL, WRAPPED, TOO_LARGE, NESTED, NO_BUFFER, BUSY, PACKETS, BYTES,
	READ_PACKETS, READ_RECORDS, COLUMNS
};

static const char *const column_names[COLUMNS] = {
	"recorded", "overwritten", "full", "wrapped", "too_large", "nested", "no_buffer",
	"busy", "packets", "bytes", "read_packets", "read_records"
};

struct cpu {
	u64 fired[STRESS_CONTEXTS];
	u64 stats[COLUMNS];
	int has_stats;
	/* The next expected number, by context, while records are checked. */
	u64 next[STRESS_CONTEXTS];
};

static const char *dir;
static int discard_mode, compact;
static u32 record_id, huge_id;
static u8 uuid[16];
static int has_uuid;
static u64 totals[STRESS_CONTEXTS], total_packets, total_missing;

/* The current CPU, for messages. */
static int at_cpu;
static const struct packet_header *at_packet;

static void wrong(const char *format, ...)
{
	va_list args;

	printf("wrong: cpu %d", at_cpu);
	if (at_packet)
		printf(", packet %llu", (unsigned long long)at_packet->packet_seq_num);
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

static inline FILE *open_file(const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "r");
	expect(file, "cannot read %s", path);
	return file;
}

static void read_fired(struct cpu *cpus)
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

/* Reads the table of stats, with its columns by name. */
static void read_stats(struct cpu *cpus)
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

/* Checks that the record has the contents that follow from its context and number. */
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

/* Checks the fields at `at`; returns their size in bytes. */
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

static void check_header(const struct packet_header *header, const struct packet_header *last)
{
	if (!has_uuid)
		memcpy(uuid, header->uuid, sizeof(uuid));
	has_uuid = 1;
	equal("magic", header->magic, PACKET_MAGIC);
	expect(!memcmp(header->uuid, uuid, sizeof(uuid)), "another trace's uuid");
	equal("stream_id", header->stream_id, 0);
	equal("cpu_id", header->cpu_id, (u64)at_cpu);
	equal("stream_instance_id", header->stream_instance_id, (u64)at_cpu);
	equal("content beyond the byte", header->content_size % 8, 0);
	equal("size beyond the page", header->packet_size % (sysconf(_SC_PAGESIZE) * 8), 0);
	expect(header->content_size >= sizeof(*header) * 8 &&
	       header->content_size <= header->packet_size, "content");
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

/* Reads a little-endian number. */
static u64 bytes_at(const u8 *at, size_t bytes)
{
	u64 value = 0;

	memcpy(&value, at, bytes);
	return value;
}

/* Decodes the event header at `at`; `last` is the time of the previous record. */
static struct event_header event_header(const u8 *at, size_t left, u64 last)
{
	/* After the id or its escape: bytes and bits of the short time. */
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

/*
 * Checks a complete packet; returns the number of its records. @last is the header of the
 * previous one.
 */
static u64 check_packet(struct cpu *cpu, const struct packet_header *header,
			const struct packet_header *last)
{
	const u8 *at = (const u8 *)(header + 1);
	const u8 *end = (const u8 *)header + header->content_size / 8;
	u64 time = header->timestamp_begin;
	u64 records = 0;

	at_packet = header;
	check_header(header, last);
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
	expect(records || header->events_discarded > (last ? last->events_discarded : 0),
	       "empty, and tells nothing");
	total_packets++;
	return records;
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
	      stats[NESTED] + stats[NO_BUFFER] + stats[BUSY]);
	equal("recorded, and overwritten + read", stats[RECORDED],
	      stats[OVERWRITTEN] + stats[READ_RECORDS]);
	equal("nested", stats[NESTED], 0);
	if (discard_mode)
		equal("overwritten in discard mode", stats[OVERWRITTEN], 0);
	else
		equal("full in overwrite mode", stats[FULL], 0);
}

/* Parses MODE HEADERS RECORD_ID HUGE_ID; returns whether they are valid. */
static int take_arguments(char **argv)
{
	discard_mode = !strcmp(argv[0], "discard");
	compact = !strcmp(argv[1], "compact");
	record_id = atoi(argv[2]);
	huge_id = atoi(argv[3]);
	return (discard_mode || !strcmp(argv[0], "overwrite")) && (compact || !strcmp(argv[1], "large"));
}

/* Prints the totals of all @cpus. */
static void say_totals(const struct cpu *cpus, u64 again)
{
	static const char *const contexts[] = { "thread", "softirq", "irq", "nmi", "debug" };
	u64 fired = 0, sum;
	int i, cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		fired += fired_on(&cpus[cpu]);
	printf("fired=%llu packets=%llu again=%llu missing=%llu", ULL(fired), ULL(total_packets),
	       ULL(again), ULL(total_missing));
	for (i = 0; i < COLUMNS; i++) {
		for (sum = cpu = 0; cpu < MAX_CPUS; cpu++)
			sum += cpus[cpu].stats[i];
		printf(" %s=%llu", column_names[i], ULL(sum));
	}
	for (i = 0; i < STRESS_CONTEXTS; i++)
		printf(" %s=%llu", contexts[i], ULL(totals[i]));
	printf("\n");
}

#endif
