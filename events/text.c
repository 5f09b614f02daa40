// SPDX-License-Identifier: GPL-2.0
/*
 * Code for rare texts of records, and for texts that change while they are recorded.
 */
#include <linux/sprintf.h>

#include "probe.h"

notrace __section(".kprobes.text")
void rtrace_put_bytes(char *to, const char *from, size_t len)
{
	size_t i;

	for (i = 0; i < len && from[i]; i++)
		to[i] = from[i];
	for (; i < len; i++)
		to[i] = '#';
	to[i] = '\0';
}

void rtrace_put_vstring(void *entry, struct rtrace_part *part, const char *format, va_list *args)
{
	char *to = entry + part->offset;
	va_list copy;
	size_t len;

	va_copy(copy, *args);
	len = vscnprintf(to, part->size, format, copy);
	va_end(copy);
	/* The text may have become shorter since it was measured. */
	while (len + 1 < part->size)
		to[len++] = '#';
	to[len] = '\0';
	part->is_put = true;
}
