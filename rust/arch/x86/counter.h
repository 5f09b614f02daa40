/* SPDX-License-Identifier: GPL-2.0 */
/* The time stamp counter, for rust/sys/clock.c. */
#include <asm/cpufeature.h>
#include <asm/tsc.h>

/* Reads the counter, after all earlier instructions. */
static __always_inline u64 counter_ordered(void)
{
	return rdtsc_ordered();
}

/* Ticks per millisecond. */
static inline u32 counter_khz(void)
{
	return tsc_khz;
}

/*
 * Ticks per second; 0 unless the counter has a constant rate, runs in all idle states, and was not found unstable
 * by the kernel.
 */
static inline u64 counter_frequency(void)
{
	if (!boot_cpu_has(X86_FEATURE_CONSTANT_TSC) || !boot_cpu_has(X86_FEATURE_NONSTOP_TSC) || check_tsc_unstable())
		return 0;
	return 1000ULL * tsc_khz;
}
