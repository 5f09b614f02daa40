// SPDX-License-Identifier: GPL-2.0
/*
 * For latency/timer and latency/preempt: disables interrupts, or preemption, on the CPU that asks, for about
 * the time it asks for; or just keeps the CPU busy.
 *
 *	insmod rtrace_off.ko; echo 5000 > /sys/module/rtrace_off/parameters/irqs	microseconds; so preempt, busy
 *	cat /sys/module/rtrace_off/parameters/last		"BEGIN END CPU", nanoseconds of the monotonic clock
 */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>

static u64 begin, end;
static int cpu;

static __always_inline void wait(unsigned int us)
{
	cpu = raw_smp_processor_id();
	begin = ktime_get_mono_fast_ns();
	do
		udelay(10);
	while (ktime_get_mono_fast_ns() - begin < us * (u64)NSEC_PER_USEC);
	end = ktime_get_mono_fast_ns();
}

/* Interrupts are off from before @begin until after @end. Pending interrupts are handled in this function. */
static noinline void rtrace_irqs_off(unsigned int us)
{
	unsigned long flags;

	local_irq_save(flags);
	wait(us);
	local_irq_restore(flags);
}

/* Preemption is off in the same way. */
static noinline void rtrace_preempt_off(unsigned int us)
{
	preempt_disable();
	wait(us);
	preempt_enable();
}

/* Both stay on. */
static noinline void rtrace_busy(unsigned int us)
{
	wait(us);
}

static int run(const char *text, void (*keep)(unsigned int us))
{
	unsigned int us;
	int error = kstrtouint(text, 0, &us);

	if (error)
		return error;
	if (us > USEC_PER_SEC)
		return -EINVAL;
	keep(us);
	return 0;
}

static int set_irqs(const char *text, const struct kernel_param *parameter)
{
	return run(text, rtrace_irqs_off);
}

static const struct kernel_param_ops irqs_ops = { .set = set_irqs };
module_param_cb(irqs, &irqs_ops, NULL, 0200);
MODULE_PARM_DESC(irqs, "how many microseconds to keep interrupts off now, at least; a second at most");

static int set_preempt(const char *text, const struct kernel_param *parameter)
{
	return run(text, rtrace_preempt_off);
}

static const struct kernel_param_ops preempt_ops = { .set = set_preempt };
module_param_cb(preempt, &preempt_ops, NULL, 0200);
MODULE_PARM_DESC(preempt, "the same of preemption");

static int set_busy(const char *text, const struct kernel_param *parameter)
{
	return run(text, rtrace_busy);
}

static const struct kernel_param_ops busy_ops = { .set = set_busy };
module_param_cb(busy, &busy_ops, NULL, 0200);
MODULE_PARM_DESC(busy, "how many microseconds to stay in the kernel, with neither off");

static int get_last(char *to, const struct kernel_param *parameter)
{
	return sysfs_emit(to, "%llu %llu %d\n", begin, end, cpu);
}

static const struct kernel_param_ops last_ops = { .get = get_last };
module_param_cb(last, &last_ops, NULL, 0444);
MODULE_PARM_DESC(last, "when that began and ended, in nanoseconds of the monotonic clock, and its CPU");

MODULE_DESCRIPTION("Keeps interrupts or preemption off, for rtrace's tests");
MODULE_LICENSE("GPL");
