// SPDX-License-Identifier: GPL-2.0
/*
 * For latency/timer: keeps interrupts off on the CPU on which it is asked to, for about as long as is asked.
 *
 *	insmod rtrace_irqs_off.ko; echo 5000 > /sys/module/rtrace_irqs_off/parameters/us
 *	cat /sys/module/rtrace_irqs_off/parameters/last		"BEGIN END CPU", nanoseconds of the monotonic clock
 */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>

static u64 begin, end;
static int cpu;

/* Interrupts are off from before @begin until after @end. What waits for that is handled in this function. */
static noinline void rtrace_irqs_off(unsigned int us)
{
	unsigned long flags;

	local_irq_save(flags);
	cpu = smp_processor_id();
	begin = ktime_get_mono_fast_ns();
	do
		udelay(10);
	while (ktime_get_mono_fast_ns() - begin < us * (u64)NSEC_PER_USEC);
	end = ktime_get_mono_fast_ns();
	local_irq_restore(flags);
}

static int set_us(const char *text, const struct kernel_param *parameter)
{
	unsigned int us;
	int error = kstrtouint(text, 0, &us);

	if (error)
		return error;
	if (us > USEC_PER_SEC)
		return -EINVAL;
	rtrace_irqs_off(us);
	return 0;
}

static const struct kernel_param_ops us_ops = { .set = set_us };
module_param_cb(us, &us_ops, NULL, 0200);
MODULE_PARM_DESC(us, "how many microseconds to keep interrupts off now, at least; a second at most");

static int get_last(char *to, const struct kernel_param *parameter)
{
	return sysfs_emit(to, "%llu %llu %d\n", begin, end, cpu);
}

static const struct kernel_param_ops last_ops = { .get = get_last };
module_param_cb(last, &last_ops, NULL, 0444);
MODULE_PARM_DESC(last, "when that began and ended, in nanoseconds of the monotonic clock, and its CPU");

MODULE_DESCRIPTION("Keeps interrupts off, for rtrace's tests");
MODULE_LICENSE("GPL");
