// SPDX-License-Identifier: GPL-2.0
/* Privileges of the current task. */
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <linux/user_namespace.h>

#include "helpers.h"

notrace bool rtrace_sees_addresses(void)
{
	/* (7.3 does not export has_capability_noaudit().) */
	return ns_capable_noaudit(&init_user_ns, CAP_SYSLOG);
}

/* As perf asks who makes an event of a kprobe. */
notrace bool rtrace_may_probe(void)
{
	return perfmon_capable();
}
