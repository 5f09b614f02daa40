// SPDX-License-Identifier: GPL-2.0
/* Linked before all others: see main.c. */
#include "probe.h"

/*
 * The names of the probes are not in the module: when it is loaded the kernel goes through all names for each function
 * that no kprobe may be in. In a backtrace all are this one.
 */
asm(".pushsection .kprobes.text, \"ax\"\n"
    ".globl rtrace_probe\n"
    ".type rtrace_probe, @function\n"
    "rtrace_probe: int3\n"
    ".size rtrace_probe, . - rtrace_probe\n"
    ".popsection\n");

const struct rtrace_tracepoint rtrace_first[0] __aligned(8) __section("rtrace_tracepoints");
const struct rtrace_class rtrace_first_class[0] __aligned(8) __section(".init.rtrace_classes");
const struct rtrace_names rtrace_first_names[0] __aligned(8) __section(".init.rtrace_names");
