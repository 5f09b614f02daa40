// SPDX-License-Identifier: GPL-2.0

//! Hooks for function entries and returns, by fprobe.

use crate::arch::clock::monotonic_ns;
use crate::sys::{bindings, old::graph, privilege};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// Number of calls that have not returned and whose returns a hook sees, if the kernel needs a limit.
const CALLS: c_int = 16 << 10;

/// Receives the calls and returns of functions: in any context, NMI included, with preemption disabled. The
/// kernel prevents recursion.
pub(crate) trait Calls: Send + Sync + 'static {
    /// Data that is kept from the call to the return. It is not dropped.
    type Kept: Copy + Send + 'static;

    /// Handles a call of `function`, in which `depth` calls of followed functions are running. Returns the data to keep,
    /// or [`None`] to skip the return.
    fn called(&self, function: usize, depth: u32) -> Option<Self::Kept>;

    /// Handles the return of that call.
    fn returned(&self, function: usize, kept: Self::Kept);
}

/// A hook: the kernel calls a `T` for the calls of some functions.
///
/// # Invariants
///
/// - `hooked` is from `KBox::into_raw`, and its probe is registered.
/// - The object behind `hooked` does not move while the probe is registered.
pub(crate) struct CallHook<T> {
    hooked: NonNull<Hooked<T>>,
}

/// The probe is the first field, so that both have the same address.
#[repr(C)]
struct Hooked<T> {
    probe: Opaque<bindings::fprobe>,
    target: Arc<T>,
    /// Time of creation, in nanoseconds of the monotonic clock.
    made: u64,
}

/// Data that a task keeps from a call to its return.
#[repr(C)]
struct Kept<V> {
    /// `made` of the hook. The kernel identifies probes by their addresses. So a hook may get returns of calls
    /// that an earlier hook at the same address saw.
    made: u64,
    value: V,
}

// SAFETY: The kernel's functions for fprobes have their own locks; the target is `Send` and `Sync`.
unsafe impl<T: Send + Sync> Send for CallHook<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for CallHook<T> {}

impl<T: Calls> CallHook<T> {
    /// Hooks these functions, given by distinct addresses. Errors: `EINVAL` if there are none, `ENOENT` if no
    /// traceable function is at one of the addresses, `EPERM` under lockdown=confidentiality. May sleep.
    pub(crate) fn new(functions: &[usize], target: Arc<T>) -> Result<Self> {
        const { assert!(align_of::<Kept<T::Kept>>() <= align_of::<usize>()) };
        privilege::may_probe_code()?;
        let mut probe = bindings::fprobe {
            entry_data_size: size_of::<Kept<T::Kept>>(),
            entry_handler: Some(called::<T>),
            exit_handler: Some(returned::<T>),
            ..Default::default()
        };
        let count = c_int::try_from(functions.len())?;
        // SAFETY: The probe lives, and is not registered.
        unsafe { bindings::rtrace_limit_calls(&mut probe, CALLS) };
        let hooked = Hooked {
            probe: Opaque::new(probe),
            target,
            made: monotonic_ns(),
        };
        let hooked = KBox::into_raw(KBox::new(hooked, GFP_KERNEL)?);
        // SAFETY: The probe lives, and does not move, until `drop` has unregistered it. `functions` has `count`
        // addresses, which are only read.
        let registered = to_result(unsafe {
            bindings::register_fprobe_ips(hooked.cast(), functions.as_ptr().cast_mut(), count)
        });
        if let Err(error) = registered {
            // SAFETY: The pointer is from `into_raw`, and the probe is not registered.
            drop(unsafe { KBox::from_raw(hooked) });
            return Err(error);
        }
        // INVARIANT: The probe was registered above. No code moves it.
        let hooked = NonNull::new(hooked).ok_or(EINVAL)?;
        Ok(Self { hooked })
    }
}

impl<T> CallHook<T> {
    /// Forgets the functions of an unloaded module, so that code which is loaded at the same address is not hooked.
    /// `left` are the other functions of the hook, one at least. May sleep.
    pub(crate) fn forget_all_but(&self, left: &[usize]) -> Result {
        let count = c_uint::try_from(left.len())?;
        // SAFETY: By the invariant the probe is registered. `left` has `count` addresses, which are only read.
        to_result(unsafe {
            let probe = self.hooked.as_ptr().cast();
            bindings::rtrace_fprobe_forget(probe, left.as_ptr().cast_mut(), count)
        })
    }

    /// Number of calls that were missed because too many earlier calls of their task had not returned.
    pub(crate) fn missed(&self) -> u64 {
        // SAFETY: The word belongs to a live probe.
        unsafe {
            let probe = self.hooked.as_ptr().cast::<bindings::fprobe>();
            (&raw const (*probe).nmissed).read_volatile() as u64
        }
    }
}

impl<T> Drop for CallHook<T> {
    /// Waits until no handler runs. Calls that have not returned yet are forgotten: no hook sees their returns,
    /// even if it is created at the same address.
    fn drop(&mut self) {
        // SAFETY:
        // - By the invariant the probe is registered. When the first call returns, no CPU runs its handlers.
        // - Then no other code uses the object, which is from `into_raw`.
        unsafe {
            bindings::unregister_fprobe(self.hooked.as_ptr().cast());
            drop(KBox::from_raw(self.hooked.as_ptr()));
        }
    }
}

/// # Safety
///
/// `probe` must be that of a live `Hooked<T>`. `kept` must have room for the data to keep, for this call alone.
#[link_section = ".kprobes.text"]
unsafe extern "C" fn called<T: Calls>(
    probe: *mut bindings::fprobe,
    function: c_ulong,
    _returns_to: c_ulong,
    _registers: *mut bindings::rtrace_fprobe_regs,
    kept: *mut c_void,
) -> c_int {
    // SAFETY: By the contract. The probe is the first field. No code has a mutable reference to the object. The
    // room is aligned to a word.
    let (hooked, kept) = unsafe {
        (
            &*probe.cast::<Hooked<T>>(),
            &mut *kept.cast::<MaybeUninit<Kept<T::Kept>>>(),
        )
    };
    // SAFETY: By the contract.
    let depth = unsafe { graph::depth(probe) };
    match hooked.target.called(function, depth) {
        Some(value) => {
            let made = hooked.made;
            kept.write(Kept { made, value });
            0
        }
        None => 1,
    }
}

/// # Safety
///
/// `probe` must be that of a live `Hooked<T>`. `kept` must point to the data that a probe at this address kept
/// for this call: this probe's [`called`], or an earlier probe at the address.
#[link_section = ".kprobes.text"]
unsafe extern "C" fn returned<T: Calls>(
    probe: *mut bindings::fprobe,
    function: c_ulong,
    _returns_to: c_ulong,
    _registers: *mut bindings::rtrace_fprobe_regs,
    kept: *mut c_void,
) {
    let kept = kept.cast::<Kept<T::Kept>>();
    // SAFETY:
    // - By the contract. The probe is the first field. No code has a mutable reference to the object.
    // - If there is data (not NULL), it begins with a word, whichever probe kept it.
    // - If this word is that of this hook, `called` has stored the rest, for this `T`. No two hooks at one
    //   address are made at the same moment, because the kernel waits for RCU before the first one is freed.
    unsafe {
        let hooked = &*probe.cast::<Hooked<T>>();
        if !kept.is_null() && (&raw const (*kept).made).read() == hooked.made {
            hooked.target.returned(function, kept.read().value);
        }
    }
}
