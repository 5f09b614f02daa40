// SPDX-License-Identifier: GPL-2.0
/*
 * The benchmarks' BPF tracer: one program per tracepoint, by BTF. Each reserves a record in the
 * ring buffer, fills it in place and submits it. It is as lean as such a tracer can be. See
 * peer.c.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* The used parts of the kernel's types; libbpf finds their offsets. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct { char comm[16]; int pid, prio; };
struct irqaction { const char *name; };
struct linux_binprm { const char *filename; };
struct timer_list { unsigned long expires; void *function; };
struct hrtimer { void *function; };
struct pid;
#ifdef __TARGET_ARCH_arm64
struct pt_regs { unsigned long regs[31], orig_x0; };
#else
struct pt_regs { unsigned long di, si, dx, r10, r8, r9; };
#endif
#pragma clang attribute pop

enum id {
	SOFTIRQ_ENTRY, SOFTIRQ_EXIT, SOFTIRQ_RAISE, IRQ_HANDLER_ENTRY, IRQ_HANDLER_EXIT,
	SCHED_SWITCH, SCHED_WAKING, SCHED_WAKEUP, SCHED_WAKEUP_NEW, SCHED_MIGRATE_TASK,
	SCHED_PROCESS_FORK, SCHED_PROCESS_EXEC, SCHED_PROCESS_EXIT, SCHED_PROCESS_FREE,
	SCHED_PROCESS_WAIT,
	TIMER_START, TIMER_EXPIRE_ENTRY, TIMER_EXPIRE_EXIT, TIMER_CANCEL,
	HRTIMER_START, HRTIMER_EXPIRE_ENTRY, HRTIMER_EXPIRE_EXIT, HRTIMER_CANCEL,
	SYS_ENTER, SYS_EXIT,
};

/* Records: each begins with its time and its id. */
struct number { __u64 time; __u32 id, value; };
struct irq { __u64 time; __u32 id, irq; char name[16]; };
struct who { char comm[16]; __s32 tid, prio; };
struct change { __u64 time; __u32 id, state; struct who prev, next; };
struct task { __u64 time; __u32 id, value; struct who task; };
struct object { __u64 time; __u32 id, value; __u64 object, function, expires; };
struct result { __u64 time; __u32 id, value; __u64 result; };
struct call { __u64 time; __u32 id, nr; __u64 args[6]; };

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} ring SEC(".maps");

/* True if a system call's entry has its arguments. */
const volatile bool arguments = false;
/* The only accepted value of an event's first number; -1: any. */
const volatile int filter = -1;
/* True if a record ends with the id and the name of the running task. */
const volatile bool contexts = false;
/* The only thread whose events are recorded; 0: any. */
const volatile int only = 0;
/* Records that found no room, by CPU, each in its own cache line. */
struct { __u64 n; char pad[56]; } lost[64];

/* The end of a record with contexts. */
struct running { __u32 tid; char comm[16]; };

#define WANTED(value)									\
	if (filter != -1 && (int)(value) != filter)					\
		return 0;								\
	if (only && (int)bpf_get_current_pid_tgid() != only)				\
		return 0

#define RECORD(type, number)								\
	struct type *record = bpf_ringbuf_reserve(&ring, sizeof(*record) +		\
				(contexts ? sizeof(struct running) : 0), 0);		\
	if (!record) {									\
		lost[bpf_get_smp_processor_id() & 63].n++;				\
		return 0;								\
	}										\
	record->time = bpf_ktime_get_ns();						\
	record->id = number
#define SUBMIT()									\
	if (contexts) {									\
		struct running *running = (void *)(record + 1);				\
		running->tid = bpf_get_current_pid_tgid();				\
		bpf_get_current_comm(running->comm, sizeof(running->comm));		\
	}										\
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);						\
	return 0

/* A task's name, number and priority. */
#define WHO(to, from) do {								\
		__builtin_memcpy((to).comm, (from)->comm, 16);				\
		(to).tid = (from)->pid;							\
		(to).prio = (from)->prio;						\
	} while (0)

