// SPDX-License-Identifier: GPL-2.0
/*
 * rtrace-events: the events of the kernel's tracepoints, for rtrace. What they are and their probes
 * are in the other objects, one for each header; each puts what it has into the section
 * rtrace_tracepoints, which begins and ends with what first.c and last.c put there: nothing.
 */
#include <linux/kernel.h>
#include <linux/module.h>

#include "probe.h"

extern const struct rtrace_tracepoint rtrace_first[], rtrace_last[];

void rtrace_put_vstring(char *to, size_t size, const char *format, va_list *args)
{
	va_list copy;
	int len;

	if (!size)
		return;
	va_copy(copy, *args);
	len = vscnprintf(to, size, format, copy);
	va_end(copy);
	/* It may have become shorter since it was measured. */
	while (len + 1 < size)
		to[len++] = '#';
	to[size - 1] = '\0';
}

static int __init rtrace_events_init(void)
{
	int known = rtrace_tracepoints_register(rtrace_first, rtrace_last - rtrace_first);

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
