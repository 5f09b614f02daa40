// SPDX-License-Identifier: GPL-2.0
/* Tracepoints of the kernel and of modules. */
#include <linux/module.h>
#include <linux/rcupdate_trace.h>
#include <linux/srcu.h>
#include <linux/tracepoint.h>

#include "helpers.h"

/*
 * Waits until no handler runs that was unregistered; where handlers @may_sleep, until none has preemption disabled.
 * Handlers that may sleep may still run then: see rtrace_retire().
 */
notrace void rtrace_synchronize_probes(bool may_sleep)
{
	synchronize_srcu(&tracepoint_srcu);
	if (may_sleep)
		synchronize_rcu();
}

/* Whether its handlers may sleep. */
notrace bool rtrace_tracepoint_may_sleep(struct tracepoint *tracepoint)
{
	return tracepoint_is_faultable(tracepoint);
}

/* The tracepoint of the module at this place, or NULL. */
notrace struct tracepoint *rtrace_module_tracepoint(struct module *module, size_t at)
{
	return at < module->num_tracepoints ? tracepoint_ptr_deref(&module->tracepoints_ptrs[at]) : NULL;
}

/* Waits until no handler of a module's tracepoints runs. None of the module's code runs any more. */
notrace void rtrace_synchronize_module_probes(struct module *module)
{
	bool faultable = false;
	size_t at;

	for (at = 0; at < module->num_tracepoints; at++)
		faultable |= tracepoint_is_faultable(rtrace_module_tracepoint(module, at));
	synchronize_srcu(&tracepoint_srcu);
	/* This waits for system calls, too, whose arguments may have to be fetched. */
	if (faultable)
		synchronize_rcu_tasks_trace();
}
