// SPDX-License-Identifier: GPL-2.0
/*
 * The firing site of the benchmarks, the same for every tracer. It finds tracepoints by name,
 * calls the attached probes as the kernel's own sites do, and reports how long that took.
 *
 *	exec 3<>/sys/kernel/debug/rtrace_bench/fire
 *	echo "sched_switch 50000" >&3; cat <&3
 *
 * A request is SITE COUNT [CPUS] [empty]. Without CPUS the caller's own CPU fires; with it,
 * the first CPUS online CPUs do, COUNT events each, all at once. `empty` fires at a probe of
 * this module that does nothing, whatever is attached. The answer has one NAME VALUE per
 * line. Times are in ticks of the TSC, with tsc_khz ticks per millisecond (under QEMU's
 * -icount shift=0 a tick is one executed instruction):
 *
 *	events   how many were fired, on all CPUs
 *	ticks    the time in the firing loops, summed over the CPUs
 *	idle     the same for as many turns of the same loops at a tracepoint without a probe
 *	least    the same as ticks, if every BATCH events had taken each CPU what the quickest
 *	         took: what a CPU executes itself, whatever others executed in between
 *
 * The file `primitive` takes NAME COUNT and answers with the ticks of COUNT rounds. A round is
 * a reservation (adds the record's length to a position) and a commit (adds the length to a
 * counter): by `local` atomics, by `locked` ones, or by plain ones with interrupts off
 * (`irq-off`) or preemption off (`preempt-off`); `empty` is the loop itself. `call` is a call
 * of rtrace_bench_called(), which does nothing and can be traced. `stack` takes the kernel's
 * call stack. `stack-module` takes it from 9 more functions of this module, `stack-kernel` from
 * these and 8 functions of the kernel (bsearch()).
 *
 * Interrupts are off for BATCH events at a time, so that nothing else is counted.
 */
#include <linux/bsearch.h>
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/debugfs.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/stacktrace.h>
#include <linux/tracepoint.h>
#include <linux/unistd.h>
#include <asm/ptrace.h>
#ifdef CONFIG_X86
#include <asm/segment.h>
#endif

#include "counter.h"
#include "features.h"
#include "stand_ins.h"

#define BATCH 100
#define MAX_COUNT 100000000UL
/* A system call's site fires two. */
#define MAX_TRACEPOINTS 2

/* The guards of the kernel's own sites: of system calls, and of the others. */
#ifdef RTRACE_HAS_FAULTABLE_TRACEPOINTS
#define guard_call()	guard(rcu_tasks_trace)()
#else
#define guard_call()	guard(preempt_notrace)()
#endif
#ifdef RTRACE_HAS_PREEMPTIBLE_TRACEPOINTS
#define guard_site()	guard(srcu_fast_notrace)(&tracepoint_srcu)
#else
#define guard_site()	guard(preempt_notrace)()
#endif

/* Does the same as __traceiter_<name> (include/linux/tracepoint.h), at the given tracepoint. */
#define CALL_PROBES(tracepoint, proto, args...)						\
	do {										\
		struct tracepoint_func *func = rcu_dereference_raw((tracepoint)->funcs);\
											\
		if (!func)								\
			break;								\
		do {									\
			void *probe = READ_ONCE(func->func);				\
											\
			((void (*)proto)probe)(func->data, args);			\
		} while ((++func)->func);						\
	} while (0)

/* Fires @times times at tracepoints[], under the guard of the kernel's own site. */
typedef void fire_t(struct tracepoint *const *tracepoints, unsigned int times);

static noinline notrace void fire_softirq_entry(struct tracepoint *const *tracepoints,
						unsigned int times)
{
	while (times--) {
		guard_site();
		CALL_PROBES(tracepoints[0], (void *, unsigned int), TIMER_SOFTIRQ);
	}
}

static struct irqaction action = { .name = "virtio2-req.0" };

static noinline notrace void fire_irq_handler_entry(struct tracepoint *const *tracepoints,
						    unsigned int times)
{
	while (times--) {
		guard_site();
		CALL_PROBES(tracepoints[0], (void *, int, struct irqaction *), 27, &action);
	}
}

static noinline notrace void fire_sched_switch(struct tracepoint *const *tracepoints,
					       unsigned int times)
{
	struct task_struct *prev = current, *next = current->group_leader;

	while (times--) {
		guard_site();
		CALL_PROBES(tracepoints[0],
			    (void *, bool, struct task_struct *, struct task_struct *, unsigned int),
			    false, prev, next, TASK_INTERRUPTIBLE);
	}
}

static noinline notrace void fire_cpu_frequency(struct tracepoint *const *tracepoints,
						unsigned int times)
{
	while (times--) {
		guard_site();
		CALL_PROBES(tracepoints[0], (void *, unsigned int, unsigned int), 2400000, 0);
	}
}

