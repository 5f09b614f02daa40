// SPDX-License-Identifier: GPL-2.0
/*
 * Probes that may wait for user memory: how they read it, which tasks wait, and when memory that they use is
 * freed.
 *
 * The kernel calls the probes of system calls and of programs as readers of RCU tasks trace. A reader may
 * sleep in a page fault. Another process decides how long: a FUSE server or a userfaultfd handler. So rtrace
 * waits for these readers for a few seconds at most. The one exception is the unloading of rtrace.
 */

#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/rbtree.h>
#include <linux/rcupdate_trace.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/uprobes.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "faults.h"
#include "linux.h"

struct waiting {
	struct rb_node node;
	u64 number;
	struct task_struct *task;
	unsigned long since;
};

/* By number. A tree, because any number of tasks may wait: no one holds the lock for more than one look. */
static struct rb_root all_waiting = RB_ROOT;
static u64 last_waiting;
static DEFINE_SPINLOCK(waiting_lock);

static notrace bool waits_less(struct rb_node *one, const struct rb_node *other)
{
	return rb_entry(one, struct waiting, node)->number < rb_entry(other, struct waiting, node)->number;
}

/*
 * Registers the current task as one that waits for its memory. The module cannot be unloaded until end_wait().
 * Returns false if the module is being unloaded, or the task cannot sleep; then the task must not wait.
 */
static notrace bool begin_wait(struct waiting *waiting)
{
	if (!rtrace_may_fault() || !try_module_get(THIS_MODULE))
		return false;
	waiting->task = current;
	waiting->since = jiffies;
	spin_lock(&waiting_lock);
	waiting->number = ++last_waiting;
	rb_add(&waiting->node, &all_waiting, waits_less);
	spin_unlock(&waiting_lock);
	return true;
}

static notrace void end_wait(struct waiting *waiting)
{
	spin_lock(&waiting_lock);
	rb_erase(&waiting->node, &all_waiting);
	spin_unlock(&waiting_lock);
	module_put(THIS_MODULE);
}

