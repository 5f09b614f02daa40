// SPDX-License-Identifier: GPL-2.0
/* Kretprobes: the probe and the data of an instance. */
#include <linux/kprobes.h>
#include <linux/pid_namespace.h>

#include "helpers.h"
#include "linux.h"

notrace struct kretprobe *rtrace_kretprobe_of(struct kretprobe_instance *instance)
{
	return get_kretprobe(instance);
}

/* Number of threads and processes of the system. */
notrace unsigned int rtrace_task_count(void)
{
	return READ_ONCE(init_pid_ns.pid_allocated) & ~PIDNS_ADDING;
}

notrace void *rtrace_kretprobe_data(struct kretprobe_instance *instance)
{
	return instance->data;
}
