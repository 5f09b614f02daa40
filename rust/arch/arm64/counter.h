/* SPDX-License-Identifier: GPL-2.0 */
/* The generic timer's virtual counter, for rust/sys/clock.c. */
#include <linux/cpumask.h>
#include <linux/percpu.h>
#include <asm/arch_timer.h>

/* Reads the counter, after all earlier instructions. */
static __always_inline u64 counter_ordered(void)
{
	return __arch_counter_get_cntvct();
}

/*
 * Ticks per second; 0 if the counter of a CPU has an erratum. The architecture says that the counter has a constant
 * rate and never stops. Firmware writes the rate to a register.
 */
static inline u64 counter_frequency(void)
{
#ifdef CONFIG_ARM_ARCH_TIMER_OOL_WORKAROUND
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct arch_timer_erratum_workaround *workaround = per_cpu(timer_unstable_counter_workaround, cpu);

		if (workaround && workaround->read_cntvct_el0)
			return 0;
	}
#endif
	return arch_timer_get_cntfrq();
}

/* Whether the kernel has not found the counter unstable so far. Errata are known before a module is loaded. */
static __always_inline bool counter_is_trusted(void)
{
	return true;
}

/* Ticks per millisecond. */
static inline u32 counter_khz(void)
{
	return arch_timer_get_cntfrq() / 1000;
}
