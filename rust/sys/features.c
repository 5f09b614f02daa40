// SPDX-License-Identifier: GPL-2.0
/*
 * The interfaces of the kernel that rtrace uses in two forms. Each kernel is built for by the interfaces that it has, not
 * by its version: distributions backport some of them.
 *
 * scripts/kernel-features compiles this file with the kernel's own flags, and never links it. Each line is compiled
 * alone:
 *
 *   FEATURE(name, code)  the kernel has the interface NAME if the code compiles. C code sees RTRACE_HAS_NAME, Rust code
 *                        cfg(kernel_has = "name")
 *   OTHERWISE(name, code) must compile if FEATURE(name) does not: the older interface that rtrace uses instead
 *   NEEDED(name, code)   must compile
 *
 * sys/linux.h and sys/old.rs have the older interfaces, arch/x86/holder.rs the places of per-CPU variables, and
 * source/typed/varying.rs the events whose tracepoints differ.
 */
#include <linux/fprobe.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/maple_tree.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/namei.h>
#include <linux/percpu.h>
#include <linux/rcupdate_trace.h>
#include <linux/rethook.h>
#include <linux/sched.h>
#include <linux/srcu.h>
#include <linux/tracepoint.h>
#include <linux/uprobes.h>
#include <linux/workqueue.h>
#include <trace/events/irq.h>
#include <trace/events/sched.h>
#include <trace/events/task.h>
#include <trace/events/timer.h>

#define ANY ((void *)0)
#define FEATURE(name, ...) void has_##name(void); void has_##name(void) { __VA_ARGS__; }
#define OTHERWISE(name, ...) void lacks_##name(void); void lacks_##name(void) { __VA_ARGS__; }
#define NEEDED(name, ...) FEATURE(name, __VA_ARGS__)

/* Files. */
FEATURE(start_creating, simple_start_creating((struct dentry *)ANY, ""))
OTHERWISE(start_creating, struct dentry *entry = lookup_one_len("", (struct dentry *)ANY, 0); (void)entry)
FEATURE(done_creating, simple_done_creating((struct dentry *)ANY))
FEATURE(persistent_entries, d_make_persistent((struct dentry *)ANY, (struct inode *)ANY))
OTHERWISE(persistent_entries, kill_litter_super((struct super_block *)ANY))
FEATURE(entry_flags, ((struct super_block *)ANY)->s_d_flags |= DCACHE_DONTCACHE)
OTHERWISE(entry_flags, ((struct super_block *)ANY)->s_d_op = &simple_dentry_operations)

/* Functions: fprobe rests on the function graph, or on a rethook of its own. */
FEATURE(fprobe_on_graph, fprobe_entry_cb entry = (int (*)(struct fprobe *, unsigned long, unsigned long, struct ftrace_regs *, void *))ANY; (void)entry; (void)((struct fprobe *)ANY)->hlist_array->size)
OTHERWISE(fprobe_on_graph, fprobe_entry_cb entry = (int (*)(struct fprobe *, unsigned long, unsigned long, struct pt_regs *, void *))ANY; (void)entry; (void)(((struct fprobe *)ANY)->rethook == ((struct rethook_node *)current->rethooks.first)->rethook); ((struct fprobe *)ANY)->nr_maxactive = 1)

/* Memory. */
FEATURE(bulk_pages, (void)alloc_pages_bulk_node(0, 0, 0, (struct page **)ANY))
OTHERWISE(bulk_pages, (void)alloc_pages_bulk_array_node(0, 0, 0, (struct page **)ANY))
FEATURE(mmap_lock_speculate, (void)(mmap_lock_speculate_try_begin((struct mm_struct *)ANY, (unsigned int *)ANY) || mmap_lock_speculate_retry((struct mm_struct *)ANY, 0)))
OTHERWISE(mmap_lock_speculate, (void)read_seqcount_retry(&((struct mm_struct *)ANY)->mm_lock_seq, 0))

