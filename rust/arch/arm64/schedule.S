/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/linkage.h>
#include <asm/assembler.h>

/* Calls the scheduler, and preserves all registers except x30. (The kernel has no such function.) */
	.pushsection .kprobes.text, "ax"
SYM_FUNC_START(rtrace_preempt_schedule)
	stp	x29, x30, [sp, #-176]!
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	stp	x2, x3, [sp, #32]
	stp	x4, x5, [sp, #48]
	stp	x6, x7, [sp, #64]
	stp	x8, x9, [sp, #80]
	stp	x10, x11, [sp, #96]
	stp	x12, x13, [sp, #112]
	stp	x14, x15, [sp, #128]
	stp	x16, x17, [sp, #144]
	mrs	x0, nzcv
	stp	x18, x0, [sp, #160]
	bl	preempt_schedule_notrace
	ldp	x18, x0, [sp, #160]
	msr	nzcv, x0
	ldp	x16, x17, [sp, #144]
	ldp	x14, x15, [sp, #128]
	ldp	x12, x13, [sp, #112]
	ldp	x10, x11, [sp, #96]
	ldp	x8, x9, [sp, #80]
	ldp	x6, x7, [sp, #64]
	ldp	x4, x5, [sp, #48]
	ldp	x2, x3, [sp, #32]
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #176
	ret
SYM_FUNC_END(rtrace_preempt_schedule)
	.popsection
