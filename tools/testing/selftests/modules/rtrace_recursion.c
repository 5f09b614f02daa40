// SPDX-License-Identifier: GPL-2.0
/*
 * For channel/recursion: an event that fires itself when its call stack is taken.
 *
 *	insmod rtrace_recursion.ko; echo 100 > /sys/module/rtrace_recursion/parameters/emit
 *
 * emits recursion:recursion_step 100 times, and once more whenever stack_trace_save() is called, from
 * its first instruction.
 */
#include <linux/err.h>
#include <linux/ftrace.h>
#include <linux/kernel.h>
#include <linux/module.h>

#include "rtrace.h"

static struct rtrace_event *event;

static notrace void step(void)
{
	static const u8 data;

	rtrace_event_emit(event, &data, sizeof(data), NULL);
}

static notrace void callback(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
			     struct ftrace_regs *regs)
{
	step();
}

static struct ftrace_ops ops = {
	.func = callback,
	/* ftrace shall not see to it that this ends: rtrace must. */
	.flags = FTRACE_OPS_FL_RECURSION,
};

static int set_emit(const char *text, const struct kernel_param *parameter)
{
	unsigned int count;
	int error = kstrtouint(text, 0, &count);

	if (error)
		return error;
	if (!event)
		return -ENODEV;
	while (count--)
		step();
	return 0;
}

static const struct kernel_param_ops emit_ops = { .set = set_emit };
module_param_cb(emit, &emit_ops, NULL, 0200);
MODULE_PARM_DESC(emit, "how often to emit the event now");

static int __init recursion_init(void)
{
	static const struct rtrace_field field = { "data", RTRACE_UNSIGNED, 1 };
	static const struct rtrace_event_desc desc = {
		.subsystem = "recursion",
		.name = "recursion_step",
		.fields = &field,
		.nr_fields = 1,
	};
	static char name[] = "stack_trace_save";
	int error;

	event = rtrace_event_register(&desc);
	if (IS_ERR(event))
		return PTR_ERR(event);
	error = ftrace_set_filter(&ops, name, strlen(name), 1);
	if (!error)
		error = register_ftrace_function(&ops);
	if (error)
		rtrace_event_unregister(event);
	return error;
}

static void __exit recursion_exit(void)
{
	unregister_ftrace_function(&ops);
	rtrace_event_unregister(event);
}

module_init(recursion_init);
module_exit(recursion_exit);
MODULE_DESCRIPTION("An event that fires itself when its call stack is taken, for rtrace's tests");
MODULE_LICENSE("GPL");
