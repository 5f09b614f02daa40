// SPDX-License-Identifier: GPL-2.0
/* Linked before all others: see main.c. */
#include "probe.h"

const struct rtrace_tracepoint rtrace_first[0] __aligned(8) __section(".init.rtrace_tracepoints");
const struct rtrace_print rtrace_first_print[0] __aligned(8) __section(".init.rtrace_prints");
