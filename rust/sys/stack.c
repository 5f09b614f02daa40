// SPDX-License-Identifier: GPL-2.0
/* Call stacks of the kernel, and frames of user space. NMI-safe. */
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>
#include <asm/segment.h>
#include <asm/unwind.h>

#include "helpers.h"

/*
 * Stores the return addresses of the kernel's code that has these registers, the innermost first, as
 * arch_stack_walk(), which is not exported.
 */
static notrace u32 walk(struct pt_regs *regs, u64 *addresses, u32 room)
{
	struct unwind_state state;
	unsigned long address;
	u32 taken = 0;

	for (unwind_start(&state, current, regs, NULL); !unwind_done(&state) && taken < room;
	     unwind_next_frame(&state)) {
		address = unwind_get_return_address(&state);
		if (!address)
			break;
		addresses[taken++] = address;
	}
	return taken;
}

/*
 * Stores the stack of the kernel's code that was interrupted with these registers, the innermost address
 * first; 0 addresses of a program. NMI-safe.
 */
notrace u32 rtrace_interrupted_stack(struct pt_regs *regs, u64 *addresses, u32 room)
{
	if (user_mode(regs) || !room)
		return 0;
	addresses[0] = instruction_pointer(regs);
	return 1 + walk(regs, addresses + 1, room - 1);
}

/*
 * Stores the return addresses of a function that runs, the innermost first. The pointers are those at
 * one of its instructions. The functions that it calls are not unwound. NMI-safe.
 */
notrace u32 rtrace_stack_of(u64 ip, u64 sp, u64 bp, u64 *addresses, u32 room)
{
	struct pt_regs regs = { .ip = ip, .sp = sp, .bp = bp, .cs = __KERNEL_CS };

	return walk(&regs, addresses, room);
}

/*
 * Stores where the running task has left user space, and the return addresses as far as frame pointers
 * lead. 0 addresses of a thread without user space. Memory that would fault ends the stack. NMI-safe.
 */
notrace u32 rtrace_user_stack(u64 *addresses, u32 room)
{
	struct pt_regs *regs = task_pt_regs(current);
	u32 taken = 0, word, narrow[2];
	u64 at, frame[2];

	if (current->flags & (PF_KTHREAD | PF_USER_WORKER) || !current->mm || !room)
		return 0;
	word = user_64bit_mode(regs) ? sizeof(u64) : sizeof(u32);
	addresses[taken++] = instruction_pointer(regs);
	/* The outermost frame pointer is 0. */
	for (at = frame_pointer(regs); at && at % word == 0 && taken < room; at = frame[0]) {
		const void __user *from = (const void __user *)(unsigned long)at;

		if (word == sizeof(u64)) {
			if (copy_from_user_nofault(frame, from, sizeof(frame)))
				break;
		} else {
			if (copy_from_user_nofault(narrow, from, sizeof(narrow)))
				break;
			frame[0] = narrow[0];
			frame[1] = narrow[1];
		}
		if (!frame[1])
			break;
		addresses[taken++] = frame[1];
		/* A stack grows downwards. */
		if (frame[0] <= at)
			break;
	}
	return taken;
}
