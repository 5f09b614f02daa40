// SPDX-License-Identifier: GPL-2.0
/* Linked behind all others: see main.c. */
#include "rtrace.h"

const struct rtrace_tracepoint rtrace_last[0] __aligned(8) __section("rtrace_tracepoints");
