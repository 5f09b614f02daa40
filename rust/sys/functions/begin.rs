// SPDX-License-Identifier: GPL-2.0

//! Being called where functions begin, by ftrace.

use crate::sys::bindings;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// What is called where a function begins: in any context, NMI included, preemptible or not. It must
/// call nothing that can be traced without seeing that it recurs.
pub(crate) trait Begins: Send + Sync + 'static {
    /// With the place in the function where ftrace calls, and where the function returns to.
    fn begins(&self, ip: usize, parent_ip: usize);
}

/// Has a `T` called where some functions begin.
///
/// # Invariants
///
/// - `hooked` is from `KBox::into_raw`, and its `ops` are registered, with a filter that is not empty:
///   an empty one stands for all functions.
/// - It stays where it is as long as they are.
pub(crate) struct BeginHook<T> {
    hooked: NonNull<Hooked<T>>,
}

/// The operations come first, so that their address is that of all.
#[repr(C)]
struct Hooked<T> {
    ops: Opaque<bindings::ftrace_ops>,
    target: Arc<T>,
}

// SAFETY: The kernel's functions for these operations have locks of their own; the target is `Send`
// and `Sync`.
unsafe impl<T: Send + Sync> Send for BeginHook<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for BeginHook<T> {}

impl<T: Begins> BeginHook<T> {
    /// Has it called for these functions, by their addresses; there is one at least (`EINVAL`).
    /// `EINVAL`, too: one of them is none. May sleep.
    pub(crate) fn new(functions: &[usize], target: Arc<T>) -> Result<Self> {
        let ops = bindings::ftrace_ops {
            func: Some(begins::<T>),
            // The target is an RCU reader. FTRACE_OPS_FL_RCU is not needed: on a processor that selects
            // ARCH_WANTS_NO_INSTR, all code that runs while RCU does not watch is `noinstr`, and ftrace does not
            // call for it. The flag would have ftrace test that, and its recursion, in each call.
            ..Default::default()
        };
        let ops = Opaque::new(ops);
        let hooked = KBox::into_raw(KBox::new(Hooked { ops, target }, GFP_KERNEL)?);
        // SAFETY:
        // - From `into_raw`: live, and not registered, so that it may be dropped where this fails. What
        //   the filter has allocated is freed before.
        // - The filter is not empty when they are registered.
        // - Registered, they stay where they are until `drop`.
        let registered = unsafe {
            let registered = filter(hooked.cast(), functions)
                .and_then(|()| to_result(bindings::register_ftrace_function(hooked.cast())));
            if registered.is_err() {
                bindings::ftrace_free_filter(hooked.cast());
                drop(KBox::from_raw(hooked));
            }
            registered
        };
        registered?;
        // INVARIANT: Registered above; nothing moves it.
        let hooked = NonNull::new(hooked).ok_or(EINVAL)?;
        Ok(Self { hooked })
    }

    /// Has it called for these functions instead. On failure it is called as before. Otherwise as
    /// [`new`](Self::new).
    pub(crate) fn select(&self, functions: &[usize]) -> Result {
        // SAFETY: By the invariant the operations live.
        unsafe { filter(self.hooked.as_ptr().cast(), functions) }
    }
}

impl<T> Drop for BeginHook<T> {
    /// Waits until it runs nowhere.
    fn drop(&mut self) {
        let hooked = self.hooked.as_ptr();
        // SAFETY:
        // - By the invariant they are registered. As they are not part of the kernel's own data,
        //   nobody runs the callback when this has succeeded.
        // - Then nobody uses them, nor the filter; they are from `into_raw`. ftrace refuses only once
        //   it has found an error of its own and is off: what still has them must find them there.
        unsafe {
            if bindings::unregister_ftrace_function(hooked.cast()) == 0 {
                bindings::ftrace_free_filter(hooked.cast());
                drop(KBox::from_raw(hooked));
            }
        }
    }
}

/// # Safety
///
/// The operations must live.
unsafe fn filter(ops: *mut bindings::ftrace_ops, functions: &[usize]) -> Result {
    let count = u32::try_from(functions.len())?;
    if count == 0 {
        return Err(EINVAL);
    }
    let functions = functions.as_ptr().cast_mut();
    // SAFETY: By the contract; so many addresses, which are only read. The new filter takes the old
    // one's place.
    to_result(unsafe { bindings::ftrace_set_filter_ips(ops, functions, count, 0, 1) })
}

/// # Safety
///
/// `ops` must be those of a `Hooked<T>` that lives.
// Kprobes stay out, as of all probes.
#[link_section = ".kprobes.text"]
unsafe extern "C" fn begins<T: Begins>(
    ip: c_ulong,
    parent_ip: c_ulong,
    ops: *mut bindings::ftrace_ops,
    _registers: *mut bindings::ftrace_regs,
) {
    // SAFETY: By the contract; the operations are the first field. Nobody has the target mutably.
    let target = unsafe { &(*ops.cast::<Hooked<T>>()).target };
    target.begins(ip, parent_ip);
}