/* Fires a call of getppid(2): its entry and its exit. */
static noinline notrace void fire_getppid(struct tracepoint *const *tracepoints,
					  unsigned int times)
{
#ifdef CONFIG_X86
	struct pt_regs regs = { .orig_ax = __NR_getppid, .ax = 1, .cs = __USER_CS, .ss = __USER_DS };
#else
	struct pt_regs regs = { .syscallno = __NR_getppid, .regs[0] = 1, .regs[8] = __NR_getppid };
#endif

	while (times--) {
		{
			guard_call();
			CALL_PROBES(tracepoints[0], (void *, struct pt_regs *, long), &regs,
				    __NR_getppid);
		}
		{
			guard_call();
			CALL_PROBES(tracepoints[1], (void *, struct pt_regs *, long), &regs, 1);
		}
	}
}

/* As fire_sched_switch(), from about 10 more functions, half of them the kernel's. */
struct deeper {
	struct tracepoint *const *tracepoints;
	unsigned int times, left;
};

static notrace int fire_deeper(const void *key, const void *item)
{
	struct deeper *deeper = (struct deeper *)key;

	if (deeper->left--)
		bsearch(deeper, item, 1, 1, fire_deeper);
	else
		fire_sched_switch(deeper->tracepoints, deeper->times);
	return 0;
}

static noinline notrace void fire_sched_switch_deeper(struct tracepoint *const *tracepoints,
						      unsigned int times)
{
	struct deeper deeper = { .tracepoints = tracepoints, .times = times, .left = 4 };

	fire_deeper(&deeper, &deeper);
	barrier();
}

static notrace void empty_probe(void)
{
}

static struct tracepoint_func empty_funcs[] = { { .func = empty_probe }, {} };
static struct tracepoint empty = { .funcs = (struct tracepoint_func __rcu *)empty_funcs };
static struct tracepoint nobody;

struct site {
	const char *name;
	fire_t *fire;
	const char *names[MAX_TRACEPOINTS];
	struct tracepoint *tracepoints[MAX_TRACEPOINTS];
};

static struct site sites[] = {
	{ "softirq_entry", fire_softirq_entry, { "softirq_entry" } },
	{ "irq_handler_entry", fire_irq_handler_entry, { "irq_handler_entry" } },
	{ "sched_switch", fire_sched_switch, { "sched_switch" } },
	{ "sched_switch_deeper", fire_sched_switch_deeper, { "sched_switch" } },
	{ "cpu_frequency", fire_cpu_frequency, { "cpu_frequency" } },
	{ "generated_softirq_entry", fire_softirq_entry, { AT_SOFTIRQ_ENTRY } },
	{ "generated_irq_handler_entry", fire_irq_handler_entry, { AT_IRQ_HANDLER_ENTRY } },
	{ "generated_sched_switch", fire_sched_switch, { AT_SCHED_SWITCH } },
	{ "getppid", fire_getppid, { "sys_enter", "sys_exit" } },
};

/* A request in progress. */
struct volley {
	fire_t *fire;
	struct tracepoint *const *tracepoints;
	unsigned long count;
	atomic_t waiting, firing;
	struct completion go, done;
	atomic64_t ticks, idle, least;
};

static struct tracepoint *const nobodies[MAX_TRACEPOINTS] = { &nobody, &nobody };
static struct tracepoint *const empties[MAX_TRACEPOINTS] = { &empty, &empty };

/* Returns the ticks of @count events on this CPU; @least: if all took as long as the fastest BATCH. */
static u64 fire(fire_t *fire, struct tracepoint *const *tracepoints, unsigned long count,
		u64 *least)
{
	const unsigned long batches = count / BATCH;
	u64 ticks = 0, quickest = U64_MAX;

	while (count) {
		unsigned int batch = min(count, (unsigned long)BATCH);
		unsigned long flags;
		u64 begin, took;

		local_irq_save(flags);
		begin = counter_ordered();
		fire(tracepoints, batch);
		took = counter_ordered() - begin;
		local_irq_restore(flags);
		ticks += took;
		if (batch == BATCH)
			quickest = min(quickest, took);
		count -= batch;
		cond_resched();
	}
	*least = batches ? batches * quickest : ticks;
	return ticks;
}

static void fire_here(struct volley *volley)
{
	u64 least;

	atomic64_add(fire(volley->fire, nobodies, volley->count, &least), &volley->idle);
	/* The last CPU lets all begin. */
	if (atomic_dec_and_test(&volley->waiting))
		complete_all(&volley->go);
	wait_for_completion(&volley->go);
	atomic64_add(fire(volley->fire, volley->tracepoints, volley->count, &least), &volley->ticks);
	atomic64_add(least, &volley->least);
	if (atomic_dec_and_test(&volley->firing))
		complete(&volley->done);
}

