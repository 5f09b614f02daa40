// SPDX-License-Identifier: GPL-2.0
/* Call stacks of the kernel, and frames of user space. NMI-safe. */
#include <linux/sched.h>
#include <linux/sched/task_stack.h>

#include "frames.h"
#include "helpers.h"

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
notrace u32 rtrace_stack_of(u64 ip, u64 sp, u64 fp, u64 *addresses, u32 room)
{
	struct pt_regs regs = registers_at(ip, sp, fp);

	return walk(&regs, addresses, room);
}

/*
 * Stores where the running task has left user space, and the return addresses as far as frame pointers
 * lead. 0 addresses of a thread without user space. Memory that would fault ends the stack. NMI-safe.
 */
notrace u32 rtrace_user_stack(u64 *addresses, u32 room)
{
	struct pt_regs *regs = task_pt_regs(current);
	u64 at, address;
	u32 taken = 0;

	if (current->flags & (PF_KTHREAD | PF_USER_WORKER) || !current->mm || !room)
		return 0;
	addresses[taken++] = instruction_pointer(regs);
	/* The outermost frame pointer is 0. */
	for (at = user_frame_pointer(regs); at && taken < room && user_frame(regs, &at, &address);)
		addresses[taken++] = address;
	return taken;
}
