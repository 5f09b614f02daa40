// SPDX-License-Identifier: GPL-2.0
/*
 * For events/fields and module/permissions: registers fields:fields_many, an event with COUNT fields of one
 * byte each. On request it also has an address of SIZE bytes, and a signed byte whose values have names, the
 * last of them NAME. The event never fires.
 *
 *	insmod rtrace_fields.ko count=N [address=SIZE] [named=NAME]
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

static char *named;
module_param(named, charp, 0444);
MODULE_PARM_DESC(named, "a field behind them, with names of values; what 7 is called there");

static struct rtrace_event *event;

static int __init fields_init(void)
{
	static char names[MOST][8];
	static struct rtrace_field fields[MOST + 2];
	const struct rtrace_value_name value_names[] = {
		{ 0, "none" }, { -1, "all \"of\" them" }, { 0, "another none" }, { 5, "" }, { 0xfe, "two\\less" },
		{ 7, named },
	};
	struct rtrace_event_desc desc = {
		.subsystem = "fields",
		.name = "fields_many",
		.fields = fields,
		.nr_fields = count,
	};
	unsigned int i;

	if (count > MOST)
		return -E2BIG;
	for (i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "f%u", i);
		fields[i] = (struct rtrace_field){ names[i], RTRACE_UNSIGNED, 1 };
	}
	if (address)
		fields[desc.nr_fields++] = (struct rtrace_field){ "where", RTRACE_ADDRESS, address };
	if (named)
		fields[desc.nr_fields++] = (struct rtrace_field){
			"state", RTRACE_SIGNED, 1, 0, value_names, ARRAY_SIZE(value_names)
		};
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
