/* SPDX-License-Identifier: GPL-2.0 */
/* Bindings that the kernel crate lacks. Kbuild lists the names that bindgen takes from here. */
#include <linux/cgroup.h>
#include <linux/fprobe.h>
#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/pipe_fs_i.h>
#include <linux/uprobes.h>
#include <linux/sort.h>
#include <linux/splice.h>
#include <linux/ipc_namespace.h>
#include <linux/time_namespace.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>
#include <linux/kernel_stat.h>
#include <linux/interrupt.h>
#include <linux/signal.h>
#include <linux/binfmts.h>
#include <net/net_namespace.h>

/* __traceiter_<name>(): the prototypes that probes are checked against. */
#include <trace/events/irq.h>
#include <trace/events/module.h>
#include <trace/events/nmi.h>
#include <trace/events/sched.h>
#include <trace/events/signal.h>
#include <trace/events/syscalls.h>
#include <trace/events/task.h>
#include <trace/events/timer.h>

#include "faults.h"
#include "helpers.h"
#include "linux.h"
#include "rtrace.h"
#include "threads.h"

/* Offset of the struct ns_common in each kind of namespace. No header defines struct mnt_namespace. */
enum rtrace_ns_at {
	RTRACE_NS_AT_CGROUP = offsetof(struct cgroup_namespace, ns),
	RTRACE_NS_AT_IPC = offsetof(struct ipc_namespace, ns),
	RTRACE_NS_AT_MNT = 0,
	RTRACE_NS_AT_NET = offsetof(struct net, ns),
	RTRACE_NS_AT_TIME = offsetof(struct time_namespace, ns),
	RTRACE_NS_AT_UTS = offsetof(struct uts_namespace, ns),
};

/*
 * The kernel crate's flags::MAYSHARE is the value of another flag: a slip in the kernel's
 * rust/bindings/bindings_helper.h.
 */
enum rtrace_vm_flag {
	RTRACE_VM_MAYSHARE = VM_MAYSHARE,
};

/* The flags of allocations of user-chosen sizes: charged to the caller, without the OOM killer. */
enum rtrace_gfp {
	RTRACE_GFP = (__force unsigned int)(GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_RETRY_MAYFAIL),
};

/* Size of the buffer that sprint_symbol() needs. */
enum rtrace_symbol_room {
	RTRACE_SYMBOL_ROOM = KSYM_SYMBOL_LEN,
};
