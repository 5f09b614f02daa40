/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interfaces of Linux 7.2 that other kernels lack, in terms of those that they have. features.c says which kernel has
 * which one. Include it after the kernel's headers.
 */
#ifndef RTRACE_SYS_LINUX_H
#define RTRACE_SYS_LINUX_H

#include <linux/dcache.h>
#include <linux/fprobe.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/namei.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <linux/uprobes.h>

#include "features.h"

/* Names. */
#ifndef PIDNS_ADDING
#define PIDNS_ADDING PIDNS_HASH_ADDING
#endif
#ifndef kmalloc_obj
#define kmalloc_obj(object) kmalloc(sizeof(object), GFP_KERNEL)
#endif
#ifndef RTRACE_HAS_SYSTEM_DFL_WQ
#define system_dfl_wq system_unbound_wq
#endif
#ifndef RTRACE_HAS_BULK_PAGES
#define alloc_pages_bulk_node(...) alloc_pages_bulk_array_node(__VA_ARGS__)
#endif

/* Locks. */
#ifndef RTRACE_HAS_MMAP_LOCK_SPECULATE
#define mmap_lock_speculate_try_begin(mm, seq) (!((*(seq) = raw_read_seqcount(&(mm)->mm_lock_seq)) & 1))
#define mmap_lock_speculate_retry(mm, seq) read_seqcount_retry(&(mm)->mm_lock_seq, seq)
#endif

/* Timers. */
#ifndef RTRACE_HAS_HRTIMER_SETUP
static inline notrace void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *timer),
					 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif
#ifdef RTRACE_HAS_EXPIRY_BY_VALUE
typedef s64 rtrace_expiry_t;
#else
typedef s64 *rtrace_expiry_t;
#endif

/* Files. An entry's own reference keeps it until kill_litter_super(), if the kernel does not keep entries itself. */
#ifndef RTRACE_HAS_START_CREATING
static inline notrace struct dentry *simple_start_creating(struct dentry *parent, const char *name)
{
	struct dentry *dentry;

	inode_lock(d_inode(parent));
	dentry = lookup_one_len(name, parent, strlen(name));
	if (!IS_ERR(dentry) && d_really_is_positive(dentry)) {
		dput(dentry);
		dentry = ERR_PTR(-EEXIST);
	}
	if (IS_ERR(dentry))
		inode_unlock(d_inode(parent));
	return dentry;
}
#endif
#ifndef RTRACE_HAS_DONE_CREATING
static inline notrace void simple_done_creating(struct dentry *dentry)
{
	inode_unlock(d_inode(dentry->d_parent));
	dput(dentry);
}
#endif
#ifndef RTRACE_HAS_PERSISTENT_ENTRIES
static inline notrace void d_make_persistent(struct dentry *dentry, struct inode *inode)
{
	d_instantiate(dget(dentry), inode);
}
#define kill_anon_super(sb) kill_litter_super(sb)
#endif
/* Makes the superblock forget entries that have no user. */
static inline notrace void rtrace_forget_unused(struct super_block *sb)
{
#ifdef RTRACE_HAS_ENTRY_FLAGS
	sb->s_d_flags |= DCACHE_DONTCACHE;
#else
	sb->s_d_op = &simple_dentry_operations;
#endif
}

/* Handlers of tracepoints. Older kernels call all of them with preemption disabled, or all except those that may sleep. */
#ifndef RTRACE_HAS_FAULTABLE_TRACEPOINTS
#define tracepoint_is_faultable(tracepoint) false
#endif
/* Waits until no handler runs that was unregistered and may not sleep. */
static inline notrace void rtrace_synchronize_handlers(void)
{
#if defined(RTRACE_HAS_PREEMPTIBLE_TRACEPOINTS)
	synchronize_srcu(&tracepoint_srcu);
#elif defined(RTRACE_HAS_FAULTABLE_TRACEPOINTS)
	synchronize_rcu();
#else
	tracepoint_synchronize_unregister();
#endif
}
/* Whether the handler of a system call, which runs this, may sleep. */
static inline notrace bool rtrace_may_fault(void)
{
	return __is_defined(RTRACE_HAS_FAULTABLE_TRACEPOINTS) || preemptible();
}
/* The handlers of tracepoints that a kernel lacks compile, and attaching one fails with ENOENT. */
int __traceiter_sched_entry_tp(void *data, bool preempt);
int __traceiter_sched_exit_tp(void *data, bool is_switch);
int __traceiter_sched_set_need_resched_tp(void *data, struct task_struct *task, int cpu, int flag);

/* Programs: the last parameters of a uprobe's handler. */
#ifdef RTRACE_HAS_UPROBE_DATA
#define RTRACE_UPROBE_DATA , __u64 *data
#else
#define RTRACE_UPROBE_DATA
#endif

/* Functions. */
#ifdef RTRACE_HAS_FPROBE_ON_GRAPH
typedef struct ftrace_regs rtrace_fprobe_regs;
#else
typedef struct pt_regs rtrace_fprobe_regs;
#endif

#endif
