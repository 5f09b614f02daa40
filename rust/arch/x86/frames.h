/* SPDX-License-Identifier: GPL-2.0 */
/* Unwinding of call stacks, for rust/sys/stack.c. NMI-safe. */
#include <linux/sched.h>
#include <linux/uaccess.h>
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

/* The frame pointer of a program. */
static __always_inline u64 user_frame_pointer(const struct pt_regs *regs)
{
	return regs->bp;
}

/*
 * Reads the frame at *@at, a frame pointer of the program with these registers. Stores the frame's return address, and
 * the next outer frame pointer; 0 if that is not further out. Returns whether there was a frame.
 */
static __always_inline bool user_frame(struct pt_regs *regs, u64 *at, u64 *address)
{
	const void __user *from = (const void __user *)(unsigned long)*at;
	u32 word = user_64bit_mode(regs) ? sizeof(u64) : sizeof(u32), narrow[2];
	u64 frame[2];

	if (*at % word)
		return false;
	if (word == sizeof(u64)) {
		if (copy_from_user_nofault(frame, from, sizeof(frame)))
			return false;
	} else {
		if (copy_from_user_nofault(narrow, from, sizeof(narrow)))
			return false;
		frame[0] = narrow[0];
		frame[1] = narrow[1];
	}
	*address = frame[1];
	/* A stack grows downwards. */
	*at = frame[0] > *at ? frame[0] : 0;
	return *address;
}
