// SPDX-License-Identifier: GPL-2.0
/*
 * Stacks of programs: where the running task has left user space, the steps that known rules describe, and the file at an
 * address. NMI-safe, except where it says so.
 *
 * A rule is constant while its code is mapped. So it is known by the address and the address space, and forgotten when
 * code is unmapped.
 */
#include <linux/atomic.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/maple_tree.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>
#include <linux/uprobes.h>

#include "helpers.h"
#include "linux.h"
#include "user_frames.h"

/* Any odd numbers whose bits are mixed. */
#define MIX_SPACE	0x9e3779b97f4a7c15
#define MIX_CHANGES	0xd1b54a32d192ed03
#define MIX_KEY		0xbf58476d1ce4e5b9

/* How often code was unmapped from address spaces. Each space uses the counter that the hash of its address chooses. */
#define CHANGES_BITS	10
static atomic_t changes[1 << CHANGES_BITS];

static __always_inline atomic_t *changes_of(u64 hash)
{
	return &changes[hash >> (64 - CHANGES_BITS)];
}

/* A name of an address space as it is mapped now. Another space, or the same after a change, has another name. */
static __always_inline u64 space_now(const struct mm_struct *mm)
{
	u64 hash = (u64)mm * MIX_SPACE;

	return hash ^ (u32)atomic_read(changes_of(hash)) * MIX_CHANGES;
}

/* The key of an address. It names both the slot and what is in it. */
static __always_inline u64 key_of(u64 pc, u64 space)
{
	return (pc ^ space) * MIX_KEY;
}

/* The slot of a key among 1 << @bits. */
static __always_inline u64 slot_of(u64 key, u32 bits)
{
	/* The mask tells the compiler that the shift is defined. */
	return key >> (-bits & 63);
}

/* Whether this is the rule of the key. One that is being replaced is not. */
static __always_inline bool is_rule_of(const struct rtrace_user_rule *known, u64 key, u64 *rule)
{
	*rule = READ_ONCE(known->rule);
	return (READ_ONCE(known->mixed) ^ *rule) == key;
}

/*
 * Begins a walk at the registers of the running task's last entry to the kernel. In an NMI that came in the first
 * instructions of an entry, they are those of the entry before.
 */
notrace enum rtrace_user_step rtrace_user_begin(struct rtrace_user_walk *walk)
{
	struct pt_regs *regs = task_pt_regs(current);

	if (current->flags & (PF_KTHREAD | PF_USER_WORKER) || !current->mm)
		return RTRACE_USER_NONE;
	/* The registers are those of the program before, whose memory is gone: the new one has not begun. */
	if (current->in_execve && !READ_ONCE(current->mm->start_code))
		return RTRACE_USER_NONE;
	walk->ip = instruction_pointer(regs);
	walk->sp = user_stack_pointer(regs);
	walk->fp = user_frame_pointer(regs);
	walk->kept = user_kept(regs);
	walk->exact = true;
	walk->taken = 0;
	/* Read before any mapping is looked up: see rtrace_user_place_of(). */
	walk->space = space_now(current->mm);
	smp_rmb();	/* Pairs with the locked instruction in code_is_unmapped(). */
	if (user_is_narrow(regs))
		return RTRACE_USER_NARROW;
	/* This does not change until the walk ends. */
	return user_is_in_use(current->mm) ? RTRACE_USER_RULE : RTRACE_USER_UNREADABLE;
}

/* No slot of a rule is further below its frame. */
#define MOST_BELOW	(1u << 15)

/* The word with the return address, of a rule with this slot. */
static __always_inline u64 return_slot(u64 frame, u64 slot)
{
	return IS_ENABLED(CONFIG_X86) ? frame - sizeof(u64) : slot + sizeof(u64);
}

/*
 * Steps outwards while the rules are known, from the frame in @walk to the first whose rule is not, or to the end of the
 * stack. Stores the addresses of the frames whose rules are known. There are 1 << @bits slots.
 */
