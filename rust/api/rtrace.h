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
 * enum rtrace_field_type - kind of a field's value
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
 * struct rtrace_value_name - name of a field's value
 * @value: the value; for a flag, its bit
 * @name: UTF-8 without control characters; an empty name is ignored
 */
struct rtrace_value_name {
	u64 value;
	const char *name;
};

/**
 * struct rtrace_field - field of an event
 * @name: C identifier of at most 31 bytes
 * @type: one of enum rtrace_field_type
 * @size: size in bytes; for an array, that of an element
 * @count: number of elements of an array; RTRACE_VARIES if each record has its own number, in a u32
 *	before the elements; 0 if the field is not an array
 * @value_names: names of an integer's values, for viewers. If a value has several names, the first one
 *	counts. May be NULL
 * @nr_value_names: number of these names
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
 * struct rtrace_event_desc - description of an event
 * @subsystem: C identifiers with a - between them, of at most 31 bytes
 * @name: C identifier of at most 63 bytes
 * @fields: its fields, in the order of the record, without padding
 * @nr_fields: number of fields, at most 64
 */
struct rtrace_event_desc {
	const char *subsystem;
	const char *name;
	const struct rtrace_field *fields;
	size_t nr_fields;
};

struct rtrace_event;

/**
 * rtrace_event_register() - register an event
 * @desc: the event; copied
 *
 * If an event of this name and with these fields was registered before, it is the same event again, and
 * sessions that enabled it still do. May sleep.
 *
 * Return: the event, or ERR_PTR: -EINVAL if the description is wrong, -EEXIST if the name is in use, -ENOMEM,
 * -ENODEV if rtrace is being loaded.
 */
struct rtrace_event *rtrace_event_register(const struct rtrace_event_desc *desc);

/**
 * rtrace_event_unregister() - unregister an event
 * @event: result of rtrace_event_register()
 *
 * Must be called before the module is unloaded. May sleep.
 */
void rtrace_event_unregister(struct rtrace_event *event);

/**
 * rtrace_event_enabled() - whether the event is recorded now
 * @event: result of rtrace_event_register()
 *
 * Allows the caller to skip the preparation of a record. Any context, NMI included.
 */
bool rtrace_event_enabled(const struct rtrace_event *event);

/**
 * rtrace_event_emit() - record the event, if it is enabled
 * @event: result of rtrace_event_register()
 * @data: the fields except a string, one after the other without padding
 * @len: number of these bytes
 * @text: the string; cut off after 255 bytes. NULL if the event has none
 *
 * Context: any in which RCU watches, NMI included.
 * Return: 0, even if the event is not enabled or the record is lost (which is counted);
 * -EINVAL if @len is not the size of the event's fields.
 */
int rtrace_event_emit(const struct rtrace_event *event, const void *data, size_t len,
		      const char *text);

/**
 * struct rtrace_tracepoint - event of a tracepoint
 * @event: the event; its name is the tracepoint's. In the record, the fields of fixed size precede all
 *	others, whatever their order here
 * @owner: the module that has @probe: THIS_MODULE. It stays loaded while the event is recorded
 * @probe: function of the tracepoint's prototype. Its first argument is a pointer for
 *	rtrace_record_begin(). It must not be traced
 * @module: NULL if the tracepoint must be the kernel's own. Otherwise it may also be that of a module, loaded or
 *	not: of the module with this name, or of any module that was built with the kernel
 *	(RTRACE_KERNEL_MODULES). Other modules may use other arguments for a tracepoint of the same name
 */
struct rtrace_tracepoint {
	struct rtrace_event_desc event;
	struct module *owner;
	void *probe;
	const char *module;
};

#define RTRACE_KERNEL_MODULES ""

/**
 * rtrace_tracepoints_register() - register the events of tracepoints
 * @tracepoints: the events; copied, except those of modules, which must stay unchanged until
 *	rtrace_tracepoints_unregister()
 * @count: number of events; all must be of one module
 *
 * Tracepoints that the kernel lacks are skipped, and so are those for which rtrace has its own events. An event of a
 * module's tracepoint is present while that module is loaded, if it has the fields that ftrace has for it. May sleep.
 *
 * Return: the number of events that are known now, including those of modules that are not loaded; or -EINVAL,
 * -ENOMEM, -ENODEV as for rtrace_event_register(), and then no event is registered.
 */
int rtrace_tracepoints_register(const struct rtrace_tracepoint *tracepoints, size_t count);

/**
 * rtrace_tracepoints_unregister() - unregister the probes of a module
 * @owner: the module: THIS_MODULE
 *
 * Called when the module is unloaded, so that none of its events is recorded. May sleep.
 */
void rtrace_tracepoints_unregister(struct module *owner);

