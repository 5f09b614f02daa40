// SPDX-License-Identifier: GPL-2.0
/*
 * For channel/recursion: an event that fires itself while its call stack is taken.
 *
 *	insmod rtrace_recursion.ko; echo 100 > /sys/module/rtrace_recursion/parameters/emit
 *
 * fires recursion:recursion_step 100 times. Each time that this calls __unwind_start(), the event fires once
 * more, from that function's first instruction. emit_irqs_off does so with interrupts disabled. On arm64 it is
 * copy_from_kernel_nofault(), which is called for each frame.
 */
#include <linux/err.h>
#include <linux/ftrace.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include "rtrace.h"

static struct rtrace_event *event;
/* The emitter, and how it emits: a debug kernel takes the stacks of many other threads, and of interrupts. */
static struct task_struct *emitter;
static bool irqs_off;

static notrace void step(void)
{
	static const u8 data;

	rtrace_event_emit(event, &data, sizeof(data), NULL);
}

static notrace void callback(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
			     struct ftrace_regs *regs)
{
	if (READ_ONCE(emitter) == current && in_task() && irqs_disabled() == irqs_off)
		step();
}

/* Without FTRACE_OPS_FL_RECURSION: rtrace must end the recursion, not ftrace. */
static struct ftrace_ops ops = { .func = callback };

static int emit(const char *text)
{
	unsigned int count;
	int error = kstrtouint(text, 0, &count);

	if (error)
		return error;
	if (!event)
		return -ENODEV;
	/* The scheduler's code must not fire it either. */
	preempt_disable();
	irqs_off = irqs_disabled();
	WRITE_ONCE(emitter, current);
	while (count--)
		step();
	WRITE_ONCE(emitter, NULL);
	preempt_enable();
	return 0;
}

static int set_emit(const char *text, const struct kernel_param *parameter)
{
	return emit(text);
}

static int set_emit_irqs_off(const char *text, const struct kernel_param *parameter)
{
	unsigned long flags;
	int error;

	local_irq_save(flags);
	error = emit(text);
	local_irq_restore(flags);
	return error;
}

static const struct kernel_param_ops emit_ops = { .set = set_emit };
module_param_cb(emit, &emit_ops, NULL, 0200);
MODULE_PARM_DESC(emit, "how often to emit the event now");

static const struct kernel_param_ops emit_irqs_off_ops = { .set = set_emit_irqs_off };
module_param_cb(emit_irqs_off, &emit_irqs_off_ops, NULL, 0200);
MODULE_PARM_DESC(emit_irqs_off, "how often to emit it now, with interrupts disabled");

static int __init recursion_init(void)
{
	static const struct rtrace_field field = { "data", RTRACE_UNSIGNED, 1 };
	static const struct rtrace_event_desc desc = {
		.subsystem = "recursion",
		.name = "recursion_step",
		.fields = &field,
		.nr_fields = 1,
	};
#ifdef CONFIG_X86
	static char name[] = "__unwind_start";
#else
	static char name[] = "copy_from_kernel_nofault";
#endif
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
