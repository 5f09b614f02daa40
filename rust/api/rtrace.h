/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events of other kernel modules in rtrace's traces.
 *
 *	static const struct rtrace_field fields[] = {
 *		{ "seq", RTRACE_UNSIGNED, sizeof(u64) },
 *		{ "cpu", RTRACE_UNSIGNED, sizeof(u32) },
 *	};
 *	static const struct rtrace_event_desc desc = {
 *		.subsystem = "sample", .name = "sample_tick",
 *		.fields = fields, .nr_fields = ARRAY_SIZE(fields),
 *	};
 *
 *	event = rtrace_event_register(&desc);
 *	...
 *	struct { u64 seq; u32 cpu; } __packed record = { ... };
 *	rtrace_event_emit(event, &record, sizeof(record), NULL);
 *
 * The event is then called sample:sample_tick, and is enabled like any other.
 */
#ifndef RTRACE_H
#define RTRACE_H

#include <linux/types.h>

struct module;

/**
 * enum rtrace_field_type - how a field is shown
 * @RTRACE_UNSIGNED: unsigned integer of 1, 2, 4 or 8 bytes
 * @RTRACE_SIGNED: signed integer of 1, 2, 4 or 8 bytes
 * @RTRACE_HEX: unsigned integer of 1, 2, 4 or 8 bytes, in hexadecimal
 * @RTRACE_TEXT: text of up to 255 bytes, padded with NUL
 * @RTRACE_STRING: a string; only the last field may be one. Its size is 0 here.
 * @RTRACE_ADDRESS: an address of the kernel, of 8 bytes; 0 for readers without CAP_SYSLOG
 */
enum rtrace_field_type {
	RTRACE_UNSIGNED,
	RTRACE_SIGNED,
	RTRACE_HEX,
	RTRACE_TEXT,
	RTRACE_STRING,
	RTRACE_ADDRESS,
};

/**
 * struct rtrace_value_name - what a value of a field is called
 * @value: the value; of a flag its bit
 * @name: UTF-8 without control characters; one without a character is passed over
 */
struct rtrace_value_name {
	u64 value;
	const char *name;
};

/**
 * struct rtrace_field - a field of an event
 * @name: a C identifier of at most 31 bytes
 * @type: one of enum rtrace_field_type
 * @size: its bytes; those of an element, if it is an array
 * @count: elements of an array, RTRACE_VARIES if each record has as many as it says in the u32
 *	before them, 0 if it is no array
 * @value_names: what values of an integer are called, for viewers; of several names of one value the first
 *	counts. May be NULL
 * @nr_value_names: how many
 */
struct rtrace_field {
	const char *name;
	u8 type;
	u8 size;
	u16 count;
	const struct rtrace_value_name *value_names;
	size_t nr_value_names;
};

#define RTRACE_VARIES 0xffff

/**
 * struct rtrace_event_desc - an event
 * @subsystem: C identifiers with a - between them, of at most 31 bytes
 * @name: a C identifier of at most 63 bytes
 * @fields: its fields, in the order of the record, without padding
 * @nr_fields: how many; at most 64
 */
struct rtrace_event_desc {
	const char *subsystem;
	const char *name;
	const struct rtrace_field *fields;
	size_t nr_fields;
};

struct rtrace_event;

/**
 * rtrace_event_register() - make an event known
 * @desc: the event; copied
 *
 * An event that was registered before, by this name and with these fields, is the same event
 * again: where it was enabled, it is. May sleep.
 *
 * Return: the event, or ERR_PTR: -EINVAL the description is wrong, -EEXIST there is an event of
 * that name, -ENOMEM, -ENODEV rtrace is being loaded.
 */
struct rtrace_event *rtrace_event_register(const struct rtrace_event_desc *desc);

/**
 * rtrace_event_unregister() - the event will not be emitted any more
 * @event: what rtrace_event_register() returned
 *
 * Before the module goes. May sleep.
 */
void rtrace_event_unregister(struct rtrace_event *event);

/**
 * rtrace_event_enabled() - whether the event is recorded now
 * @event: what rtrace_event_register() returned
 *
 * To save the work of making a record. Any context, NMI included.
 */
bool rtrace_event_enabled(const struct rtrace_event *event);

/**
 * rtrace_event_emit() - record the event, if it is enabled
 * @event: what rtrace_event_register() returned
 * @data: the fields but a string, one after the other without padding
 * @len: their bytes
 * @text: the string; cut off after 255 bytes. NULL if the event has none.
 *
 * Context: any in which RCU watches, NMI included.
 * Return: 0, also if the event is not enabled or the record is lost (which is counted);
 * -EINVAL if @len is not the size of the event's fields.
 */
int rtrace_event_emit(const struct rtrace_event *event, const void *data, size_t len,
		      const char *text);

/**
 * struct rtrace_tracepoint - an event that a tracepoint fires
 * @event: the event; its name is the tracepoint's. In the record the fields of fixed size come before all
 *	others, whatever their order here
 * @owner: the module that @probe is in: THIS_MODULE. It stays as long as the event is recorded
 * @probe: of the tracepoint's prototype, behind a pointer that is for rtrace_record_begin(). Not
 *	traced itself
 */
struct rtrace_tracepoint {
	struct rtrace_event_desc event;
	struct module *owner;
	void *probe;
};

/**
 * rtrace_tracepoints_register() - make the events of tracepoints known
 * @tracepoints: what they are; copied
 * @count: how many
 *
 * Those that the kernel lacks, and those that rtrace has events of its own for, are passed over. May
 * sleep.
 *
 * Return: how many are known now, or -EINVAL, -ENOMEM, -ENODEV as for rtrace_event_register():
 * then none is.
 */
int rtrace_tracepoints_register(const struct rtrace_tracepoint *tracepoints, size_t count);

/**
 * rtrace_tracepoints_unregister() - the probes of a module go
 * @owner: the module: THIS_MODULE
 *
 * When it is unloaded; so none of its events is recorded. May sleep.
 */
void rtrace_tracepoints_unregister(struct module *owner);

/**
 * struct rtrace_record - a record that is being laid down
 */
struct rtrace_record {
	unsigned long opaque[138];
};

/**
 * rtrace_record_begin() - get the space of a record
 * @data: what a probe of struct rtrace_tracepoint was called with
 * @record: kept for rtrace_record_end()
 * @len: bytes
 *
 * Preemption may be disabled from here to rtrace_record_end(). Any context, NMI included.
 *
 * Return: where all of these bytes must be put now; NULL if nothing is recorded: then there is
 * nothing to end.
 */
void *rtrace_record_begin(const void *data, struct rtrace_record *record, size_t len);

/**
 * rtrace_record_end() - the record is complete
 * @record: what rtrace_record_begin() filled
 */
void rtrace_record_end(struct rtrace_record *record);

#endif
