// SPDX-License-Identifier: GPL-2.0
/* Trace events of the kernel and of modules: their fields, as ftrace and perf record them. */
#include <linux/err.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/trace_events.h>

#include "helpers.h"

#ifdef CONFIG_EVENT_TRACING
/* The kernel's struct ftrace_event_field, which no header defines; see fields_are_as_known(). */
struct trace_field {
	struct list_head link;
	const char *name;
	const char *type;
	int filter_type;
	int offset;
	int size;
	unsigned int is_signed : 1;
	unsigned int needs_test : 1;
	int len;
};

static struct trace_event_call *call_of(const struct rtrace_trace_event *event)
{
	return ((const struct trace_event_file *)event)->event_call;
}

/* The list has the fields in reverse order: the previous entry of the list is the next field of the record. */
static const struct trace_field *field_after(struct trace_event_call *call,
					     const struct trace_field *field)
{
	const struct list_head *fields = trace_get_fields(call);
	const struct list_head *next = field ? field->link.prev : fields->prev;

	return next == fields ? NULL : list_entry(next, struct trace_field, link);
}

/*
 * Whether the kernel's list of fields has the layout of struct trace_field. Compares the list of an event with
 * a public structure that describes the same event.
 */
static bool fields_are_as_known(struct trace_event_call *call)
{
	const struct trace_event_fields *known = call->class->fields_array;
	const struct trace_field *field = NULL;
	size_t end = sizeof(struct trace_entry);

	for (; known->type; known++) {
		field = field_after(call, field);
		if (!field || known->type == TRACE_FUNCTION_TYPE)
			return false;
		end = ALIGN(end, known->align);
		if (field->name != known->name || field->offset != end ||
		    field->size != known->size || field->is_signed != known->is_signed ||
		    field->len != known->len || strncmp(field->type, known->type, 4))
			return false;
		end += known->size;
	}
	return field && !field_after(call, field);
}

/*
 * Whether the event's text casts the field to a pointer to show it. If so, the field is an address, whatever
 * its type. events/main.c has the same rule.
 */
static bool is_shown_as_pointer(const struct trace_event_call *call, const struct trace_field *field)
{
	const char *cast = call->print_fmt;
	size_t len = strlen(field->name);

	while (cast && (cast = strstr(cast, "*)"))) {
		cast = skip_spaces(cast + 2);
		if (!strncmp(cast, "REC->", 5) && !strncmp(cast + 5, field->name, len) &&
		    strchr(",) ", cast[5 + len]))
			return true;
	}
	return false;
}

/*
 * Whether perf receives the event. An event of an event (eprobe) accepts a perf counter, but never triggers it.
 */
static bool is_of_perf(const struct trace_event_call *call)
{
	if (call->class->reg == trace_event_reg)
		return call->class->perf_probe;
	return !(call->flags & TRACE_EVENT_FL_EPROBE);
}

/*
 * Finds the event that ftrace calls @system:@name. Its module stays loaded until rtrace_trace_event_put().
 * Errors: -EINVAL if there is none, -ENODEV if perf does not have it, -EOPNOTSUPP if the layout of this
 * kernel's fields is unknown. May sleep.
 */
notrace struct rtrace_trace_event *rtrace_trace_event_get(const char *system, const char *name)
{
	struct trace_event_file *file = trace_get_event_file(NULL, system, name);
	struct trace_event_file *known;
	int err = 0;

	if (IS_ERR(file))
		return ERR_CAST(file);
	/* An event with fields of several sizes, signed ones and arrays. */
	known = trace_get_event_file(NULL, "sched", "sched_switch");
	if (IS_ERR(known) || !fields_are_as_known(known->event_call))
		err = -EOPNOTSUPP;
	else if (!is_of_perf(file->event_call))
		err = -ENODEV;
	if (!IS_ERR(known))
		trace_put_event_file(known);
	if (!err)
		return (struct rtrace_trace_event *)file;
	trace_put_event_file(file);
	return ERR_PTR(err);
}

notrace void rtrace_trace_event_put(struct rtrace_trace_event *event)
{
	trace_put_event_file((struct trace_event_file *)event);
}

/* perf's id of the event. */
notrace u64 rtrace_trace_event_id(const struct rtrace_trace_event *event)
{
	return call_of(event)->event.type;
}

/*
 * Describes the field after @before, in the order of the record. If @before is NULL, describes the first field
 * after the common ones. Returns the field, as the next @before; NULL if there is none.
 */
notrace const void *rtrace_trace_event_field(const struct rtrace_trace_event *event,
					     const void *before, struct rtrace_trace_field *to)
{
	struct trace_event_call *call = call_of(event);
	const struct trace_field *field = field_after(call, before);

	if (field)
		*to = (struct rtrace_trace_field){
			.name = field->name,
			.type = field->type,
			.offset = field->offset,
			.size = field->size,
			.count = max(field->len, 0),
			.is_signed = field->is_signed,
			.is_address = is_shown_as_pointer(call, field),
		};
	return field;
}

/*
 * Finds a module's own description of its tracepoint's event, valid while the module stays; NULL if there is
 * none. Takes no lock: event_mutex protects the kernel's list of fields, but this description is constant.
 */
notrace const struct rtrace_trace_call *rtrace_module_trace_call(struct module *module,
								 struct tracepoint *tracepoint)
{
	unsigned int at;

	for (at = 0; at < module->num_trace_events; at++) {
		struct trace_event_call *call = module->trace_events[at];

		if (call->flags & TRACE_EVENT_FL_TRACEPOINT && call->tp == tracepoint)
			return (const struct rtrace_trace_call *)call;
	}
	return NULL;
}

notrace const char *rtrace_trace_call_system(const struct rtrace_trace_call *call)
{
	return ((const struct trace_event_call *)call)->class->system;
}

/* Describes the field at index @at, except for its offset. Returns false if there is none. */
notrace bool rtrace_trace_call_field(const struct rtrace_trace_call *call, size_t at,
				     struct rtrace_trace_field *to)
{
	const struct trace_event_fields *field =
		((const struct trace_event_call *)call)->class->fields_array + at;

	if (!field->type || field->type == TRACE_FUNCTION_TYPE)
		return false;
	*to = (struct rtrace_trace_field){
		.name = field->name,
		.type = field->type,
		.size = field->size,
		.count = max(field->len, 0),
		.is_signed = field->is_signed,
	};
	return true;
}
#else
notrace struct rtrace_trace_event *rtrace_trace_event_get(const char *system, const char *name)
{
	return ERR_PTR(-EOPNOTSUPP);
}

notrace void rtrace_trace_event_put(struct rtrace_trace_event *event)
{
}

notrace u64 rtrace_trace_event_id(const struct rtrace_trace_event *event)
{
	return 0;
}

notrace const void *rtrace_trace_event_field(const struct rtrace_trace_event *event,
					     const void *before, struct rtrace_trace_field *to)
{
	return NULL;
}

notrace const struct rtrace_trace_call *rtrace_module_trace_call(struct module *module,
								 struct tracepoint *tracepoint)
{
	return NULL;
}

notrace const char *rtrace_trace_call_system(const struct rtrace_trace_call *call)
{
	return "";
}

notrace bool rtrace_trace_call_field(const struct rtrace_trace_call *call, size_t at,
				     struct rtrace_trace_field *to)
{
	return false;
}
#endif
