// SPDX-License-Identifier: GPL-2.0
/* Call stacks of the kernel, and frames of user space. NMI-safe. */
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>
#include <asm/unwind.h>

#include "helpers.h"

/*
 * Takes the stack of the kernel code that was interrupted with these registers, the innermost address first.
 * Returns the number of addresses; 0 if a program was interrupted. Does the same as arch_stack_walk(), which is
 * not exported. NMI-safe.
 */
notrace u32 rtrace_kernel_stack(struct pt_regs *regs, u64 *addresses, u32 room)
{
	struct unwind_state state;
	unsigned long address;
	u32 taken = 0;

	if (user_mode(regs) || !room)
		return 0;
	addresses[taken++] = instruction_pointer(regs);
	for (unwind_start(&state, current, regs, NULL); !unwind_done(&state) && taken < room;
	     unwind_next_frame(&state)) {
		address = unwind_get_return_address(&state);
		if (!address)
			break;
		addresses[taken++] = address;
	}
	return taken;
}

/* Reads the frame in which the current task left user space; false if it has none. NMI-safe. */
notrace bool rtrace_user_frame(struct rtrace_user_frame *frame)
{
	struct pt_regs *regs;

	if (current->flags & (PF_KTHREAD | PF_USER_WORKER) || !current->mm)
		return false;
	regs = task_pt_regs(current);
	frame->ip = instruction_pointer(regs);
	frame->fp = frame_pointer(regs);
	frame->word = user_64bit_mode(regs) ? 8 : 4;
	return true;
}

/*
 * Replaces @frame by its caller's frame, following the frame pointer. Returns false if the memory cannot be
 * read without a fault; @frame is then meaningless. NMI-safe.
 */
notrace bool rtrace_caller_frame(struct rtrace_user_frame *frame)
{
	const void __user *at = (const void __user *)(unsigned long)frame->fp;
	u64 wide[2];
	u32 narrow[2];

	if (frame->fp % frame->word)
		return false;
	if (frame->word == 8) {
		if (copy_from_user_nofault(wide, at, sizeof(wide)))
			return false;
		frame->fp = wide[0];
		frame->ip = wide[1];
	} else {
		if (copy_from_user_nofault(narrow, at, sizeof(narrow)))
			return false;
		frame->fp = narrow[0];
		frame->ip = narrow[1];
	}
	return true;
}
