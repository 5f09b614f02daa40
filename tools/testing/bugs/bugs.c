// SPDX-License-Identifier: GPL-2.0
/*
 * Has one bug of each kind that a debug kernel can detect. While it is loaded it does the one that
 * the parameter "bug" names.
 */
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>

static char *bug = "";
module_param(bug, charp, 0);
MODULE_PARM_DESC(bug, "Which: the name of a function below, without bug_");

/* In memory.rs. */
void rtrace_bug_use_after_free(void);
void rtrace_bug_out_of_bounds(void);

static DEFINE_SPINLOCK(spin);
static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static int __rcu *shared;
static volatile int sink;
static void *volatile last;

static void bug_rcu(void)
{
	int *seen = rcu_dereference(shared);

	sink = seen != NULL;
}

static void bug_preempt(void)
{
	sink = smp_processor_id();
}

static void bug_atomic_sleep(void)
{
	spin_lock(&spin);
	might_sleep();
	spin_unlock(&spin);
}

static void bug_list(void)
{
	struct list_head head, entry;

	INIT_LIST_HEAD(&head);
	list_add(&entry, &head);
	list_add(&entry, &head);
}

static void bug_refcount(void)
{
	refcount_t count = REFCOUNT_INIT(0);

	refcount_inc(&count);
}

static enum hrtimer_restart nothing(struct hrtimer *timer)
{
	return HRTIMER_NORESTART;
}

static void bug_active_timer(void)
{
	struct hrtimer *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	hrtimer_setup(timer, nothing, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	hrtimer_start(timer, ms_to_ktime(1000000), HRTIMER_MODE_REL);
	kfree(timer);
}

static void bug_leak(void)
{
	int i;

	/*
	 * Many, because stale copies of the last ones stay in the allocator's own lists. Stored in a
	 * variable, because the compiler would otherwise drop the call.
	 */
	for (i = 0; i < 1000; i++)
		last = kmalloc(200, GFP_KERNEL);
	last = NULL;
}

static void bug_lock_order(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static const struct {
	const char *name;
	void (*commit)(void);
} bugs[] = {
	{ "rcu", bug_rcu },
	{ "preempt", bug_preempt },
	{ "atomic_sleep", bug_atomic_sleep },
	{ "list", bug_list },
	{ "refcount", bug_refcount },
	{ "active_timer", bug_active_timer },
	{ "leak", bug_leak },
	{ "lock_order", bug_lock_order },
	{ "use_after_free", rtrace_bug_use_after_free },
	{ "out_of_bounds", rtrace_bug_out_of_bounds },
};

static int __init bugs_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bugs); i++) {
		if (!strcmp(bugs[i].name, bug)) {
			bugs[i].commit();
			return 0;
		}
	}
	return -EINVAL;
}

static void __exit bugs_exit(void)
{
}

module_init(bugs_init);
module_exit(bugs_exit);
MODULE_DESCRIPTION("Does wrong on request");
MODULE_LICENSE("GPL");
