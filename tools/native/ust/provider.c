// SPDX-License-Identifier: GPL-2.0
/*
 * Loops that fire tracepoints of lttng-ust, one record after the other, as
 * src/rtrace.rs fires the module's. Loaded by src/ust.rs.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "provider.h"

static const struct task tasks[2] = {
	{ .comm = "kworker/u8:3-ev", .tid = 4711, .prio = 120 },
	{ .comm = "swapper/0", .tid = 0, .prio = 120 },
};

/* With its NUL, 14 bytes. */
static const char name[] = "virtio1-req.0";

/* Whether the session daemon has enabled all the tracepoints. */
int ust_is_enabled(void)
{
	return lttng_ust_tracepoint_enabled(rtrace_native, small) &&
	       lttng_ust_tracepoint_enabled(rtrace_native, medium) &&
	       lttng_ust_tracepoint_enabled(rtrace_native, medium_nested) &&
	       lttng_ust_tracepoint_enabled(rtrace_native, large);
}

void ust_small(uint64_t records)
{
	for (uint64_t i = 0; i < records; i++)
		lttng_ust_tracepoint(rtrace_native, small, i);
}

void ust_medium(uint64_t records)
{
	for (uint64_t i = 0; i < records; i++)
		lttng_ust_tracepoint(rtrace_native, medium, i, name);
}

void ust_large(uint64_t records)
{
	for (uint64_t i = 0; i < records; i++)
		lttng_ust_tracepoint(rtrace_native, large, &tasks[0], &tasks[1], i);
}

/* Each call of the macro makes two records. */
void ust_nested(uint64_t records)
{
	for (uint64_t i = 0; i < records; i += 2)
		lttng_ust_tracepoint(rtrace_native, medium_nested, i, name);
}

int32_t ust_nest(int32_t irq, const char *name)
{
	lttng_ust_tracepoint(rtrace_native, medium, irq, name);
	return irq;
}