/**
 * struct rtrace_record - a record that is being written
 */
struct rtrace_record {
	unsigned long opaque[138];
};

/**
 * rtrace_record_begin() - reserve the space of a record
 * @data: first argument of a probe of struct rtrace_tracepoint
 * @record: state for rtrace_record_end()
 * @len: size of the record in bytes
 *
 * Preemption may be disabled until rtrace_record_end(). Any context, NMI included.
 *
 * Return: address at which the caller must now write all of these bytes; NULL if nothing is recorded, and then
 * rtrace_record_end() must not be called.
 */
void *rtrace_record_begin(const void *data, struct rtrace_record *record, size_t len);

/**
 * rtrace_record_end() - commit a record
 * @record: state from rtrace_record_begin()
 */
void rtrace_record_end(struct rtrace_record *record);

/*
 * Large chunks of raw bytes, stored beside a trace's events: the output of a hardware tracer, or a
 * firmware's log. A session's channel has an area for them on each CPU, if its aux_size is not 0.
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
 * Each chunk is an event, here sample:sample_aux, which is enabled like any other. It contains the position of
 * the chunk in the CPU's stream of bytes. A chunk ends at the end of the area, or at the end of the free room.
 * So it may be shorter than requested. Call again for the rest; bytes that find no room then are counted as lost.
 */

/**
 * struct rtrace_aux_desc - description of a source of chunks
 * @subsystem: as in struct rtrace_event_desc
 * @name: name of the event that each chunk is
 */
struct rtrace_aux_desc {
	const char *subsystem;
	const char *name;
};

struct rtrace_aux;

/**
 * struct rtrace_aux_handle - a chunk that is being written
 * @size: size of the chunk in bytes; read-only
 */
struct rtrace_aux_handle {
	size_t size;
	unsigned long opaque[4];
};

/* Flags of rtrace_aux_end(), and of the event. */
#define RTRACE_AUX_TRUNCATED	0x1	/* bytes are missing before the chunk or at its end: there was no room */
#define RTRACE_AUX_OVERWRITE	0x2	/* the area overwrites its oldest bytes; only in the event */
#define RTRACE_AUX_PARTIAL	0x4	/* bytes are missing inside the chunk */
#define RTRACE_AUX_COLLISION	0x8	/* another request came while the chunk was open */

/**
 * rtrace_aux_register() - register a source of chunks
 * @desc: the source; copied
 *
 * May sleep.
 *
 * Return: as rtrace_event_register().
 */
struct rtrace_aux *rtrace_aux_register(const struct rtrace_aux_desc *desc);

/**
 * rtrace_aux_unregister() - unregister a source of chunks
 * @aux: result of rtrace_aux_register()
 *
 * Each of its chunks must have ended. Must be called before the module is unloaded. May sleep.
 */
void rtrace_aux_unregister(struct rtrace_aux *aux);

/**
 * rtrace_aux_begin() - begin a chunk in this CPU's area
 * @aux: result of rtrace_aux_register()
 * @handle: state for rtrace_aux_end()
 * @wanted: number of bytes to write; 0: as many as there is room for, which suits a hardware tracer. Bytes that
 *	find no room are counted as lost only if this is not 0. In overwrite mode the chunk takes the place of as
 *	many of the oldest bytes, so request no more than needed
 *
 * The caller owns the bytes until rtrace_aux_end(), even if the recording is stopped or the CPU goes offline before
 * that. A device or any CPU may write them, in any context. A source has at most one chunk at a time on a CPU, and
 * so has an area.
 *
 * Context: any in which RCU watches, NMI included.
 * Return: address of the chunk; NULL if the event is not recorded, there is no room, or a chunk is open already.
 */
void *rtrace_aux_begin(struct rtrace_aux *aux, struct rtrace_aux_handle *handle, size_t wanted);

/**
 * rtrace_aux_end() - end a chunk
 * @aux: result of rtrace_aux_register()
 * @handle: state from rtrace_aux_begin()
 * @written: number of bytes written, from the first one on; all of these stores must precede this call
 * @flags: 0, or flags of the chunk for the event, except RTRACE_AUX_OVERWRITE
 *
 * Records the event of the chunk, in the stream of the CPU that runs this. If the recording was stopped since
 * rtrace_aux_begin(), the chunk is lost, and counted.
 *
 * Context: any in which RCU watches, NMI included; any CPU.
 * Return: 0; -EINVAL if @written is more than @handle->size, @flags has other bits, or the chunk has ended:
 * then nothing is recorded.
 */
int rtrace_aux_end(struct rtrace_aux *aux, struct rtrace_aux_handle *handle, size_t written,
		   unsigned long flags);

#endif
