/* SPDX-License-Identifier: GPL-2.0 */
/* The events of events.c for lttng-ust. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng.h"

#if !defined(RTRACE_BENCH_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define RTRACE_BENCH_LTTNG_H

#include <lttng/tracepoint.h>
#include <stdint.h>

#define FIELD(name) lttng_ust_field_integer(uint64_t, name, name)

LTTNG_UST_TRACEPOINT_EVENT(bench, off, LTTNG_UST_TP_ARGS(uint64_t, a), LTTNG_UST_TP_FIELDS(FIELD(a)))
LTTNG_UST_TRACEPOINT_EVENT(bench, one, LTTNG_UST_TP_ARGS(uint64_t, a), LTTNG_UST_TP_FIELDS(FIELD(a)))
LTTNG_UST_TRACEPOINT_EVENT(bench, six,
	LTTNG_UST_TP_ARGS(uint64_t, a, uint64_t, b, uint64_t, c, uint64_t, d, uint64_t, e, uint64_t, f),
	LTTNG_UST_TP_FIELDS(FIELD(a) FIELD(b) FIELD(c) FIELD(d) FIELD(e) FIELD(f)))
LTTNG_UST_TRACEPOINT_EVENT(bench, text,
	LTTNG_UST_TP_ARGS(uint32_t, status, const char *, path),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, status, status) lttng_ust_field_string(path, path)))

#endif

#include <lttng/tracepoint-event.h>