static int fire_thread(void *volley)
{
	fire_here(volley);
	return 0;
}

/* Fires on the first @cpus online CPUs. */
static int fire_on(struct volley *volley, unsigned int cpus)
{
	struct task_struct *tasks[64];
	unsigned int n = 0;
	int cpu;

	if (cpus > min_t(unsigned int, ARRAY_SIZE(tasks), num_online_cpus()))
		return -EINVAL;
	guard(cpus_read_lock)();
	for_each_online_cpu(cpu) {
		if (n == cpus)
			break;
		tasks[n] = kthread_create_on_cpu(fire_thread, volley, cpu, "rtrace_bench/%u");
		if (IS_ERR(tasks[n])) {
			int error = PTR_ERR(tasks[n]);

			while (n--)
				kthread_stop(tasks[n]);
			return error;
		}
		n++;
	}
	while (n--)
		wake_up_process(tasks[n]);
	wait_for_completion(&volley->done);
	return 0;
}

/* The last answer. */
static struct {
	struct mutex lock;
	u64 events, ticks, idle, least;
} last = { .lock = __MUTEX_INITIALIZER(last.lock) };

static int run(const struct site *site, unsigned long count, unsigned int cpus, bool at_empty)
{
	struct volley volley = {
		.fire = site->fire,
		.tracepoints = at_empty ? empties : site->tracepoints,
		.count = count,
		.waiting = ATOMIC_INIT(max(cpus, 1U)),
		.firing = ATOMIC_INIT(max(cpus, 1U)),
	};
	int error = 0;

	init_completion(&volley.go);
	init_completion(&volley.done);
	if (cpus)
		error = fire_on(&volley, cpus);
	else
		fire_here(&volley);
	if (error)
		return error;
	last.events = count * max(cpus, 1U);
	last.ticks = atomic64_read(&volley.ticks);
	last.idle = atomic64_read(&volley.idle);
	last.least = atomic64_read(&volley.least);
	return 0;
}

static ssize_t fire_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	char text[64], name[32], word[8] = "";
	unsigned long count;
	unsigned int cpus = 0, i;
	int error;

	if (len >= sizeof(text))
		return -E2BIG;
	if (copy_from_user(text, from, len))
		return -EFAULT;
	text[len] = 0;
	if (sscanf(text, "%31s %lu %u %7s", name, &count, &cpus, word) < 3 &&
	    sscanf(text, "%31s %lu %7s", name, &count, word) < 2)
		return -EINVAL;
	if (!count || count > MAX_COUNT || (word[0] && strcmp(word, "empty")))
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(sites); i++) {
		if (strcmp(name, sites[i].name))
			continue;
		guard(mutex)(&last.lock);
		error = run(&sites[i], count, cpus, word[0]);
		return error ?: len;
	}
	return -ENOENT;
}

static int fire_show(struct seq_file *answer, void *data)
{
	guard(mutex)(&last.lock);
	seq_printf(answer, "events %llu\nticks %llu\nidle %llu\nleast %llu\ntsc_khz %u\n",
		   last.events, last.ticks, last.idle, last.least, counter_khz());
	return 0;
}

DEFINE_SHOW_STORE_ATTRIBUTE(fire);

/* The words of a reservation and a commit, in a cache line of their own. */
static struct {
	unsigned long position, committed;
} ____cacheline_aligned ring;
#define LENGTH 64

/* Adds to a word by one instruction: with a LOCK prefix if @lock is one. arm64 has no such distinction. */
#ifdef CONFIG_X86
#define ADD(lock, word) asm volatile(lock "addq %1, %0" : "+m"(word) : "i"(LENGTH))
#else
#define ADD(lock, word) atomic64_add(LENGTH, (atomic64_t *)&(word))
#endif

static __always_inline void reserve_and_commit_plain(void)
{
	WRITE_ONCE(ring.position, READ_ONCE(ring.position) + LENGTH);
	WRITE_ONCE(ring.committed, READ_ONCE(ring.committed) + LENGTH);
}

static noinline notrace void turn_empty(unsigned int times)
{
#pragma GCC unroll 1
	while (times--)
		barrier();
}

static noinline notrace void turn_local(unsigned int times)
{
	while (times--) {
		unsigned long position = READ_ONCE(ring.position);

		while (!try_cmpxchg_local(&ring.position, &position, position + LENGTH))
			;
		ADD("", ring.committed);
	}
}

