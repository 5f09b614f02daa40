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
 * @module: NULL, if the tracepoint is the kernel's, not a module's. Else it may be that of a module, loaded or not:
 *	of the one that is called so; or of any that was built with the kernel (RTRACE_KERNEL_MODULES), as one from
 *	elsewhere may have other arguments for it
 */
struct rtrace_tracepoint {
	struct rtrace_event_desc event;
	struct module *owner;
	void *probe;
	const char *module;
};

#define RTRACE_KERNEL_MODULES ""

/**
 * rtrace_tracepoints_register() - make the events of tracepoints known
 * @tracepoints: what they are; copied, but for those of modules, which stay as they are until
 *	rtrace_tracepoints_unregister()
 * @count: how many; all of one module
 *
 * Those that the kernel lacks, and those that rtrace has events of its own for, are passed over. An event of a
 * module's tracepoint is there while that module is, if it has the fields that ftrace has for it. May sleep.
 *
 * Return: how many are known now, with those of modules that are not loaded, or -EINVAL, -ENOMEM, -ENODEV as for
 * rtrace_event_register(): then none is.
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

/*
 * Large chunks of raw bytes, beside a trace's events: what a hardware tracer has written, or a
 * firmware's log. A session's channel has an area for them on each CPU, if its aux_size says so.
 *
 *	static const struct rtrace_aux_desc desc = { .subsystem = "sample", .name = "sample_aux" };
 *
 *	aux = rtrace_aux_register(&desc);
 *	...
 *	while (len) {
 *		struct rtrace_aux_handle handle;
 *		void *to = rtrace_aux_begin(aux, &handle, len);
 *
 *		if (!to)
 *			break;
 *		memcpy(to, from, handle.size);
 *		from += handle.size;
 *		len -= handle.size;
 *		rtrace_aux_end(aux, &handle, handle.size, 0);
 *	}
 *
 * Each chunk is an event, here sample:sample_aux, which is enabled like any other and says where the
 * chunk lies in the CPU's stream of bytes. A chunk ends where the area does, or where its room ends: it may
 * be shorter than what was asked for. Ask again for the rest; what has no room then is counted as lost.
 */

/**
 * struct rtrace_aux_desc - what writes chunks
 * @subsystem: as of struct rtrace_event_desc
 * @name: that of the event that each chunk is
 */
struct rtrace_aux_desc {
	const char *subsystem;
	const char *name;
};

struct rtrace_aux;

/**
 * struct rtrace_aux_handle - a chunk that is being written
 * @size: the bytes that are there for it; not to be changed
 */
struct rtrace_aux_handle {
	size_t size;
	unsigned long opaque[4];
};

/* Flags of rtrace_aux_end(), and of the event. */
#define RTRACE_AUX_TRUNCATED	0x1	/* something is missing before the chunk or at its end: there was no room */
#define RTRACE_AUX_OVERWRITE	0x2	/* the area overwrites its oldest bytes; only in the event */
#define RTRACE_AUX_PARTIAL	0x4	/* something is missing in the chunk */
#define RTRACE_AUX_COLLISION	0x8	/* somebody else wanted to write meanwhile */

/**
 * rtrace_aux_register() - make it known that a module writes chunks
 * @desc: what it is; copied
 *
 * May sleep.
 *
 * Return: as rtrace_event_register().
 */
struct rtrace_aux *rtrace_aux_register(const struct rtrace_aux_desc *desc);

/**
 * rtrace_aux_unregister() - the module writes no more chunks
 * @aux: what rtrace_aux_register() returned
 *
 * Every chunk has ended. Before the module goes. May sleep.
 */
void rtrace_aux_unregister(struct rtrace_aux *aux);

/**
 * rtrace_aux_begin() - begin a chunk in this CPU's area
 * @aux: what rtrace_aux_register() returned
 * @handle: kept for rtrace_aux_end()
 * @wanted: the bytes that are to be written; 0: as many as there is room for, as a hardware tracer
 *	needs. What finds no room is counted as lost only if this is not 0. In overwrite mode as many of the
 *	oldest bytes are gone then: say no more than is needed
 *
 * The bytes are the caller's until rtrace_aux_end(): also when the recording is stopped meanwhile, or
 * the CPU goes offline. They may be written by a device, by any CPU, in any context. A source has one
 * chunk at a time on a CPU, and so has an area.
 *
 * Context: any in which RCU watches, NMI included.
 * Return: where they are; NULL if it is not recorded, or there is no room, or a chunk already.
 */
void *rtrace_aux_begin(struct rtrace_aux *aux, struct rtrace_aux_handle *handle, size_t wanted);

/**
 * rtrace_aux_end() - the chunk is written
 * @aux: what rtrace_aux_register() returned
 * @handle: what rtrace_aux_begin() filled
 * @written: how many of its first bytes; all of these stores come before this call
 * @flags: 0, or what else is to be said of the chunk
 *
 * Records the event of the chunk, in the stream of the CPU that this runs on. If the recording was
 * stopped meanwhile the chunk is lost, and counted.
 *
 * Context: any in which RCU watches, NMI included; any CPU.
 * Return: 0; -EINVAL if @written is more than @handle->size, @flags has others, or the chunk has ended:
 * nothing is recorded.
 */
int rtrace_aux_end(struct rtrace_aux *aux, struct rtrace_aux_handle *handle, size_t written,
		   unsigned long flags);

#endif
