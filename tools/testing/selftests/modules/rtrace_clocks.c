// SPDX-License-Identifier: GPL-2.0
/*
 * For trace/clock-source and boot/unstable-tsc: a clock source `rtrace`, which follows the time stamp counter until it is told otherwise.
 *
 *	echo 300 > /sys/module/rtrace_clocks/parameters/pause	holds it, and all CPUs, for 300 milliseconds
 *	echo 5000 > /sys/module/rtrace_clocks/parameters/leap	moves it forward by 5000 milliseconds
 *	echo 1 > /sys/module/rtrace_clocks/parameters/distrust	x86-64: marks the time stamp counter unstable, until reboot
 *
 * While this is the kernel's clock source, `pause` acts like a hypervisor that stops a machine and its clocks, except
 * for the time stamp counter; after `leap` the time stamp counter lacks time.
 */
#include <linux/clocksource.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/stop_machine.h>

#include "counter.h"

/* Ticks by which the clock source is ahead of the time stamp counter. Changes while no other CPU runs. */
static u64 ahead;

static u64 read_clock(struct clocksource *source)
{
	return counter_ordered() + ahead;
}

static struct clocksource source = {
	.name = "rtrace",
	.rating = 1,
	.read = read_clock,
	.mask = CLOCKSOURCE_MASK(64),
	.flags = CLOCK_SOURCE_IS_CONTINUOUS | CLOCK_SOURCE_VALID_FOR_HRES,
	.owner = THIS_MODULE,
};

static int hold(void *ms)
{
	u64 begin = counter_ordered();

	mdelay(*(unsigned int *)ms);
	ahead -= counter_ordered() - begin;
	return 0;
}

static int move(void *ms)
{
	ahead += *(unsigned int *)ms * (u64)counter_khz();
	return 0;
}

static int run(const char *text, cpu_stop_fn_t function)
{
	unsigned int ms;
	int error = kstrtouint(text, 0, &ms);

	if (error)
		return error;
	if (ms > 10 * MSEC_PER_SEC)
		return -EINVAL;
	return stop_machine(function, &ms, NULL);
}

static int set_pause(const char *text, const struct kernel_param *parameter)
{
	return run(text, hold);
}

static const struct kernel_param_ops pause_ops = { .set = set_pause };
module_param_cb(pause, &pause_ops, NULL, 0200);
MODULE_PARM_DESC(pause, "how many milliseconds to hold the clock source and all CPUs");

static int set_leap(const char *text, const struct kernel_param *parameter)
{
	return run(text, move);
}

static const struct kernel_param_ops leap_ops = { .set = set_leap };
module_param_cb(leap, &leap_ops, NULL, 0200);
MODULE_PARM_DESC(leap, "how many milliseconds to move the clock source forward");

#ifdef CONFIG_X86
static int set_distrust(const char *text, const struct kernel_param *parameter)
{
	mark_tsc_unstable("as rtrace's tests request");
	return 0;
}

static const struct kernel_param_ops distrust_ops = { .set = set_distrust };
module_param_cb(distrust, &distrust_ops, NULL, 0200);
MODULE_PARM_DESC(distrust, "marks the time stamp counter unstable");
#endif

static int __init add_clock(void)
{
	return clocksource_register_khz(&source, counter_khz());
}
module_init(add_clock);

static void __exit remove_clock(void)
{
	clocksource_unregister(&source);
}
module_exit(remove_clock);

MODULE_DESCRIPTION("A clock source that can be held and moved, for rtrace's tests");
MODULE_LICENSE("GPL");
