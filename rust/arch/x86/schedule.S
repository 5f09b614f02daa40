/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/linkage.h>

/*
 * Jumps to the scheduler, through the kernel's static call if it has one. The scheduler's
 * function saves all registers.
 *
 * All probes share this function, because the kernel patches each call site of a static call when
 * the module is loaded, and synchronizes all CPUs each time.
 */
	.pushsection .kprobes.text, "ax"
SYM_FUNC_START(rtrace_preempt_schedule)
#ifdef CONFIG_PREEMPT_DYNAMIC
	jmp	__SCT__preempt_schedule_notrace
#else
	jmp	preempt_schedule_notrace_thunk
#endif
SYM_FUNC_END(rtrace_preempt_schedule)
	.popsection
