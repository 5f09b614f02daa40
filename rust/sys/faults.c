// SPDX-License-Identifier: GPL-2.0
/*
 * Probes that may wait for user memory: reading it, who waits, and when what they use is freed.
 *
 * The kernel calls probes of system calls and of programs as readers of RCU tasks trace. Such a reader may sleep in a
 * page fault, for as long as another process likes: a FUSE server, a userfaultfd handler. So rtrace waits for these
 * readers a few seconds at most, but at its own unloading.
 */

#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/rcupdate_trace.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "faults.h"

struct waiting {
	struct list_head node;
	struct task_struct *task;
	unsigned long since;
};

static LIST_HEAD(all_waiting);
static DEFINE_SPINLOCK(waiting_lock);

/*
 * The current task is about to wait for its memory. The module cannot be unloaded until end_wait(). False: it is being
 * unloaded, so the task must not wait.
 */
static notrace bool begin_wait(struct waiting *waiting)
{
	if (!try_module_get(THIS_MODULE))
		return false;
	waiting->task = current;
	waiting->since = jiffies;
	spin_lock(&waiting_lock);
	list_add_tail(&waiting->node, &all_waiting);
	spin_unlock(&waiting_lock);
	return true;
}

static notrace void end_wait(struct waiting *waiting)
{
	spin_lock(&waiting_lock);
	list_del(&waiting->node);
	spin_unlock(&waiting_lock);
	module_put(THIS_MODULE);
}

/* Task number @at of those that wait. False: there are not as many. */
notrace bool rtrace_waiter(size_t at, struct rtrace_waiter *waiter)
{
	struct waiting *waiting;
	bool found = false;

	spin_lock(&waiting_lock);
	list_for_each_entry(waiting, &all_waiting, node) {
		if (at--)
			continue;
		waiter->tid = task_pid_nr(waiting->task);
		strscpy_pad(waiter->comm, waiting->task->comm);
		waiter->seconds = (jiffies - waiting->since) / HZ;
		found = true;
		break;
	}
	spin_unlock(&waiting_lock);
	return found;
}

/* Has the memory there fetched. Returns how many bytes of it there are not. May sleep. */
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

/* Copies user memory. Negative: some of it could not be read. */
typedef ssize_t (*copy_fn)(void *to, const void __user *from, size_t len);

static notrace ssize_t copy_text(void *to, const void __user *from, size_t room)
{
	return strncpy_from_user(to, from, room);
}

static notrace ssize_t copy_all(void *to, const void __user *from, size_t len)
{
	return copy_from_user(to, from, len) ? -EFAULT : 0;
}

/* Calls @copy with page faults disabled, and once more with page faults if that fails. May sleep. */
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

/* As strncpy_from_user(). May sleep. */
notrace ssize_t rtrace_copy_text(char *to, u64 from, size_t room)
{
	return copy_waiting(copy_text, to, from, room);
}

/* Whether all bytes could be copied. May sleep. */
notrace bool rtrace_copy_from_user(void *to, u64 from, size_t len)
{
	return copy_waiting(copy_all, to, from, len) >= 0;
}

/* The most that may be retired, so that tasks that sleep for ever do not hold more and more memory. */
#define RETIRED_MAX 1024

/* Retired memory whose grace period is over. */
static struct rtrace_retired *over;
static DEFINE_SPINLOCK(over_lock);

/* Retired memory that is not freed yet, and when the last of it was retired. */
static atomic_t retired_count;
static unsigned long last_retired;
static DECLARE_WAIT_QUEUE_HEAD(retired_waiters);

static void free_over(struct work_struct *work)
{
	struct rtrace_retired *next;

	for (;;) {
		spin_lock_bh(&over_lock);
		next = over;
		if (next)
			over = next->next;
		spin_unlock_bh(&over_lock);
		if (!next)
			break;
		next->free(next);
		atomic_dec(&retired_count);
		wake_up_all(&retired_waiters);
	}
}

static DECLARE_WORK(freeing, free_over);

/* Context: softirqs disabled. */
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
 * Has @free called, where it may sleep, when no handler runs any more that runs now. The handlers were unregistered
 * before. Any process context.
 */
notrace void rtrace_retire(struct rtrace_retired *retired, void (*free)(struct rtrace_retired *retired))
{
	atomic_inc(&retired_count);
	WRITE_ONCE(last_retired, jiffies);
	retired->free = free;
	call_rcu_tasks_trace(&retired->rcu, grace_period_over);
}

/* Waits until all is freed, or was retired a second ago. May sleep. */
notrace void rtrace_wait_a_second(void)
{
	long left = READ_ONCE(last_retired) + HZ - jiffies;

	if (left > 0 && left <= HZ)
		wait_event_idle_timeout(retired_waiters, !atomic_read(&retired_count), left);
}

/*
 * For the time before a handler is registered. False: RETIRED_MAX are retired, and 10 seconds were not enough to free
 * one. May sleep, 11 seconds at most.
 *
 * A @tracepoint with one handler calls that directly. The kernel loads the handler's data first, and then calls
 * whichever handler is the only one by then. It orders the two for readers that cannot be preempted; a reader of RCU
 * tasks trace can be, in between. So this waits a second for that: a reader that is there does not sleep.
 */
notrace bool rtrace_settle(bool tracepoint)
{
	if (tracepoint)
		rtrace_wait_a_second();
	return wait_event_idle_timeout(retired_waiters, atomic_read(&retired_count) < RETIRED_MAX, 10 * HZ);
}

/*
 * Waits until all is freed, and none of the code above runs. For the module's end: no handler is registered, and
 * none waits for user memory. A reader that is not rtrace's can make this long, so it says what it does. May sleep.
 */
notrace void rtrace_wait_retired(void)
{
	while (!wait_event_idle_timeout(retired_waiters, !atomic_read(&retired_count), 10 * HZ))
		pr_warn("rtrace: unloading waits for RCU tasks trace: a task sleeps in another tracer's probe or program\n");
	/* The last callback may not have returned. */
	synchronize_rcu();
	flush_work(&freeing);
}
