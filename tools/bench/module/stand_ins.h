/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events of the firing site as rtrace-events has them (generated.c) stand at other tracepoints of
 * the kernel: those that nobody fires in the benchmarks' guest. Their prototypes do not matter, for
 * the site calls what is attached there as it calls what is attached to the event's own.
 */
#define AT_SOFTIRQ_ENTRY	"cpu_frequency_limits"
#define AT_IRQ_HANDLER_ENTRY	"pstate_sample"
#define AT_SCHED_SWITCH		"dev_pm_qos_remove_request"
