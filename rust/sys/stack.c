// SPDX-License-Identifier: GPL-2.0
/* Call stacks of the kernel. NMI-safe. */
#include <linux/sched.h>
#include <linux/sched/task_stack.h>

#include "frames.h"
#include "helpers.h"

#ifdef CONFIG_UNWINDER_ORC
#include "rules.h"
#else
/* This kernel's stacks have frame pointers or frame records, and walk() is as fast. */
#define walk_by_rules(ip, sp, fp, regs, addresses, room) 0
static int rules_begin(void) { return 0; }
static void rules_end(void) { }
#endif

static u8 way = IS_ENABLED(CONFIG_UNWINDER_ORC) ? RTRACE_STACKS_LEARNT : RTRACE_STACKS_KERNEL;
static atomic64_t compared, different;

/* Takes the stack by the kernel's unwinder, and compares it if that was chosen. */
static noinline notrace u32 take_by_kernel(u64 ip, u64 sp, u64 fp, struct pt_regs *regs, u64 *addresses, u32 room)
{
	struct pt_regs made = registers_at(ip, sp, fp);
	u32 taken = walk(regs ?: &made, addresses, room);
	u64 other[RTRACE_STACK_ROOM];

	if (way == RTRACE_STACKS_COMPARED && room <= ARRAY_SIZE(other)) {
		if (walk_by_rules(ip, sp, fp, regs, other, room) != taken ||
		    memcmp(addresses, other, taken * sizeof(*other)))
			atomic64_inc(&different);
		atomic64_inc(&compared);
	}
	return taken;
}

/* Stores the return addresses of a frame and its callers. @regs: those of the frame if they are known, else NULL. */
static __always_inline u32 take(u64 ip, u64 sp, u64 fp, struct pt_regs *regs, u64 *addresses, u32 room)
{
	if (likely(READ_ONCE(way) == RTRACE_STACKS_LEARNT))
		return walk_by_rules(ip, sp, fp, regs, addresses, room);
	return take_by_kernel(ip, sp, fp, regs, addresses, room);
}

/*
 * Stores the stack of the kernel's code that was interrupted with these registers, the innermost address
 * first; 0 addresses of a program. NMI-safe.
 */
notrace u32 rtrace_interrupted_stack(struct pt_regs *regs, u64 *addresses, u32 room)
{
	u64 ip = instruction_pointer(regs);

	if (user_mode(regs) || !room)
		return 0;
	addresses[0] = ip;
	return 1 + take(ip, kernel_stack_pointer(regs), frame_pointer(regs), regs, addresses + 1, room - 1);
}

/*
 * Stores the return addresses of a function that runs, the innermost first. The pointers are those at
 * one of its instructions. The functions that it calls are not unwound. NMI-safe.
 */
notrace u32 rtrace_stack_of(u64 ip, u64 sp, u64 fp, u64 *addresses, u32 room)
{
	return take(ip, sp, fp, NULL, addresses, room);
}

/* Prepares for the first stack. May sleep. */
int rtrace_stacks_begin(void)
{
	return rules_begin();
}

/* After the last stack. May sleep. */
void rtrace_stacks_end(void)
{
	rules_end();
}

/* How the kernel's stacks are taken. */
enum rtrace_stacks rtrace_stacks(void)
{
	return way;
}

/* Sets it; returns whether this kernel can do that. */
bool rtrace_set_stacks(enum rtrace_stacks wanted)
{
	if (wanted != RTRACE_STACKS_KERNEL && !IS_ENABLED(CONFIG_UNWINDER_ORC))
		return false;
	WRITE_ONCE(way, wanted);
	return true;
}

/* Number of stacks that were compared since the module was loaded, or of those that differed. */
u64 rtrace_compared_stacks(bool that_differed)
{
	return atomic64_read(that_differed ? &different : &compared);
}
