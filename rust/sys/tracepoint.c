// SPDX-License-Identifier: GPL-2.0
/* Tracepoints of the kernel and of modules. */
#include <linux/module.h>
#include <linux/rcupdate_trace.h>
#include <linux/srcu.h>
#include <linux/tracepoint.h>

#include "helpers.h"
#include "linux.h"

/*
 * Waits until no unregistered handler runs. With @may_sleep, waits until no handler runs with preemption
 * disabled; a handler that sleeps may still run after that: see rtrace_retire().
 */
notrace void rtrace_synchronize_probes(bool may_sleep)
{
	rtrace_synchronize_handlers();
	if (may_sleep)
		synchronize_rcu();
}

/* Whether handlers of the tracepoint may sleep. */
notrace bool rtrace_tracepoint_may_sleep(struct tracepoint *tracepoint)
{
	return tracepoint_is_faultable(tracepoint);
}

/* The tracepoint at index @at of the module, or NULL. */
notrace struct tracepoint *rtrace_module_tracepoint(struct module *module, size_t at)
{
	return at < module->num_tracepoints ? tracepoint_ptr_deref(&module->tracepoints_ptrs[at]) : NULL;
}

/* Waits until no handler of a module's tracepoints runs. The module's own code has stopped. */
notrace void rtrace_synchronize_module_probes(struct module *module)
{
	bool faultable = false;
	size_t at;

	for (at = 0; at < module->num_tracepoints; at++)
		faultable |= tracepoint_is_faultable(rtrace_module_tracepoint(module, at));
	rtrace_synchronize_handlers();
	/* This also waits for handlers of system calls, which may sleep while they fetch arguments. */
	if (faultable)
		synchronize_rcu_tasks_trace();
}
