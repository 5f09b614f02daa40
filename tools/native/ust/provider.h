/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tracepoints of lttng-ust, with the fields of src/rtrace.rs: 6, 22 and 60
 * bytes with a compact header.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER rtrace_native

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./provider.h"

#if !defined(RTRACE_NATIVE_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define RTRACE_NATIVE_PROVIDER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

#ifndef RTRACE_NATIVE_TASK
#define RTRACE_NATIVE_TASK
struct task {
	char comm[16];
	int32_t tid;
	int32_t prio;
};

/* Fires a record and gives back what it was given. */
int32_t ust_nest(int32_t irq, const char *name);
#endif

LTTNG_UST_TRACEPOINT_EVENT(rtrace_native, small,
	LTTNG_UST_TP_ARGS(uint16_t, vec),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint16_t, vec, vec)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(rtrace_native, medium,
	LTTNG_UST_TP_ARGS(int32_t, irq, const char *, name),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int32_t, irq, irq)
		lttng_ust_field_string(name, name)
	)
)

/* In the middle of the record another one. */
LTTNG_UST_TRACEPOINT_EVENT(rtrace_native, medium_nested,
	LTTNG_UST_TP_ARGS(int32_t, irq, const char *, name),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int32_t, irq, ust_nest(irq, name))
		lttng_ust_field_string(name, name)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(rtrace_native, large,
	LTTNG_UST_TP_ARGS(const struct task *, prev, const struct task *, next, int64_t, prev_state),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_array_text(char, prev_comm, prev->comm, 16)
		lttng_ust_field_integer(int32_t, prev_tid, prev->tid)
		lttng_ust_field_integer(int32_t, prev_prio, prev->prio)
		lttng_ust_field_integer(int64_t, prev_state, prev_state)
		lttng_ust_field_array_text(char, next_comm, next->comm, 16)
		lttng_ust_field_integer(int32_t, next_tid, next->tid)
		lttng_ust_field_integer(int32_t, next_prio, next->prio)
	)
)

#endif

#include <lttng/tracepoint-event.h>
