// SPDX-License-Identifier: GPL-2.0
/*
 * rtrace-events: the events of the kernel's tracepoints, for rtrace. What they are and their probes
 * are in the other objects, one for each header; each puts what it has into two sections, which begin
 * and end with what first.c and last.c put there: nothing.
 */
#include <linux/kernel.h>
#include <linux/module.h>

#include "probe.h"

extern const struct rtrace_tracepoint rtrace_first[], rtrace_last[];
extern const struct rtrace_print rtrace_first_print[], rtrace_last_print[];

void rtrace_put_vstring(void *entry, struct rtrace_part *part, const char *format, va_list *args)
{
	char *to = entry + part->offset;
	va_list copy;
	size_t len;

	va_copy(copy, *args);
	len = vscnprintf(to, part->size, format, copy);
	va_end(copy);
	/* It may have become shorter since it was measured. */
	while (len + 1 < part->size)
		to[len++] = '#';
	to[len] = '\0';
	part->is_put = true;
}

/*
 * Whether the text casts the field to a pointer before it is shown: then it is an address, whatever its
 * type.
 */
static bool __init rtrace_is_address(const char *text, const char *field)
{
	char pattern[48];
	const char *cast;
	int len = scnprintf(pattern, sizeof(pattern), "entry->%s", field);

	for (cast = text; (cast = strstr(cast, "*)")); ) {
		cast = skip_spaces(cast + 2);
		if (!strncmp(cast, pattern, len) && strchr(",) ", cast[len]))
			return true;
	}
	return false;
}

static void __init rtrace_find_addresses(const struct rtrace_print *print)
{
	struct rtrace_field *field;

	for (field = print->fields; field < print->fields + print->nr_fields; field++)
		if (field->type == RTRACE_UNSIGNED && field->size == sizeof(long) && !field->count &&
		    rtrace_is_address(print->text, field->name))
			field->type = RTRACE_ADDRESS;
}

static int __init rtrace_events_init(void)
{
	const struct rtrace_print *print;
	int known;

	for (print = rtrace_first_print; print < rtrace_last_print; print++)
		rtrace_find_addresses(print);
	known = rtrace_tracepoints_register(rtrace_first, rtrace_last - rtrace_first);
	if (known < 0)
		return known;
	pr_info("%d events of tracepoints\n", known);
	return 0;
}

static void __exit rtrace_events_exit(void)
{
	rtrace_tracepoints_unregister(THIS_MODULE);
}

module_init(rtrace_events_init);
module_exit(rtrace_events_exit);
MODULE_DESCRIPTION("Events of the kernel's tracepoints, for rtrace");
MODULE_LICENSE("GPL");
