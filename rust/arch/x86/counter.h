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

/* Whether the kernel has not found the counter unstable so far. Any context. */
static __always_inline bool counter_is_trusted(void)
{
	return !check_tsc_unstable();
}

/* Ticks per second; 0 unless the counter is trusted, has a constant rate, and runs in all idle states. */
static inline u64 counter_frequency(void)
{
	if (!boot_cpu_has(X86_FEATURE_CONSTANT_TSC) || !boot_cpu_has(X86_FEATURE_NONSTOP_TSC) || !counter_is_trusted())
		return 0;
	return 1000ULL * tsc_khz;
}
