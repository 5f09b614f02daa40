// SPDX-License-Identifier: GPL-2.0
/* The cost of an event of lttng-ust, beside events.c. Its session is a flight recorder; its clock is CLOCK_MONOTONIC. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng.h"
#include "measure.h"

#define MONOTONIC (void)now()

int main(void)
{
	if (!lttng_ust_tracepoint_enabled(bench, one) || lttng_ust_tracepoint_enabled(bench, off)) {
		fprintf(stderr, "the session does not record the events\n");
		return 1;
	}
	MEASURE("lttng-ust: off", (void)i, lttng_ust_tracepoint(bench, off, i));
	MEASURE("lttng-ust: 8 bytes", MONOTONIC, lttng_ust_tracepoint(bench, one, i));
	MEASURE("lttng-ust: 48 bytes", MONOTONIC, lttng_ust_tracepoint(bench, six, i, i, i, i, i, i));
	MEASURE("lttng-ust: u32 and text", MONOTONIC, lttng_ust_tracepoint(bench, text, i, "/cart/17"));
	return 0;
}
