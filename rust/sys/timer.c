// SPDX-License-Identifier: GPL-2.0
/* High-resolution timers, from within their callback. */
#include <linux/hrtimer.h>
#include <asm/irq_regs.h>

#include "helpers.h"

/* For a timer's callback: when it was due, by the timer's clock. */
notrace u64 rtrace_hrtimer_due(const struct hrtimer *timer)
{
	return ktime_to_ns(hrtimer_get_expires(timer));
}

/* Of the code that the interrupt has interrupted in which this is called; or NULL. */
notrace struct pt_regs *rtrace_interrupted(void)
{
	return get_irq_regs();
}

/*
 * For a timer's callback: let it run again one period later. What bindgen makes of the
 * result's names differs between kernels.
 */
notrace enum hrtimer_restart rtrace_hrtimer_again(struct hrtimer *timer, s64 period_ns)
{
	hrtimer_forward_now(timer, ns_to_ktime(period_ns));
	return HRTIMER_RESTART;
}
