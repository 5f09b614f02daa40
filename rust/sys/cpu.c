// SPDX-License-Identifier: GPL-2.0
/* CPU masks, and calls on another CPU. */
#include <linux/cpumask.h>
#include <linux/rcupdate.h>
#include <linux/sched/isolation.h>
#include <linux/smp.h>

#include "helpers.h"

/* The type of the last argument differs between kernels. */
notrace int rtrace_call_on_cpu(int cpu, smp_call_func_t func, void *info)
{
	return smp_call_function_single(cpu, func, info, true);
}

/* Next online or possible CPU after @cpu; -1 starts at the first. nr_cpu_ids or more: there is none. */
notrace int rtrace_cpu_next(int cpu, bool online)
{
	return cpumask_next(cpu, online ? cpu_online_mask : cpu_possible_mask);
}

/*
 * Whether the kernel keeps its own work off @cpu. cpu_is_isolated() ignores nohz_full=, so this reads both
 * masks. Cpusets replace the mask of isolated partitions under RCU.
 */
notrace bool rtrace_cpu_is_isolated(int cpu)
{
	guard(rcu)();
	return !housekeeping_cpu(cpu, HK_TYPE_DOMAIN) || !housekeeping_cpu(cpu, HK_TYPE_TICK);
}
