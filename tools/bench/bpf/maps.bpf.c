// SPDX-License-Identifier: GPL-2.0
/*
 * The benchmarks' sums by key in BPF: one program or two per case of tools/bench/guest/maps.py, by BTF. Each
 * finds its key in a per-CPU hash and adds to it there, as bpftrace's count(), sum() and hist() do. It is as lean
 * as such a program can be. See maps.c.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct { char comm[16]; int pid; };
struct pt_regs;
#pragma clang attribute pop

#ifdef __TARGET_ARCH_arm64
#define NR_GETPPID 173
#else
#define NR_GETPPID 110
#endif

struct comm { char name[16]; };
struct two { __u64 vec, tid; };
struct value { __u64 count, sum; };
struct begin { __u64 time, stack; };

#define TABLE(name, type_, key_, value_)						\
	struct {									\
		__uint(type, type_);							\
		__uint(max_entries, 16384);						\
		__type(key, key_);							\
		__type(value, value_);							\
	} name SEC(".maps")

TABLE(by_number, BPF_MAP_TYPE_PERCPU_HASH, __u64, struct value);
TABLE(by_comm, BPF_MAP_TYPE_PERCPU_HASH, struct comm, struct value);
TABLE(by_two, BPF_MAP_TYPE_PERCPU_HASH, struct two, struct value);
TABLE(begins, BPF_MAP_TYPE_HASH, __u32, __u64);
TABLE(begins_at, BPF_MAP_TYPE_HASH, __u32, struct begin);

/* Call stacks, by the numbers that the kernel gives them. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 16384);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 127 * sizeof(__u64));
} stacks SEC(".maps");

#define ADD(table, key, number) do {							\
		struct value *value = bpf_map_lookup_elem(&table, key);			\
											\
		if (!value) {								\
			static const struct value zero;					\
											\
			bpf_map_update_elem(&table, key, &zero, BPF_NOEXIST);		\
			value = bpf_map_lookup_elem(&table, key);			\
		}									\
		if (value) {								\
			value->count++;							\
			value->sum += number;						\
		}									\
	} while (0)

/* The number of a number's power of two, by comparisons, as bpftrace compiles it. */
static __always_inline __u64 log2l(__u64 number)
{
	__u64 n = 0;

	if (number >> 32) { n += 32; number >>= 32; }
	if (number >> 16) { n += 16; number >>= 16; }
	if (number >> 8) { n += 8; number >>= 8; }
	if (number >> 4) { n += 4; number >>= 4; }
	if (number >> 2) { n += 2; number >>= 2; }
	return n + (number >> 1);
}

SEC("tp_btf/softirq_entry") int BPF_PROG(on_integer, unsigned int vec)
{
	__u64 key = vec;

	ADD(by_number, &key, 0);
	return 0;
}

SEC("tp_btf/softirq_entry") int BPF_PROG(on_comm, unsigned int vec)
{
	struct comm key;

	bpf_get_current_comm(&key, sizeof(key));
	ADD(by_comm, &key, 0);
	return 0;
}

SEC("tp_btf/softirq_entry") int BPF_PROG(on_two, unsigned int vec)
{
	struct two key = { .vec = vec, .tid = (__u32)bpf_get_current_pid_tgid() };

	ADD(by_two, &key, 0);
	return 0;
}

SEC("tp_btf/softirq_entry") int BPF_PROG(on_hist, unsigned int vec)
{
	__u64 key = log2l(vec);

	ADD(by_number, &key, 0);
	return 0;
}

SEC("tp_btf/sys_enter") int BPF_PROG(on_call, struct pt_regs *regs, long nr)
{
	struct comm key;

	if (nr != NR_GETPPID)
		return 0;
	bpf_get_current_comm(&key, sizeof(key));
	ADD(by_comm, &key, 0);
	return 0;
}

SEC("tp_btf/sys_enter") int BPF_PROG(on_calls, struct pt_regs *regs, long nr)
{
	__u64 key = nr;

	ADD(by_number, &key, 0);
	return 0;
}

SEC("tp_btf/sys_enter") int BPF_PROG(on_call_duration_begin, struct pt_regs *regs, long nr)
{
	__u32 tid = bpf_get_current_pid_tgid();
	__u64 now;

	if (nr != NR_GETPPID)
		return 0;
	now = bpf_ktime_get_ns();
	bpf_map_update_elem(&begins, &tid, &now, BPF_ANY);
	return 0;
}

SEC("tp_btf/sys_exit") int BPF_PROG(on_call_duration, struct pt_regs *regs, long ret)
{
	__u32 tid = bpf_get_current_pid_tgid();
	__u64 *since = bpf_map_lookup_elem(&begins, &tid);
	__u64 key;

	if (!since)
		return 0;
	key = log2l(bpf_ktime_get_ns() - *since);
	bpf_map_delete_elem(&begins, &tid);
	ADD(by_number, &key, 0);
	return 0;
}

SEC("tp_btf/sched_switch") int BPF_PROG(on_off_cpu, bool preempt, struct task_struct *prev,
					struct task_struct *next)
{
	__u32 prev_tid = prev->pid, next_tid = next->pid;
	__u64 now = bpf_ktime_get_ns(), *since;
	struct comm key;

	bpf_map_update_elem(&begins, &prev_tid, &now, BPF_ANY);
	since = bpf_map_lookup_elem(&begins, &next_tid);
	if (!since)
		return 0;
	__builtin_memcpy(&key, next->comm, sizeof(key));
	now -= *since;
	bpf_map_delete_elem(&begins, &next_tid);
	ADD(by_comm, &key, now);
	return 0;
}

SEC("tp_btf/sched_switch") int BPF_PROG(on_stack, bool preempt, struct task_struct *prev,
					struct task_struct *next)
{
	__u64 key = bpf_get_stackid(ctx, &stacks, 0);

	ADD(by_number, &key, 0);
	return 0;
}

SEC("tp_btf/sched_switch") int BPF_PROG(on_off_cpu_stack, bool preempt, struct task_struct *prev,
					struct task_struct *next)
{
	__u32 prev_tid = prev->pid, next_tid = next->pid;
	struct begin now = { bpf_ktime_get_ns(), bpf_get_stackid(ctx, &stacks, 0) }, *since;
	__u64 key;

	bpf_map_update_elem(&begins_at, &prev_tid, &now, BPF_ANY);
	since = bpf_map_lookup_elem(&begins_at, &next_tid);
	if (!since)
		return 0;
	key = since->stack;
	now.time -= since->time;
	bpf_map_delete_elem(&begins_at, &next_tid);
	ADD(by_number, &key, now.time);
	return 0;
}

char _license[] SEC("license") = "GPL";