notrace enum rtrace_user_step rtrace_user_steps(struct rtrace_user_walk *walk, u64 *addresses, u32 room,
						const struct rtrace_user_slot *slots, u32 bits)
{
	u64 ip = walk->ip, sp = walk->sp, fp = walk->fp, space = walk->space;
	/* The address whose rule applies. */
	u64 pc = ip - !walk->exact;
	u64 *next = addresses + walk->taken, *end = addresses + room;
	/* Words below it can be read, as far as the address tells. */
	const u64 limit = TASK_SIZE_MAX - sizeof(u64);
	enum rtrace_user_step why = RTRACE_USER_LIMIT;

	pagefault_disable();
	if (sp < MOST_BELOW || sp >= limit || !user_access_begin((const void __user *)sp, sizeof(u64))) {
		pagefault_enable();
		if (next < end)
			addresses[walk->taken++] = ip;
		return RTRACE_USER_UNREADABLE;
	}
	/* No function may be called until user_access_end(). */
	while (next < end) {
		u64 key = key_of(pc, space), rule, frame, slot;
		const struct rtrace_user_slot *known = &slots[slot_of(key, bits)];

		if (unlikely(!is_rule_of(&known->newer, key, &rule)) && !is_rule_of(&known->older, key, &rule)) {
			why = RTRACE_USER_RULE;
			break;
		}
		*next++ = ip;
		if (rule & RTRACE_RULE_OUTERMOST) {
			why = RTRACE_USER_OUTERMOST;
			break;
		}
		frame = (rule & RTRACE_RULE_FROM_FP ? fp : sp) + ((s64)rule >> 32);
		if (frame <= sp || frame >= limit)
			goto unreadable;
		/* It is below the frame, which is above MOST_BELOW. */
		slot = frame + (s16)(rule >> 16);
		unsafe_get_user(ip, (const u64 __user *)return_slot(frame, slot), unreadable);
		if (rule & RTRACE_RULE_FP_SAVED)
			unsafe_get_user(fp, (const u64 __user *)slot, unreadable);
		ip = user_code(ip);
		pc = ip - 1;
		sp = frame;
	}
	goto out;
unreadable:
	why = RTRACE_USER_UNREADABLE;
out:
	user_access_end();
	pagefault_enable();
	walk->ip = ip;
	walk->sp = sp;
	walk->fp = fp;
	walk->exact = pc == ip;
	walk->taken = next - addresses;
	return why;
}

/*
 * Makes the rule of an address known, in the slot that it has. @rule: RTRACE_RULE_*, not 0. The older rule of the slot is
 * forgotten: so two addresses of a stack that have the same slot do not replace each other.
 */
notrace void rtrace_user_keep(struct rtrace_user_slot *slots, u32 bits, u64 space, u64 pc, u64 rule)
{
	u64 key = key_of(pc, space);
	struct rtrace_user_slot *slot = &slots[slot_of(key, bits)];

	WRITE_ONCE(slot->older.mixed, READ_ONCE(slot->newer.mixed));
	WRITE_ONCE(slot->older.rule, READ_ONCE(slot->newer.rule));
	WRITE_ONCE(slot->newer.mixed, key ^ rule);
	WRITE_ONCE(slot->newer.rule, rule);
}

#ifdef CONFIG_UPROBES
/*
 * If a return probe of the kernel has replaced the address in @walk, puts back the one that the program has saved. Returns
 * whether it did.
 *
 * The address is the first of a page that the kernel has mapped. Only the running task changes its list. 6.12 frees an
 * entry before it removes it, so each read may fail, or find another object: that does not have the slot.
 */
notrace bool rtrace_user_unprobe(struct rtrace_user_walk *walk)
{
	/* Where the return address was. */
	u64 slot = IS_ENABLED(CONFIG_X86) ? walk->sp - sizeof(u64) : walk->sp;
	const struct uprobe_task *task = READ_ONCE(current->utask);
	struct return_instance *at, *next;
	struct rtrace_user_mapping mapping;
	unsigned long stack, ip;
	u32 depth;

	if (!task || !PAGE_ALIGNED(walk->ip))
		return false;
	if (rtrace_user_place_of(walk->ip, &mapping) != RTRACE_PLACE_MEMORY || mapping.start != walk->ip)
		return false;
	at = READ_ONCE(task->return_instances);
	for (depth = 0; at && depth < MAX_URETPROBE_DEPTH; depth++) {
		if (get_kernel_nofault(stack, &at->stack) || get_kernel_nofault(ip, &at->orig_ret_vaddr) ||
		    get_kernel_nofault(next, &at->next))
			break;
		if (stack == slot) {
			walk->ip = user_code(ip);
			return true;
		}
		at = next;
	}
	return false;
}
#else
notrace bool rtrace_user_unprobe(struct rtrace_user_walk *walk)
{
	return false;
}
#endif

/* An address of code, from a word that a program has saved. */
notrace u64 rtrace_user_code(u64 word)
{
	return user_code(word);
}

/* A register of the program by its number in DWARF, at the last entry to the kernel. Returns whether it is there. */
notrace bool rtrace_user_register(u32 number, u64 *value)
{
	return user_register(task_pt_regs(current), number, value);
}

/*
 * Stores the return addresses of a 32-bit program, as far as its frame pointers lead from the one in @walk. Returns their
 * number.
 */
notrace u32 rtrace_user_narrow(const struct rtrace_user_walk *walk, u64 *addresses, u32 room)
{
	u64 at, address;
	u32 taken = 0;

	/* The outermost frame pointer is 0. */
	for (at = walk->fp; at && taken < room && narrow_frame(&at, &address);)
		addresses[taken++] = address;
	return taken;
}

/* Reads a word of the program's memory. Returns whether it can be read now. */
notrace bool rtrace_user_word(u64 at, u64 *word)
{
	return !copy_from_user_nofault(word, (const void __user *)at, sizeof(*word));
}

