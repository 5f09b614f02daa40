// SPDX-License-Identifier: GPL-2.0
/* Kretprobes: the probe and the data of an instance. */
#include <linux/kprobes.h>

#include "helpers.h"

notrace struct kretprobe *rtrace_kretprobe_of(struct kretprobe_instance *instance)
{
	return get_kretprobe(instance);
}

notrace void *rtrace_kretprobe_data(struct kretprobe_instance *instance)
{
	return instance->data;
}
