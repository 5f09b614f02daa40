// SPDX-License-Identifier: GPL-2.0
/*
 * A module that adds an event to rtrace's traces: sample:sample_tick.
 *
 *	echo 1000 > /sys/kernel/debug/rtrace_sample/fire
 *
 * emits it 1000 times on every online CPU, in parallel, from threads; fire_irq
 * does the same from interrupts, which interrupt any code. Both return when all events are
 * emitted. Reading either file returns how often the event was emitted since loading.
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/smp.h>

#include "rtrace.h"

/* A larger batch would disable interrupts for too long. */
#define IRQ_BATCH 100

/* The record, with the layout that the fields below describe. */
struct tick {
	u64 seq;
	u32 cpu;
} __packed;

static const struct rtrace_field fields[] = {
	{ "seq", RTRACE_UNSIGNED, sizeof(u64) },
	{ "cpu", RTRACE_UNSIGNED, sizeof(u32) },
};

static const struct rtrace_event_desc desc = {
	.subsystem = "sample",
	.name = "sample_tick",
	.fields = fields,
	.nr_fields = ARRAY_SIZE(fields),
};

static struct rtrace_event *event;
static struct dentry *dir;
static DEFINE_PER_CPU(atomic64_t, fired);
static DEFINE_MUTEX(fire_mutex);

/* Emits an event on this CPU, with this CPU's next number. Another call may interrupt it. */
static void tick(void)
{
	struct tick record;

	preempt_disable();
	record.seq = atomic64_fetch_inc(this_cpu_ptr(&fired));
	record.cpu = smp_processor_id();
	rtrace_event_emit(event, &record, sizeof(record), NULL);
	preempt_enable();
}

struct volley {
	u64 count;
	atomic_t left;
	struct completion start;
	struct completion done;
};

static int fire_thread(void *data)
{
	struct volley *volley = data;
	u64 i;

	wait_for_completion(&volley->start);
	for (i = 0; i < volley->count; i++) {
		tick();
		cond_resched();
	}
	if (atomic_dec_and_test(&volley->left))
		complete(&volley->done);
	return 0;
}

static int fire(u64 count)
{
	struct volley volley = { .count = count, .left = ATOMIC_INIT(1) };
	int error = 0;
	int cpu;

	init_completion(&volley.start);
	init_completion(&volley.done);
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		struct task_struct *task = kthread_create_on_cpu(fire_thread, &volley, cpu,
								 "rtrace_sample/%u");

		if (IS_ERR(task)) {
			error = PTR_ERR(task);
			volley.count = 0;
			break;
		}
		atomic_inc(&volley.left);
		wake_up_process(task);
	}
	complete_all(&volley.start);
	if (!atomic_dec_and_test(&volley.left))
		wait_for_completion(&volley.done);
	cpus_read_unlock();
	return error;
}

static void fire_irq_batch(void *data)
{
	unsigned int i;

	for (i = 0; i < *(unsigned int *)data; i++)
		tick();
}

static int fire_irq(u64 count)
{
	cpus_read_lock();
	while (count) {
		unsigned int batch = min_t(u64, count, IRQ_BATCH);

		on_each_cpu(fire_irq_batch, &batch, 1);
		count -= batch;
	}
	cpus_read_unlock();
	return 0;
}

static int fired_get(void *data, u64 *value)
{
	int cpu;

	*value = 0;
	for_each_possible_cpu(cpu)
		*value += atomic64_read(per_cpu_ptr(&fired, cpu));
	return 0;
}

static int fire_set(void *data, u64 count)
{
	guard(mutex)(&fire_mutex);
	return fire(count);
}

static int fire_irq_set(void *data, u64 count)
{
	guard(mutex)(&fire_mutex);
	return fire_irq(count);
}

DEFINE_DEBUGFS_ATTRIBUTE(fire_fops, fired_get, fire_set, "%llu\n");
DEFINE_DEBUGFS_ATTRIBUTE(fire_irq_fops, fired_get, fire_irq_set, "%llu\n");

static int __init sample_init(void)
{
	event = rtrace_event_register(&desc);
	if (IS_ERR(event))
		return PTR_ERR(event);
	dir = debugfs_create_dir("rtrace_sample", NULL);
	debugfs_create_file_unsafe("fire", 0600, dir, NULL, &fire_fops);
	debugfs_create_file_unsafe("fire_irq", 0600, dir, NULL, &fire_irq_fops);
	return 0;
}

static void __exit sample_exit(void)
{
	debugfs_remove(dir);
	rtrace_event_unregister(event);
}

module_init(sample_init);
module_exit(sample_exit);
MODULE_DESCRIPTION("An event that a module adds to rtrace's traces");
MODULE_LICENSE("GPL");
