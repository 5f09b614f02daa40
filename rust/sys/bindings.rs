// SPDX-License-Identifier: GPL-2.0

//! Bindings of the kernel crate, and the additions of `bindings_helper.h`.

#![allow(
    clippy::all,
    clippy::as_underscore,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unused_imports,
    unsafe_op_in_unsafe_fn
)]

use kernel::ffi;
#[cfg(linux_6_12)]
use kernel::ffi::{c_int, c_void};
use pin_init::MaybeZeroable;

pub(crate) use kernel::bindings::*;

include!(env!("RTRACE_BINDINGS"));

// Prototypes of tracepoints that 6.12 lacks. Handlers for them compile, and attaching one fails with `ENOENT`.
#[cfg(linux_6_12)]
extern "C" {
    pub(crate) fn __traceiter_sched_entry_tp(data: *mut c_void, preempt: bool) -> c_int;
    pub(crate) fn __traceiter_sched_exit_tp(data: *mut c_void, is_switch: bool) -> c_int;
    pub(crate) fn __traceiter_sched_set_need_resched_tp(
        data: *mut c_void,
        task: *mut task_struct,
        cpu: c_int,
        flag: c_int,
    ) -> c_int;
}
