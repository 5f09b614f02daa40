/* SPDX-License-Identifier: GPL-2.0 */
/* Registers and frames of programs, for rust/sys/user_stack.c. NMI-safe. */
#include <linux/mm_types.h>
#include <linux/ptrace.h>
#include <linux/uaccess.h>
#include <asm/processor.h>

/*
 * Whether the memory of the running task can be accessed. An NMI may have come while another address space was in use.
 * nmi_uaccess_okay() tests the same, and is not exported.
 */
static __always_inline bool user_is_in_use(const struct mm_struct *mm)
{
	return mm->pgd == __va(read_cr3_pa());
}

/* Whether the registers are those of a 32-bit program. */
static __always_inline bool user_is_narrow(struct pt_regs *regs)
{
	return !user_64bit_mode(regs);
}

static __always_inline u64 user_frame_pointer(const struct pt_regs *regs)
{
	return regs->bp;
}

/* The register that Processor::kept() names. */
static __always_inline u64 user_kept(const struct pt_regs *regs)
{
	return regs->bx;
}

/* An address of code, from a word that a program has saved. */
static __always_inline u64 user_code(u64 word)
{
	return word;
}

/* The register with this number of DWARF. Returns whether there is one. */
static __always_inline bool user_register(const struct pt_regs *regs, u32 number, u64 *value)
{
	static const u8 places[] = {
		offsetof(struct pt_regs, ax), offsetof(struct pt_regs, dx), offsetof(struct pt_regs, cx),
		offsetof(struct pt_regs, bx), offsetof(struct pt_regs, si), offsetof(struct pt_regs, di),
		offsetof(struct pt_regs, bp), offsetof(struct pt_regs, sp), offsetof(struct pt_regs, r8),
		offsetof(struct pt_regs, r9), offsetof(struct pt_regs, r10), offsetof(struct pt_regs, r11),
		offsetof(struct pt_regs, r12), offsetof(struct pt_regs, r13), offsetof(struct pt_regs, r14),
		offsetof(struct pt_regs, r15),
	};

	if (number >= ARRAY_SIZE(places))
		return false;
	/* (An index would be checked a second time.) */
	*value = *(const u64 *)((const u8 *)regs + *(places + number));
	return true;
}

/*
 * Reads the frame at *@at, a frame pointer of a 32-bit program. Stores the frame's return address, and the next outer
 * frame pointer; 0 if that is not further out. Returns whether there was a frame.
 */
static __always_inline bool narrow_frame(u64 *at, u64 *address)
{
	u32 frame[2];

	if (*at % sizeof(u32) || copy_from_user_nofault(frame, (const void __user *)*at, sizeof(frame)))
		return false;
	*address = frame[1];
	/* A stack grows downwards. */
	*at = frame[0] > *at ? frame[0] : 0;
	return *address;
}