#define VALUE(name, number_, proto, value_)						\
	SEC("tp_btf/" #name) int BPF_PROG(on_##name, proto)				\
	{										\
		WANTED(value_);								\
		RECORD(number, number_);						\
		record->value = value_;							\
		SUBMIT();								\
	}
VALUE(softirq_entry, SOFTIRQ_ENTRY, unsigned int vec, vec)
VALUE(softirq_exit, SOFTIRQ_EXIT, unsigned int vec, vec)
VALUE(softirq_raise, SOFTIRQ_RAISE, unsigned int vec, vec)

SEC("tp_btf/irq_handler_entry") int BPF_PROG(on_irq_handler_entry, int irq, struct irqaction *action)
{
	WANTED(irq);
	RECORD(irq, IRQ_HANDLER_ENTRY);
	record->irq = irq;
	bpf_probe_read_kernel_str(record->name, sizeof(record->name), action->name);
	SUBMIT();
}

SEC("tp_btf/irq_handler_exit") int BPF_PROG(on_irq_handler_exit, int irq, struct irqaction *action, int ret)
{
	RECORD(result, IRQ_HANDLER_EXIT);
	record->value = irq;
	record->result = ret;
	SUBMIT();
}

SEC("tp_btf/sched_switch") int BPF_PROG(on_sched_switch, bool preempt, struct task_struct *prev,
					struct task_struct *next, unsigned int prev_state)
{
	WANTED(prev->pid);
	RECORD(change, SCHED_SWITCH);
	record->state = prev_state;
	WHO(record->prev, prev);
	WHO(record->next, next);
	SUBMIT();
}

#define TASK(name, number)								\
	SEC("tp_btf/" #name) int BPF_PROG(on_##name, struct task_struct *task)		\
	{										\
		RECORD(task, number);							\
		record->value = 0;							\
		WHO(record->task, task);						\
		SUBMIT();								\
	}
TASK(sched_waking, SCHED_WAKING)
TASK(sched_wakeup, SCHED_WAKEUP)
TASK(sched_wakeup_new, SCHED_WAKEUP_NEW)
TASK(sched_migrate_task, SCHED_MIGRATE_TASK)
TASK(sched_process_exit, SCHED_PROCESS_EXIT)
TASK(sched_process_free, SCHED_PROCESS_FREE)
TASK(sched_process_exec, SCHED_PROCESS_EXEC)

SEC("tp_btf/sched_process_fork") int BPF_PROG(on_sched_process_fork, struct task_struct *parent,
					      struct task_struct *child)
{
	RECORD(change, SCHED_PROCESS_FORK);
	record->state = 0;
	WHO(record->prev, parent);
	WHO(record->next, child);
	SUBMIT();
}

SEC("tp_btf/sched_process_wait") int BPF_PROG(on_sched_process_wait, struct pid *pid)
{
	RECORD(result, SCHED_PROCESS_WAIT);
	record->value = 0;
	record->result = (__u64)pid;
	SUBMIT();
}

#define OBJECT(name, number, type, function_, time_)					\
	SEC("tp_btf/" #name) int BPF_PROG(on_##name, type *object)			\
	{										\
		RECORD(object, number);							\
		record->value = 0;							\
		record->object = (__u64)object;						\
		record->function = function_;						\
		record->expires = time_;							\
		SUBMIT();								\
	}
OBJECT(timer_start, TIMER_START, struct timer_list, (__u64)object->function, object->expires)
OBJECT(timer_expire_entry, TIMER_EXPIRE_ENTRY, struct timer_list, (__u64)object->function, object->expires)
OBJECT(timer_expire_exit, TIMER_EXPIRE_EXIT, struct timer_list, 0, 0)
OBJECT(timer_cancel, TIMER_CANCEL, struct timer_list, 0, 0)
OBJECT(hrtimer_start, HRTIMER_START, struct hrtimer, (__u64)object->function, 0)
OBJECT(hrtimer_expire_entry, HRTIMER_EXPIRE_ENTRY, struct hrtimer, (__u64)object->function, 0)
OBJECT(hrtimer_expire_exit, HRTIMER_EXPIRE_EXIT, struct hrtimer, 0, 0)
OBJECT(hrtimer_cancel, HRTIMER_CANCEL, struct hrtimer, 0, 0)

SEC("tp_btf/sys_enter") int BPF_PROG(on_sys_enter, struct pt_regs *regs, long nr)
{
	if (!arguments) {
		RECORD(number, SYS_ENTER);
		record->value = nr;
		SUBMIT();
	}
	RECORD(call, SYS_ENTER);
	record->nr = nr;
#ifdef __TARGET_ARCH_arm64
	record->args[0] = regs->orig_x0;
	record->args[1] = regs->regs[1];
	record->args[2] = regs->regs[2];
	record->args[3] = regs->regs[3];
	record->args[4] = regs->regs[4];
	record->args[5] = regs->regs[5];
#else
	record->args[0] = regs->di;
	record->args[1] = regs->si;
	record->args[2] = regs->dx;
	record->args[3] = regs->r10;
	record->args[4] = regs->r8;
	record->args[5] = regs->r9;
#endif
	SUBMIT();
}

SEC("tp_btf/sys_exit") int BPF_PROG(on_sys_exit, struct pt_regs *regs, long ret)
{
	RECORD(result, SYS_EXIT);
	record->value = 0;
	record->result = ret;
	SUBMIT();
}

char _license[] SEC("license") = "GPL";
