// SPDX-License-Identifier: GPL-2.0
/* Privileges of the current task. */
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <linux/user_namespace.h>

#include "helpers.h"

notrace bool rtrace_sees_addresses(void)
{
	/* Not has_capability_noaudit(): some kernels do not export it. */
	return ns_capable_noaudit(&init_user_ns, CAP_SYSLOG);
}

/* perf's test of a task that creates an event of a kprobe. */
notrace bool rtrace_may_probe(void)
{
	return perfmon_capable();
}
