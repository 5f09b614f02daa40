// SPDX-License-Identifier: GPL-2.0

//! Hooks for function entries, by ftrace.

use crate::sys::bindings;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// Receives the entries of functions: in any context, NMI included, preemptible or not. It must detect its own
/// recursion before it calls code that can be traced.
pub(crate) trait Begins: Send + Sync + 'static {
    /// Handles an entry. `ip` is the place where the function calls ftrace; `parent_ip` is its return address.
    fn begins(&self, ip: usize, parent_ip: usize);
}

/// A hook: ftrace calls a `T` at the entries of some functions.
///
/// # Invariants
///
/// - `hooked` is from `KBox::into_raw`. Its `ops` are registered, with a filter that is not empty: an empty
///   filter selects all functions.
/// - The object behind `hooked` does not move while `ops` is registered.
pub(crate) struct BeginHook<T> {
    hooked: NonNull<Hooked<T>>,
}

/// The operations are the first field, so that both have the same address.
#[repr(C)]
struct Hooked<T> {
    ops: Opaque<bindings::ftrace_ops>,
    target: Arc<T>,
}

// SAFETY: The kernel's functions for these operations have their own locks; the target is `Send` and `Sync`.
unsafe impl<T: Send + Sync> Send for BeginHook<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for BeginHook<T> {}

impl<T: Begins> BeginHook<T> {
    /// Hooks these functions, given by their addresses. `EINVAL`: there are none, or no traceable function is
    /// at one of the addresses. May sleep.
    pub(crate) fn new(functions: &[usize], target: Arc<T>) -> Result<Self> {
        let ops = bindings::ftrace_ops {
            func: Some(begins::<T>),
            // The target is an RCU reader without FTRACE_OPS_FL_RCU. On a processor that selects
            // ARCH_WANTS_NO_INSTR, all code that runs while RCU does not watch is `noinstr`, and ftrace does
            // not call for it. With the flag, ftrace would test for that and for recursion in each call.
            ..Default::default()
        };
        let ops = Opaque::new(ops);
        let hooked = KBox::into_raw(KBox::new(Hooked { ops, target }, GFP_KERNEL)?);
        // SAFETY:
        // - The operations are from `into_raw`: they live and are not registered. So they may be dropped if
        //   this fails. The filter's memory is freed before that.
        // - The filter is not empty at the registration.
        // - Registered operations do not move until `drop`.
        let registered = unsafe {
            let registered = filter(hooked.cast(), functions, Change::Replace)
                .and_then(|()| to_result(bindings::register_ftrace_function(hooked.cast())));
            if registered.is_err() {
                bindings::ftrace_free_filter(hooked.cast());
                drop(KBox::from_raw(hooked));
            }
            registered
        };
        registered?;
        // INVARIANT: The operations were registered above. No code moves them.
        let hooked = NonNull::new(hooked).ok_or(EINVAL)?;
        Ok(Self { hooked })
    }

    /// Hooks these functions instead of the previous ones. On failure the selection stays unchanged. Errors and
    /// context as for [`new`](Self::new).
    pub(crate) fn select(&self, functions: &[usize]) -> Result {
        // SAFETY: By the invariant the operations live.
        unsafe { filter(self.hooked.as_ptr().cast(), functions, Change::Replace) }
    }

    /// Has it called for these functions too. On failure it is called as before. Otherwise as
    /// [`new`](Self::new).
    pub(crate) fn add(&self, functions: &[usize]) -> Result {
        // SAFETY: As above.
        unsafe { filter(self.hooked.as_ptr().cast(), functions, Change::Add) }
    }
}

impl<T> Drop for BeginHook<T> {
    /// Waits until the hook does not run on any CPU.
    fn drop(&mut self) {
        let hooked = self.hooked.as_ptr();
        // SAFETY:
        // - By the invariant the operations are registered. They are not part of the kernel's own data. So
        //   after success no CPU runs the callback.
        // - Then no other code uses the operations or the filter; they are from `into_raw`. ftrace refuses only
        //   after it has found an error of its own and turned itself off. Code that still has the operations
        //   must then find them at their address, so they are leaked.
        unsafe {
            if bindings::unregister_ftrace_function(hooked.cast()) == 0 {
                bindings::ftrace_free_filter(hooked.cast());
                drop(KBox::from_raw(hooked));
            }
        }
    }
}

/// Change of a filter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The functions replace those of the filter.
    Replace,
    /// The filter keeps its functions.
    Add,
}

/// # Safety
///
/// The operations must live.
unsafe fn filter(ops: *mut bindings::ftrace_ops, functions: &[usize], change: Change) -> Result {
    let count = u32::try_from(functions.len())?;
    if count == 0 {
        return Err(EINVAL);
    }
    let functions = functions.as_ptr().cast_mut();
    let resets = (change == Change::Replace).into();
    // SAFETY: By the contract. `functions` has `count` addresses, which are only read.
    to_result(unsafe { bindings::ftrace_set_filter_ips(ops, functions, count, 0, resets) })
}

/// # Safety
///
/// `ops` must be those of a live `Hooked<T>`.
// In this section kprobes cannot be placed, as in all probes.
#[link_section = ".kprobes.text"]
unsafe extern "C" fn begins<T: Begins>(
    ip: c_ulong,
    parent_ip: c_ulong,
    ops: *mut bindings::ftrace_ops,
    _registers: *mut bindings::ftrace_regs,
) {
    // SAFETY: By the contract. The operations are the first field. No code has a mutable reference to the
    // target.
    let target = unsafe { &(*ops.cast::<Hooked<T>>()).target };
    target.begins(ip, parent_ip);
}