/* Describes the waiting task with the smallest number above @after. Returns false if there is none. */
notrace bool rtrace_waiter(u64 after, struct rtrace_waiter *waiter)
{
	struct waiting *waiting, *found = NULL;
	struct rb_node *node;

	spin_lock(&waiting_lock);
	node = all_waiting.rb_node;
	while (node) {
		waiting = rb_entry(node, struct waiting, node);
		if (waiting->number > after) {
			found = waiting;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	if (found) {
		waiter->number = found->number;
		waiter->tid = task_pid_nr(found->task);
		strscpy_pad(waiter->comm, found->task->comm);
		waiter->seconds = (jiffies - found->since) / HZ;
	}
	spin_unlock(&waiting_lock);
	return found;
}

/* Faults in user memory. Returns the number of bytes that are missing. May sleep. */
notrace size_t rtrace_fault_in(u64 from, size_t len)
{
	struct waiting waiting;
	size_t missing;

	if (!begin_wait(&waiting))
		return len;
	missing = fault_in_readable((const char __user *)(unsigned long)from, len);
	end_wait(&waiting);
	return missing;
}

/* Copies user memory. A negative result: some bytes could not be read. */
typedef ssize_t (*copy_fn)(void *to, const void __user *from, size_t len);

static notrace ssize_t copy_text(void *to, const void __user *from, size_t room)
{
	return strncpy_from_user(to, from, room);
}

static notrace ssize_t copy_all(void *to, const void __user *from, size_t len)
{
	return copy_from_user(to, from, len) ? -EFAULT : 0;
}

/* Calls @copy with page faults disabled. If that fails, calls it again with page faults enabled. May sleep. */
static __always_inline ssize_t copy_waiting(copy_fn copy, void *to, u64 from, size_t len)
{
	const void __user *user = (const void __user *)(unsigned long)from;
	struct waiting waiting;
	ssize_t copied;

	pagefault_disable();
	copied = copy(to, user, len);
	pagefault_enable();
	if (copied >= 0 || !begin_wait(&waiting))
		return copied;
	copied = copy(to, user, len);
	end_wait(&waiting);
	return copied;
}

/* Copies a string as strncpy_from_user() does. May sleep. */
notrace ssize_t rtrace_copy_text(char *to, u64 from, size_t room)
{
	return copy_waiting(copy_text, to, from, room);
}

/* Copies user memory. Returns whether all bytes could be copied. May sleep. */
notrace bool rtrace_copy_from_user(void *to, u64 from, size_t len)
{
	return copy_waiting(copy_all, to, from, len) >= 0;
}

/* Limit of retired objects. It bounds the memory that is kept because of tasks that sleep for ever. */
#define RETIRED_MAX 1024

/* Retired memory whose grace period is over. */
static struct rtrace_retired *over;
static DEFINE_SPINLOCK(over_lock);

/* Number of retired objects that are not freed yet, and the time of the last retirement. */
static atomic_t retired_count;
static unsigned long last_retired;
static DECLARE_WAIT_QUEUE_HEAD(retired_waiters);

static void free_over(struct work_struct *work)
{
	struct rtrace_retired *all, *next;

	for (;;) {
		spin_lock_bh(&over_lock);
		all = over;
		over = NULL;
		spin_unlock_bh(&over_lock);
		if (!all)
			break;
		for (next = all; next && !next->of_uprobe; next = next->next)
			;
		/* The kernel chooses the RCU of uprobes: tasks trace, or SRCU in older updates of Linux 6.12. */
		if (next)
			uprobe_unregister_sync();
		while (all) {
			next = all->next;
			all->free(all);
			all = next;
			atomic_dec(&retired_count);
			wake_up_all(&retired_waiters);
		}
	}
}

static DECLARE_WORK(freeing, free_over);

/* Queues retired memory for freeing. Context: softirqs disabled. */
static void grace_period_over(struct rcu_head *rcu)
{
	struct rtrace_retired *retired = container_of(rcu, struct rtrace_retired, rcu);

	spin_lock(&over_lock);
	retired->next = over;
	over = retired;
	spin_unlock(&over_lock);
	queue_work(system_dfl_wq, &freeing);
}

/*
 * Calls @free in a context that may sleep, after each handler that runs now has returned. The caller has
 * unregistered the handlers before, of a uprobe or of something else. Any process context.
 */
notrace void rtrace_retire(struct rtrace_retired *retired, void (*free)(struct rtrace_retired *retired), bool of_uprobe)
{
	atomic_inc(&retired_count);
	WRITE_ONCE(last_retired, jiffies);
	retired->free = free;
	retired->of_uprobe = of_uprobe;
	call_rcu_tasks_trace(&retired->rcu, grace_period_over);
}

/* Waits until all retired memory is freed, or until one second after the last retirement. May sleep. */
notrace void rtrace_wait_a_second(void)
{
	long left = READ_ONCE(last_retired) + HZ - jiffies;

	if (left > 0 && left <= HZ)
		wait_event_idle_timeout(retired_waiters, !atomic_read(&retired_count), left);
}

/*
 * Prepares for the registration of a handler. Returns false if RETIRED_MAX objects are retired, and none was
 * freed within 10 seconds. May sleep, for 11 seconds at most.
 *
 * If a @tracepoint has one handler, the kernel calls that handler directly. It loads the handler's data first.
 * Then it calls the function that is the only handler at that moment. The kernel orders both steps for readers
 * that cannot be preempted. A reader of RCU tasks trace can be preempted between them. So this function waits
 * for that reader, for up to one second: a reader between the steps does not sleep.
 */
notrace bool rtrace_settle(bool tracepoint)
{
	if (tracepoint)
		rtrace_wait_a_second();
	return wait_event_idle_timeout(retired_waiters, atomic_read(&retired_count) < RETIRED_MAX, 10 * HZ);
}

/*
 * Waits until all retired memory is freed and none of the code above runs. Called when the module ends: no
 * handler is registered, and none waits for user memory. A reader of another tracer can make the wait long, so
 * a message explains it. May sleep.
 */
notrace void rtrace_wait_retired(void)
{
	while (!wait_event_idle_timeout(retired_waiters, !atomic_read(&retired_count), 10 * HZ))
		pr_warn("rtrace: unloading waits for RCU tasks trace: a task sleeps in another tracer's probe or program\n");
	/* The last callback may still run. */
	synchronize_rcu();
	flush_work(&freeing);
}
