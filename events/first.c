// SPDX-License-Identifier: GPL-2.0
/* Linked before all others: see main.c. */
#include "probe.h"

const struct rtrace_tracepoint rtrace_first[0] __aligned(8) __section(".init.rtrace_tracepoints");
const struct rtrace_class rtrace_first_class[0] __aligned(8) __section(".init.rtrace_classes");
const struct rtrace_names rtrace_first_names[0] __aligned(8) __section(".init.rtrace_names");
