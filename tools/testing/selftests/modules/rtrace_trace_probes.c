// SPDX-License-Identifier: GPL-2.0
/*
 * For kernel/modules: probes, by rtrace's interface, for tracepoints of rtrace_trace_events. That module may be
 * loaded before or after this one, and again. Because it is not built with the kernel, the probes name its
 * tracepoints' module.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/unaligned.h>

#include "rtrace.h"

/* TP_PROTO() of rtrace_test_outer. */
static notrace __section(".kprobes.text") void probe_outer(void *data, unsigned int seq)
{
	struct rtrace_record room;
	void *record = rtrace_record_begin(data, &room, sizeof(u32));

	if (!record)
		return;
	put_unaligned((u32)seq, (u32 *)record);
	rtrace_record_end(&room);
}

/* TP_PROTO() of rtrace_test_large, with a field that it does not have. */
static notrace __section(".kprobes.text") void probe_large(void *data, unsigned int seq, unsigned int size)
{
}

static const struct rtrace_field outer[] = {
	{ .name = "seq", .type = RTRACE_UNSIGNED, .size = sizeof(u32) },
};

static const struct rtrace_field large[] = {
	{ .name = "seq", .type = RTRACE_UNSIGNED, .size = sizeof(u64) },
	{ .name = "bytes", .type = RTRACE_UNSIGNED, .size = 1, .count = RTRACE_VARIES },
};

#define TRACEPOINT(name_, fields_, probe_, module_) {						\
	.event = {										\
		.subsystem = "rtrace_test", .name = name_,					\
		.fields = fields_, .nr_fields = ARRAY_SIZE(fields_),				\
	},											\
	.owner = THIS_MODULE, .probe = probe_, .module = module_,				\
}

static const struct rtrace_tracepoint tracepoints[] = {
	TRACEPOINT("rtrace_test_outer", outer, probe_outer, "rtrace_trace_events"),
	TRACEPOINT("rtrace_test_large", large, probe_large, "rtrace_trace_events"),
	/* Not of a module of the kernel; not one of the kernel's own tracepoints; not existing. */
	TRACEPOINT("rtrace_test_kinds", outer, probe_outer, RTRACE_KERNEL_MODULES),
	TRACEPOINT("rtrace_test_none", outer, probe_outer, NULL),
	TRACEPOINT("rtrace_test_never", outer, probe_outer, RTRACE_KERNEL_MODULES),
};

static int __init rtrace_trace_probes_init(void)
{
	int known = rtrace_tracepoints_register(tracepoints, ARRAY_SIZE(tracepoints));

	return min(known, 0);
}

static void __exit rtrace_trace_probes_exit(void)
{
	rtrace_tracepoints_unregister(THIS_MODULE);
}

module_init(rtrace_trace_probes_init);
module_exit(rtrace_trace_probes_exit);
MODULE_DESCRIPTION("Probes for tracepoints of another module, for rtrace's tests");
MODULE_LICENSE("GPL");
