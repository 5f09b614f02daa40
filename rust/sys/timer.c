// SPDX-License-Identifier: GPL-2.0
/* High-resolution timers: functions for their callbacks. */
#include <linux/hrtimer.h>
#include <asm/irq_regs.h>

#include "helpers.h"
#include "linux.h"

/* Sets up a timer that calls @function in hard interrupt context, on the CPU that starts it. */
notrace void rtrace_hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *timer))
{
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
}

/* Expiry time of the timer, by the timer's clock. For its callback. */
notrace u64 rtrace_hrtimer_due(const struct hrtimer *timer)
{
	return ktime_to_ns(hrtimer_get_expires(timer));
}

/* Registers of the code that the current interrupt has interrupted; or NULL. */
notrace struct pt_regs *rtrace_interrupted(void)
{
	return get_irq_regs();
}

/*
 * Restarts the timer for one period. For its callback. A C helper, because the names that bindgen gives the
 * result differ between kernels.
 */
notrace enum hrtimer_restart rtrace_hrtimer_again(struct hrtimer *timer, s64 period_ns)
{
	hrtimer_forward_now(timer, ns_to_ktime(period_ns));
	return HRTIMER_RESTART;
}
