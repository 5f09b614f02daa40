// SPDX-License-Identifier: GPL-2.0
/*
 * For kernel/perf-*: tracepoints of a module that does not know rtrace.
 *
 *	echo N > /sys/module/rtrace_trace_events/parameters/fire	N of each, numbered from 0
 *	echo N > /sys/module/rtrace_trace_events/parameters/size	bytes of each rtrace_test_large
 */
#include <linux/module.h>
#include <linux/sched/task.h>

static void rtrace_test_nested(unsigned int seq);

#define CREATE_TRACE_POINTS
#include "rtrace_trace_events.h"

static unsigned int size = 16;
module_param(size, uint, 0644);
MODULE_PARM_DESC(size, "bytes of the field of variable size of rtrace_test_large");

static void rtrace_test_nested(unsigned int seq)
{
	trace_rtrace_test_large(seq, size);
}

static int fire(const char *text, const struct kernel_param *param)
{
	static const char *const texts[] = { "", "a", "two words", NULL, "the last one of these texts" };
	unsigned int count, seq;
	int err = kstrtouint(text, 0, &count);

	if (err)
		return err;
	for (seq = 0; seq < count; seq++) {
		trace_rtrace_test_kinds(seq, texts[seq % ARRAY_SIZE(texts)]);
		trace_rtrace_test_large(seq, size);
		trace_rtrace_test_outer(seq);
	}
	return 0;
}

static const struct kernel_param_ops fire_ops = { .set = fire };
module_param_cb(fire, &fire_ops, NULL, 0200);
MODULE_PARM_DESC(fire, "fires so many of each event");

MODULE_DESCRIPTION("Tracepoints, for rtrace's tests");
MODULE_LICENSE("GPL");
