// SPDX-License-Identifier: GPL-2.0
/* Linked last: see main.c. */
#include "probe.h"

const struct rtrace_tracepoint rtrace_last[0] __aligned(8) __section("rtrace_tracepoints");
const struct rtrace_class rtrace_last_class[0] __aligned(8) __section(".init.rtrace_classes");
const struct rtrace_names rtrace_last_names[0] __aligned(8) __section(".init.rtrace_names");
