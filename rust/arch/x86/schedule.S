/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/linkage.h>

/*
 * To the scheduler, by way of the kernel's static call where there is one. It saves all registers.
 *
 * One place for all probes, because the kernel patches each call of a static call when the module
 * is loaded, and has all CPUs take notice each time.
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
