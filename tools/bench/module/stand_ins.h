/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events of the firing site, as rtrace-events has them (generated.c), are registered at other tracepoints
 * of the kernel, which never fire in the benchmarks' guest. Their prototypes do not matter: the site calls
 * the probes there as it calls those of the event's own tracepoint.
 */
#define AT_SOFTIRQ_ENTRY	"cpu_frequency_limits"
#define AT_IRQ_HANDLER_ENTRY	"pstate_sample"
#define AT_SCHED_SWITCH		"dev_pm_qos_remove_request"