static notrace void identify(const struct inode *inode, struct rtrace_user_file *file)
{
	struct timespec64 changed = inode_get_ctime(inode);

	*file = (struct rtrace_user_file){
		.inode = (u64)inode,
		.filesystem = (u64)inode->i_sb,
		.number = inode->i_ino,
		.generation = inode->i_generation,
		.changed_nsec = changed.tv_nsec,
		.changed_sec = changed.tv_sec,
		.size = i_size_read(inode),
	};
}

#ifndef CONFIG_PREEMPT_RT
/* Whether this thread holds the lock of its mappings to change them. */
static __always_inline bool changes_mappings(const struct mm_struct *mm)
{
	return atomic_long_read(&mm->mmap_lock.owner) == (long)current;
}
#else
static __always_inline bool changes_mappings(const struct mm_struct *mm)
{
	return false;
}
#endif

/*
 * Finds what the running task has mapped at an address of code. No lock is taken. Memory of a struct vm_area_struct or a
 * struct file is only reused for another one, and that of an inode is freed under RCU. So they can be read, and what was
 * read is valid if no thread has changed the mappings meanwhile.
 *
 * If this thread itself was changing them, no other one does. It sets the range of an area first, and then stores the area
 * in the tree. So an area that has the range at which it was found is valid.
 *
 * If the caller took the name of the address space before, a rule that it then keeps under this name is forgotten as soon
 * as this mapping goes: code_is_unmapped() comes after the mapping was removed, or while it cannot be read.
 */
notrace enum rtrace_user_place rtrace_user_place_of(u64 pc, struct rtrace_user_mapping *mapping)
{
	struct mm_struct *mm = current->mm;
	enum rtrace_user_place place = RTRACE_PLACE_NOTHING;
	MA_STATE(found, &mm->mm_mt, pc, pc);
	struct vm_area_struct *area;
	bool is_own_change = false;
	struct file *file;
	unsigned int seq;

	*mapping = (struct rtrace_user_mapping){};
	guard(rcu)();
	if (!mmap_lock_speculate_try_begin(mm, &seq)) {
		if (!changes_mappings(mm))
			return RTRACE_PLACE_CHANGES;
		is_own_change = true;
	}
	area = mas_walk(&found);
	if (xa_is_zero(area))
		area = NULL;
	if (is_own_change && area && (area->vm_start != found.index || area->vm_end != found.last + 1))
		return RTRACE_PLACE_CHANGES;
	if (area && READ_ONCE(area->vm_flags) & VM_EXEC) {
		mapping->start = READ_ONCE(area->vm_start);
		mapping->end = READ_ONCE(area->vm_end);
		mapping->offset = pc - mapping->start + ((u64)READ_ONCE(area->vm_pgoff) << PAGE_SHIFT);
		file = READ_ONCE(area->vm_file);
		place = RTRACE_PLACE_MEMORY;
		if (file) {
			const struct inode *inode = READ_ONCE(file->f_inode);

			if (inode) {
				place = RTRACE_PLACE_FILE;
				identify(inode, &mapping->file);
			}
		} else if (mapping->start == (u64)READ_ONCE(mm->context.vdso)) {
			place = RTRACE_PLACE_FILE;
			mapping->offset = pc - mapping->start;
		}
	}
	return !is_own_change && mmap_lock_speculate_retry(mm, seq) ? RTRACE_PLACE_CHANGES : place;
}

/*
 * The identity that rtrace_user_place_of() finds for the file that is open as @fd; of the vDSO if it is -1. Returns an
 * error if it is not a regular file. May sleep.
 */
int rtrace_user_file_of(int fd, struct rtrace_user_file *to)
{
	const struct inode *inode;

	*to = (struct rtrace_user_file){};
	if (fd == -1)
		return 0;
	CLASS(fd, file)(fd);
	if (fd_empty(file))
		return -EBADF;
	inode = d_real_inode(fd_file(file)->f_path.dentry);
	if (!inode || !S_ISREG(inode->i_mode))
		return -EINVAL;
	identify(inode, to);
	return 0;
}

/* At uprobe_munmap(area, start, end), which the kernel calls for each part of a file that is unmapped, also at an exit. */
static int code_is_unmapped(struct kprobe *probe, struct pt_regs *regs)
{
	const struct vm_area_struct *area = (const void *)regs_get_kernel_argument(regs, 0);

	if (READ_ONCE(area->vm_flags) & VM_EXEC)
		atomic_inc_return(changes_of((u64)area->vm_mm * MIX_SPACE));
	return 0;
}
NOKPROBE_SYMBOL(code_is_unmapped);

static struct kprobe unmap_probe;

/* Follows the code that programs unmap. May sleep. */
int rtrace_user_watch(void)
{
	unmap_probe = (struct kprobe){
		.symbol_name = "uprobe_munmap",
		.pre_handler = code_is_unmapped,
	};
	return register_kprobe(&unmap_probe);
}

/* Undoes rtrace_user_watch(). May sleep. */
void rtrace_user_unwatch(void)
{
	unregister_kprobe(&unmap_probe);
}
