// SPDX-License-Identifier: GPL-2.0
/*
 * A clock for lttng-ust (LTTNG_UST_CLOCK_PLUGIN): the processor's time stamp
 * counter, which is what rtrace takes. Its frequency is in RTRACE_TSC_HZ.
 */
#include <lttng/ust-clock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

static uint64_t read64(void)
{
	return __rdtsc();
}

static uint64_t frequency(void)
{
	const char *hz = getenv("RTRACE_TSC_HZ");

	return hz ? strtoull(hz, NULL, 10) : 1000000000;
}

static int uuid(char *text)
{
	strcpy(text, "6ba7b810-9dad-11d1-80b4-00c04fd430c8");
	return 0;
}

static const char *name(void)
{
	return "tsc";
}

static const char *description(void)
{
	return "Time stamp counter";
}

void lttng_ust_clock_plugin_init(void)
{
	if (lttng_ust_trace_clock_set_read64_cb(read64) ||
	    lttng_ust_trace_clock_set_freq_cb(frequency) ||
	    lttng_ust_trace_clock_set_uuid_cb(uuid) ||
	    lttng_ust_trace_clock_set_name_cb(name) ||
	    lttng_ust_trace_clock_set_description_cb(description) ||
	    lttng_ust_enable_trace_clock_override()) {
		fprintf(stderr, "the clock of lttng-ust could not be replaced\n");
		abort();
	}
}