/* Programs. */
FEATURE(uprobe_data, struct uprobe_consumer consumer = { .handler = (int (*)(struct uprobe_consumer *, struct pt_regs *, __u64 *))ANY }; (void)consumer)
OTHERWISE(uprobe_data, struct uprobe_consumer consumer = { .handler = (int (*)(struct uprobe_consumer *, struct pt_regs *))ANY }; (void)consumer)
NEEDED(uprobe_filter, struct uprobe_consumer consumer = { .filter = (bool (*)(struct uprobe_consumer *, struct mm_struct *))ANY }; (void)consumer)
NEEDED(uprobe_unregister, uprobe_unregister_nosync(uprobe_register((struct inode *)ANY, 0, 0, (struct uprobe_consumer *)ANY), (struct uprobe_consumer *)ANY); uprobe_unregister_sync())

/* Timers and work. */
FEATURE(hrtimer_setup, hrtimer_setup((struct hrtimer *)ANY, (enum hrtimer_restart (*)(struct hrtimer *))ANY, 0, 0))
OTHERWISE(hrtimer_setup, hrtimer_init((struct hrtimer *)ANY, 0, 0); ((struct hrtimer *)ANY)->function = (enum hrtimer_restart (*)(struct hrtimer *))ANY)
FEATURE(system_dfl_wq, (void)queue_work(system_dfl_wq, (struct work_struct *)ANY))
OTHERWISE(system_dfl_wq, (void)queue_work(system_unbound_wq, (struct work_struct *)ANY))

/* Tracepoints: handlers of system calls may sleep, and the others are readers of SRCU or disable preemption. */
FEATURE(faultable_tracepoints, (void)tracepoint_is_faultable((struct tracepoint *)ANY))
FEATURE(preemptible_tracepoints, (void)tracepoint_is_faultable((struct tracepoint *)ANY); synchronize_srcu(&tracepoint_srcu))
OTHERWISE(preemptible_tracepoints, tracepoint_synchronize_unregister())
FEATURE(exit_group_dead, __traceiter_sched_process_exit(ANY, current, true))
OTHERWISE(exit_group_dead, __traceiter_sched_process_exit(ANY, current))
FEATURE(clone_flags, int (*begins)(void *, struct task_struct *, u64) = __traceiter_task_newtask; (void)begins)
OTHERWISE(clone_flags, int (*begins)(void *, struct task_struct *, unsigned long) = __traceiter_task_newtask; (void)begins)
FEATURE(trace_hrtimer_setup, __traceiter_hrtimer_setup(ANY, (struct hrtimer *)ANY, 0, 0))
OTHERWISE(trace_hrtimer_setup, __traceiter_hrtimer_init(ANY, (struct hrtimer *)ANY, 0, 0))
FEATURE(expiry_by_value, int (*expires)(void *, struct hrtimer *, ktime_t) = __traceiter_hrtimer_expire_entry; (void)expires)
OTHERWISE(expiry_by_value, int (*expires)(void *, struct hrtimer *, ktime_t *) = __traceiter_hrtimer_expire_entry; (void)expires)

/* The scheduler. */
FEATURE(lazy_reschedule, static_assert(TIF_NEED_RESCHED_LAZY == TIF_NEED_RESCHED + 1))
OTHERWISE(lazy_reschedule, (void)TIF_NEED_RESCHED)
#ifdef CONFIG_ARM64_PSEUDO_NMI
NEEDED(irq_priority, static_assert(GIC_PRIO_IRQON == 0xe0))
#endif
#ifdef CONFIG_X86
FEATURE(percpu_current, (void)(this_cpu_read(current_task) || this_cpu_read(__preempt_count)))
OTHERWISE(percpu_current, (void)(this_cpu_read(pcpu_hot.current_task) || this_cpu_read(pcpu_hot.preempt_count)))
#endif
