/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel crate's own bindings lack. Kbuild says which names are taken.
 */
#include <linux/fs.h>
#include <linux/pipe_fs_i.h>
#include <linux/splice.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>
#include <linux/kernel_stat.h>
#include <linux/interrupt.h>
#include <linux/signal.h>
#include <linux/binfmts.h>

/* __traceiter_<name>(): the prototypes that probes are checked against. */
#include <trace/events/irq.h>
#include <trace/events/module.h>
#include <trace/events/nmi.h>
#include <trace/events/sched.h>
#include <trace/events/signal.h>
#include <trace/events/syscalls.h>
#include <trace/events/timer.h>

#include "helpers.h"
