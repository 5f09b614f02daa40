/* SPDX-License-Identifier: GPL-2.0 */
/* Registers and frames of programs, for rust/sys/user_stack.c. NMI-safe. */
#include <linux/ptrace.h>
#include <linux/uaccess.h>
#include <asm/compiler.h>

/* Whether the memory of the running task can be accessed: as for nmi_uaccess_okay(), always. */
static __always_inline bool user_is_in_use(const struct mm_struct *mm)
{
	return true;
}

/* Whether the registers are those of a 32-bit program. */
static __always_inline bool user_is_narrow(struct pt_regs *regs)
{
	return compat_user_mode(regs);
}

/* The frame pointer of a program: of a 32-bit program, that of ARM code (APCS). Thumb code has none. */
static __always_inline u64 user_frame_pointer(const struct pt_regs *regs)
{
	return compat_user_mode(regs) ? (u32)regs->compat_fp : regs->regs[29];
}

/* The register that Processor::kept() names. */
static __always_inline u64 user_kept(const struct pt_regs *regs)
{
	return regs->regs[30];
}

/* An address of code, from a word that a program has saved: without its authentication code. */
static __always_inline u64 user_code(u64 word)
{
	return ptrauth_strip_user_insn_pac(word);
}

/* The register with this number of DWARF. Returns whether there is one. */
static __always_inline bool user_register(const struct pt_regs *regs, u32 number, u64 *value)
{
	if (number > 31)
		return false;
	/* (An index would be checked a second time.) */
	*value = number == 31 ? regs->sp : *(regs->regs + number);
	return true;
}

/*
 * Reads the frame at *@at, a frame pointer of a 32-bit program. Stores the frame's return address, and the next outer
 * frame pointer; 0 if that is not further out. Returns whether there was a frame.
 */
static __always_inline bool narrow_frame(u64 *at, u64 *address)
{
	/* It is below the address that the frame pointer has. */
	struct { u32 fp, sp, lr; } frame;

	if (*at % sizeof(u32) || copy_from_user_nofault(&frame, (const void __user *)(*at - sizeof(frame)), sizeof(frame)))
		return false;
	*address = frame.lr;
	/* A stack grows downwards. */
	*at = frame.fp > *at ? frame.fp : 0;
	return *address;
}
