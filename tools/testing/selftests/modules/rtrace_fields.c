// SPDX-License-Identifier: GPL-2.0
/*
 * For events/fields and module/permissions: registers fields:fields_many, an event of as many
 * fields as asked for, one byte each, and, if asked, an address of so many bytes. It is never
 * emitted.
 *
 *	insmod rtrace_fields.ko count=N [address=SIZE]
 */
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/module.h>

#include "rtrace.h"

#define MOST 96

static unsigned int count = 1;
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "fields of the event");

static unsigned char address;
module_param(address, byte, 0444);
MODULE_PARM_DESC(address, "bytes of the address behind them, if not 0");

static struct rtrace_event *event;

static int __init fields_init(void)
{
	static char names[MOST][8];
	static struct rtrace_field fields[MOST + 1];
	const struct rtrace_event_desc desc = {
		.subsystem = "fields",
		.name = "fields_many",
		.fields = fields,
		.nr_fields = count + (address ? 1 : 0),
	};
	unsigned int i;

	if (count > MOST)
		return -E2BIG;
	for (i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "f%u", i);
		fields[i] = (struct rtrace_field){ names[i], RTRACE_UNSIGNED, 1 };
	}
	if (address)
		fields[count] = (struct rtrace_field){ "where", RTRACE_ADDRESS, address };
	event = rtrace_event_register(&desc);
	return PTR_ERR_OR_ZERO(event);
}

static void __exit fields_exit(void)
{
	rtrace_event_unregister(event);
}

module_init(fields_init);
module_exit(fields_exit);
MODULE_DESCRIPTION("An event of many fields, for rtrace's tests");
MODULE_LICENSE("GPL");
