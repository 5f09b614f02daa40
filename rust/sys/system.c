// SPDX-License-Identifier: GPL-2.0
/* Macros and inline functions of the kernel that need no more than a call: cgroups, scheduling, utsname, work. */
#include <linux/cgroup.h>
#include <linux/sched/signal.h>
#include <linux/utsname.h>
#include <linux/workqueue.h>

#include "helpers.h"

notrace void rtrace_init_work(struct work_struct *work, work_func_t func)
{
	INIT_WORK(work, func);
}

/* Lets other threads run. Returns whether the calling thread has a fatal signal. May sleep. */
notrace bool rtrace_yield(void)
{
	cond_resched();
	return fatal_signal_pending(current);
}

/*
 * Offset of the pointer to the ancestor at this level in a struct cgroup; the cgroup itself is the last
 * ancestor.
 */
notrace size_t rtrace_cgroup_ancestor_place(int level)
{
	return offsetof(struct cgroup, ancestors) + level * sizeof(struct cgroup *);
}

notrace void rtrace_cgroup_put(struct cgroup *cgroup)
{
	cgroup_put(cgroup);
}

/* Answer of uname(2) in the initial namespace. Never freed. */
notrace const struct new_utsname *rtrace_utsname(void)
{
	return init_utsname();
}
