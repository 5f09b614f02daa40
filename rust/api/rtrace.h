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
 * struct rtrace_field - a field of an event
 * @name: a C identifier of at most 31 bytes
 * @type: one of enum rtrace_field_type
 * @size: its bytes
 */
struct rtrace_field {
	const char *name;
	u8 type;
	u8 size;
};

/**
 * struct rtrace_event_desc - an event
 * @subsystem: a C identifier of at most 31 bytes
 * @name: a C identifier of at most 63 bytes
 * @fields: its fields, in the order of the record, without padding
 * @nr_fields: how many; at most 16
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

#endif
