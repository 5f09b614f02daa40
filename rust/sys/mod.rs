// SPDX-License-Identifier: GPL-2.0

//! Safe wrappers for kernel interfaces that the kernel crate lacks. Only this room calls the kernel's C
//! functions.
//!
//! This room has no knowledge of tracing. Each file wraps one kernel facility. Each item says which contexts
//! may call it: whether it may sleep, and whether NMI may call it.

pub(crate) mod args;
pub(crate) mod bindings;
pub(crate) mod cgroup;
pub(crate) mod clock;
pub(crate) mod counter;
pub(crate) mod cpu;
pub(crate) mod debugfs;
pub(crate) mod errno;
pub(crate) mod foreign;
pub(crate) mod functions;
pub(crate) mod hotplug;
pub(crate) mod irq_work;
pub(crate) mod kprobe;
pub(crate) mod mapping;
pub(crate) mod memory_owner;
pub(crate) mod module_tracepoint;
pub(crate) mod modules;
pub(crate) mod niceness;
pub(crate) mod nofault;
mod old;
pub(crate) mod page_array;
pub(crate) mod page_vec;
pub(crate) mod page_words;
pub(crate) mod pages;
pub(crate) mod parameter;
pub(crate) mod percpu;
pub(crate) mod perf;
pub(crate) mod perf_records;
pub(crate) mod pipe;
pub(crate) mod privilege;
pub(crate) mod rcu;
pub(crate) mod reserved;
pub(crate) mod retired;
pub(crate) mod sampler;
pub(crate) mod shared_pages;
pub(crate) mod signal;
pub(crate) mod sort;
pub(crate) mod stack;
pub(crate) mod system;
pub(crate) mod threads;
pub(crate) mod timer;
pub(crate) mod trace_event;
pub(crate) mod tracepoint;
pub(crate) mod turn;
pub(crate) mod uprobe;
pub(crate) mod user_data;
pub(crate) mod user_stack;
pub(crate) mod wait;
pub(crate) mod waiters;
pub(crate) mod work;
