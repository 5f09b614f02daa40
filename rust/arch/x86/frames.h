/* SPDX-License-Identifier: GPL-2.0 */
/* Unwinding of call stacks, for rust/sys/stack.c. NMI-safe. */
#include <linux/sched.h>
#include <asm/segment.h>
#include <asm/unwind.h>

/*
 * Stores the return addresses of the kernel's code that has these registers, the innermost first, as
 * arch_stack_walk(), which is not exported.
 */
static notrace u32 walk(struct pt_regs *regs, u64 *addresses, u32 room)
{
	struct unwind_state state;
	unsigned long address;
	u32 taken = 0;

	unwind_start(&state, current, regs, NULL);
	/* After an error the kernel does not warn. It would, once, of code that was interrupted in return_to_handler(). */
	state.error = true;
	for (; !unwind_done(&state) && taken < room; unwind_next_frame(&state)) {
		address = unwind_get_return_address(&state);
		if (!address)
			break;
		addresses[taken++] = address;
	}
	return taken;
}

/* The registers of the kernel's code with these pointers. */
static __always_inline struct pt_regs registers_at(u64 ip, u64 sp, u64 fp)
{
	return (struct pt_regs){ .ip = ip, .sp = sp, .bp = fp, .cs = __KERNEL_CS };
}
