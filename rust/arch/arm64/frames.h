/* SPDX-License-Identifier: GPL-2.0 */
/* Unwinding of call stacks, for rust/sys/stack.c. NMI-safe. */
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <asm/compiler.h>
#include <asm/ptrace.h>
#include <asm/stacktrace/frame.h>

/*
 * Stores the return addresses of the kernel's code that has these registers, the innermost first. Each function has
 * a frame record, and a frame pointer leads from one to the next. (Of the kernel's functions that walk them, none that
 * begins at registers is exported.) Where an exception was taken, its registers have a record without an address,
 * whose type tells so. An address that a return probe has replaced stays replaced.
 *
 * A record is read without faults, so a wrong pointer only ends the stack. The limit of @room ends a circle.
 */
static notrace u32 walk(struct pt_regs *regs, u64 *addresses, u32 room)
{
	u64 at = regs->regs[29];
	u32 taken = 0;

	while (taken < room) {
		struct frame_record_meta record;
		struct pt_regs *outer;

		if (at % sizeof(u64) ||
		    copy_from_kernel_nofault(&record.record, (void *)at, sizeof(record.record)))
			break;
		if (record.record.fp || record.record.lr) {
			addresses[taken++] = ptrauth_strip_kernel_insn_pac(record.record.lr);
			at = record.record.fp;
			continue;
		}
		if (get_kernel_nofault(record.type, &((struct frame_record_meta *)at)->type) ||
		    record.type != FRAME_META_TYPE_PT_REGS)
			break;
		outer = container_of((struct frame_record_meta *)at, struct pt_regs, stackframe);
		if (get_kernel_nofault(addresses[taken], &outer->pc) || get_kernel_nofault(at, &outer->regs[29]))
			break;
		taken++;
	}
	return taken;
}

/* The registers of the kernel's code with these pointers. */
static __always_inline struct pt_regs registers_at(u64 ip, u64 sp, u64 fp)
{
	return (struct pt_regs){ .pc = ip, .sp = sp, .regs[29] = fp };
}
