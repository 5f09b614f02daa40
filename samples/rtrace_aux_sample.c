// SPDX-License-Identifier: GPL-2.0
/*
 * A module that writes chunks of raw bytes in addition to rtrace's events: sample:sample_aux.
 *
 *	echo '100 4096' > /sys/kernel/debug/rtrace_aux_sample/write
 *
 * writes 100 times 4096 bytes into the AUX area of every online CPU, in parallel, from
 * threads; write_irq does the same from interrupts. Both return when all bytes are written. The bytes
 * are words of 64 bits that count up on each CPU from 0x0100..., so that a reader sees which bytes are
 * missing: bytes that find no room are omitted, but the count goes on. Reading either file shows for
 * each CPU the numbers of bytes written and omitted.
 *
 * open begins a chunk on the writer's CPU, and close ends it, so that tests can act in between.
 */
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/smp.h>

#include "rtrace.h"

static const struct rtrace_aux_desc desc = {
	.subsystem = "sample",
	.name = "sample_aux",
};

struct producer {
	u64 at;		/* bytes produced */
	u64 written;	/* of these, bytes that found room */
};

static struct rtrace_aux *aux;
static struct dentry *dir;
static DEFINE_PER_CPU(struct producer, producers);
static DEFINE_MUTEX(write_mutex);

/* Returns byte number `at` of a CPU's bytes. */
static u8 pattern(u64 at)
{
	u64 word = (at / 8) + (1ULL << 56);

	return word >> (at % 8 * 8);
}

static void fill(u8 *to, u64 at, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		to[i] = pattern(at + i);
}

/* Writes a chunk, or several around the end of the area. The caller stays on this CPU. */
static void write_chunk(size_t len)
{
	struct producer *producer = this_cpu_ptr(&producers);

	while (len) {
		struct rtrace_aux_handle handle;
		u8 *to = rtrace_aux_begin(aux, &handle, len);

		if (!to)
			break;
		fill(to, producer->at, handle.size);
		producer->at += handle.size;
		producer->written += handle.size;
		len -= handle.size;
		rtrace_aux_end(aux, &handle, handle.size, 0);
	}
	producer->at += len;
}

struct volley {
	u64 count;
	size_t len;
	atomic_t left;
	struct completion start;
	struct completion done;
};

static int write_thread(void *data)
{
	struct volley *volley = data;
	u64 i;

	wait_for_completion(&volley->start);
	for (i = 0; i < volley->count; i++) {
		write_chunk(volley->len);
		cond_resched();
	}
	if (atomic_dec_and_test(&volley->left))
		complete(&volley->done);
	return 0;
}

static int write_all(u64 count, size_t len)
{
	struct volley volley = { .count = count, .len = len, .left = ATOMIC_INIT(1) };
	int error = 0;
	int cpu;

	init_completion(&volley.start);
	init_completion(&volley.done);
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		struct task_struct *task = kthread_create_on_cpu(write_thread, &volley, cpu,
								 "rtrace_aux/%u");

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

static void write_irq(void *data)
{
	write_chunk(*(size_t *)data);
}

static int write_all_irq(u64 count, size_t len)
{
	cpus_read_lock();
	for (; count; count--)
		on_each_cpu(write_irq, &len, 1);
	cpus_read_unlock();
	return 0;
}

static int write_show(struct seq_file *file, void *data)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct producer *producer = per_cpu_ptr(&producers, cpu);

		seq_printf(file, "%d %llu %llu\n", cpu, producer->written,
			   producer->at - producer->written);
	}
	return 0;
}

static int write_open(struct inode *inode, struct file *file)
{
	return single_open(file, write_show, inode->i_private);
}

/* The function of a file, for the count and the length written to it. */
typedef int write_fn(u64 count, size_t len);

static ssize_t write_write(struct file *file, const char __user *buffer, size_t size, loff_t *at)
{
	write_fn *write = ((struct seq_file *)file->private_data)->private;
	char text[64];
	u64 count, len;
	int error;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buffer, size))
		return -EFAULT;
	text[size] = 0;
	if (sscanf(text, "%llu %llu", &count, &len) != 2 || !len)
		return -EINVAL;
	guard(mutex)(&write_mutex);
	error = write(count, len);
	return error ? error : size;
}

static const struct file_operations write_fops = {
	.owner = THIS_MODULE,
	.open = write_open,
	.read = seq_read,
	.write = write_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* The chunk between open and close. */
static struct rtrace_aux_handle opened;
static bool is_open;

static int open_set(void *data, u64 len)
{
	u8 *to;

	guard(mutex)(&write_mutex);
	if (is_open)
		return -EBUSY;
	to = rtrace_aux_begin(aux, &opened, len);
	if (!to)
		return -ENOSPC;
	memset(to, 0xee, opened.size);
	is_open = true;
	return 0;
}

/* The length may be wrong; then rtrace returns an error. */
static int close_set(void *data, u64 len)
{
	guard(mutex)(&write_mutex);
	if (!is_open)
		return -EBADF;
	is_open = false;
	return rtrace_aux_end(aux, &opened, len, 0);
}

DEFINE_DEBUGFS_ATTRIBUTE(open_fops, NULL, open_set, "%llu\n");
DEFINE_DEBUGFS_ATTRIBUTE(close_fops, NULL, close_set, "%llu\n");

static int __init sample_init(void)
{
	aux = rtrace_aux_register(&desc);
	if (IS_ERR(aux))
		return PTR_ERR(aux);
	dir = debugfs_create_dir("rtrace_aux_sample", NULL);
	debugfs_create_file("write", 0600, dir, write_all, &write_fops);
	debugfs_create_file("write_irq", 0600, dir, write_all_irq, &write_fops);
	debugfs_create_file_unsafe("open", 0200, dir, NULL, &open_fops);
	debugfs_create_file_unsafe("close", 0200, dir, NULL, &close_fops);
	return 0;
}

static void __exit sample_exit(void)
{
	debugfs_remove(dir);
	if (is_open)
		rtrace_aux_end(aux, &opened, 0, 0);
	rtrace_aux_unregister(aux);
}

module_init(sample_init);
module_exit(sample_exit);
MODULE_DESCRIPTION("Chunks of raw bytes in addition to rtrace's events");
MODULE_LICENSE("GPL");
