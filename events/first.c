// SPDX-License-Identifier: GPL-2.0
/* Linked first: see main.c. */
#include "probe.h"

/* An instruction that nobody executes, and after which objtool expects none. */
#ifdef CONFIG_ARM64
#define RTRACE_TRAP "brk #0"
#else
#define RTRACE_TRAP "ud2"
#endif

/*
 * The module has no symbols for the probes: at its load the kernel searches all symbols for each function that no
 * kprobe may probe. A backtrace shows all probes under this name.
 */
asm(".pushsection .kprobes.text, \"ax\"\n"
    ".globl rtrace_probe\n"
    ".type rtrace_probe, @function\n"
    "rtrace_probe: " RTRACE_TRAP "\n"
    ".size rtrace_probe, . - rtrace_probe\n"
    ".popsection\n");

const struct rtrace_tracepoint rtrace_first[0] __aligned(8) __section("rtrace_tracepoints");
const struct rtrace_class rtrace_first_class[0] __aligned(8) __section(".init.rtrace_classes");
const struct rtrace_names rtrace_first_names[0] __aligned(8) __section(".init.rtrace_names");
