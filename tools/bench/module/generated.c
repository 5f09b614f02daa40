// SPDX-License-Identifier: GPL-2.0
/*
 * Events for which rtrace has its own probes, with the probes that rtrace-events would have for them: so both can
 * be measured. rtrace accepts no second event at a tracepoint: each is registered at another one (stand_ins.h).
 */
#include <linux/module.h>
#include <linux/sched/numa_balancing.h>

#include "probe.h"
#include "stand_ins.h"

/* Not exported; none of these events uses it. */
#define task_numa_group_id(task)	0

/* As in header.c, for two headers. */
#define CREATE_TRACE_POINTS
#include <trace/events/irq.h>
#include <trace/events/sched.h>
#undef CREATE_TRACE_POINTS

#define TRACE_HEADER_MULTI_READ
#define HEADER <trace/events/irq.h>
#include "stages.h"
#undef HEADER
#define HEADER <trace/events/sched.h>
#include "stages.h"

static struct rtrace_tracepoint __init at(struct rtrace_tracepoint event, const char *tracepoint)
{
	event.event.subsystem = "generated";
	event.event.name = tracepoint;
	return event;
}

static int __init bench_events_init(void)
{
	const struct rtrace_tracepoint events[] = {
		at(rtrace_event_softirq_entry, AT_SOFTIRQ_ENTRY),
		at(rtrace_event_irq_handler_entry, AT_IRQ_HANDLER_ENTRY),
		at(rtrace_event_sched_switch, AT_SCHED_SWITCH),
	};
	int known = rtrace_tracepoints_register(events, ARRAY_SIZE(events));

	if (known == ARRAY_SIZE(events))
		return 0;
	if (known >= 0)
		rtrace_tracepoints_unregister(THIS_MODULE);
	return known < 0 ? known : -ENOENT;
}

static void __exit bench_events_exit(void)
{
	rtrace_tracepoints_unregister(THIS_MODULE);
}

module_init(bench_events_init);
module_exit(bench_events_exit);
MODULE_DESCRIPTION("The firing site's events, as rtrace-events has them");
MODULE_LICENSE("GPL");