static noinline notrace void turn_locked(unsigned int times)
{
	while (times--) {
		unsigned long position = READ_ONCE(ring.position);

		while (!try_cmpxchg(&ring.position, &position, position + LENGTH))
			;
		ADD("lock ", ring.committed);
	}
}

static noinline notrace void turn_irq_off(unsigned int times)
{
	while (times--) {
		unsigned long flags;

		raw_local_irq_save(flags);
		reserve_and_commit_plain();
		raw_local_irq_restore(flags);
	}
}

static noinline notrace void turn_preempt_off(unsigned int times)
{
	while (times--) {
		preempt_disable_notrace();
		reserve_and_commit_plain();
		preempt_enable_notrace();
	}
}

static noinline void rtrace_bench_called(void)
{
	barrier();
}

static noinline notrace void turn_call(unsigned int times)
{
	while (times--)
		rtrace_bench_called();
}

static noinline notrace void take_stack(void)
{
	unsigned long addresses[64];

	stack_trace_save(addresses, ARRAY_SIZE(addresses), 0);
	barrier_data(addresses);
}

static noinline notrace void turn_stack(unsigned int times)
{
	while (times--)
		take_stack();
}

/* A barrier keeps a last call from being a jump. */
static noinline notrace void deeper_in_module(unsigned int times, unsigned int left)
{
	if (left)
		deeper_in_module(times, left - 1);
	else
		turn_stack(times);
	barrier();
}

static notrace void turn_stack_module(unsigned int times)
{
	deeper_in_module(times, 7);
	barrier();
}

/* A turn of bsearch() through the kernel, as its comparison. */
struct turn {
	unsigned int times, left;
};

static notrace int deeper_in_kernel(const void *key, const void *item)
{
	struct turn *turn = (struct turn *)key;

	if (turn->left--)
		bsearch(turn, item, 1, 1, deeper_in_kernel);
	else
		turn_stack(turn->times);
	return 0;
}

static notrace void turn_stack_kernel(unsigned int times)
{
	struct turn turn = { .times = times, .left = 7 };

	bsearch(&turn, &turn, 1, 1, deeper_in_kernel);
}

static const struct {
	const char *name;
	void (*turn)(unsigned int times);
} primitives[] = {
	{ "empty", turn_empty },
	{ "local", turn_local },
	{ "locked", turn_locked },
	{ "irq-off", turn_irq_off },
	{ "preempt-off", turn_preempt_off },
	{ "call", turn_call },
	{ "stack", turn_stack },
	{ "stack-module", turn_stack_module },
	{ "stack-kernel", turn_stack_kernel },
};

static u64 primitive_ticks;

static ssize_t primitive_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	char text[64], name[32];
	unsigned int count, i;

	if (len >= sizeof(text))
		return -E2BIG;
	if (copy_from_user(text, from, len))
		return -EFAULT;
	text[len] = 0;
	if (sscanf(text, "%31s %u", name, &count) != 2 || count > MAX_COUNT)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(primitives); i++) {
		unsigned long flags;
		u64 begin;

		if (strcmp(name, primitives[i].name))
			continue;
		local_irq_save(flags);
		begin = counter_ordered();
		primitives[i].turn(count);
		primitive_ticks = counter_ordered() - begin;
		local_irq_restore(flags);
		return len;
	}
	return -ENOENT;
}

static int primitive_show(struct seq_file *answer, void *data)
{
	seq_printf(answer, "%llu\n", primitive_ticks);
	return 0;
}

DEFINE_SHOW_STORE_ATTRIBUTE(primitive);

static void find(struct tracepoint *tracepoint, void *data)
{
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(sites); i++)
		for (j = 0; j < MAX_TRACEPOINTS; j++)
			if (sites[i].names[j] && !strcmp(sites[i].names[j], tracepoint->name))
				sites[i].tracepoints[j] = tracepoint;
}

static struct dentry *dir;

static int __init bench_init(void)
{
	unsigned int i, j;

	for_each_kernel_tracepoint(find, NULL);
	for (i = 0; i < ARRAY_SIZE(sites); i++)
		for (j = 0; j < MAX_TRACEPOINTS; j++)
			if (sites[i].names[j] && !sites[i].tracepoints[j]) {
				pr_err("no tracepoint %s\n", sites[i].names[j]);
				return -ENOENT;
			}
	dir = debugfs_create_dir("rtrace_bench", NULL);
	debugfs_create_file("fire", 0600, dir, NULL, &fire_fops);
	debugfs_create_file("primitive", 0600, dir, NULL, &primitive_fops);
	return 0;
}

static void __exit bench_exit(void)
{
	debugfs_remove(dir);
}

module_init(bench_init);
module_exit(bench_exit);
MODULE_DESCRIPTION("Fires tracepoints for benchmarks");
MODULE_LICENSE("GPL");
