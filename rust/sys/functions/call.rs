// SPDX-License-Identifier: GPL-2.0

//! Being called where functions begin and where they return, by fprobe.

use crate::sys::bindings;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// What is called where a function is called and where it returns: in any context, NMI included, with
/// preemption disabled. The kernel sees to it that it does not recur.
pub(crate) trait Calls: Send + Sync + 'static {
    /// What is kept from the call to the return. It is not dropped.
    type Kept: Copy + Send + 'static;

    /// It is called. What is kept, if its return is of interest.
    fn called(&self, function: usize) -> Option<Self::Kept>;

    /// It returns.
    fn returned(&self, function: usize, kept: Self::Kept);
}

/// Has a `T` called for the calls of some functions.
///
/// # Invariants
///
/// - `hooked` is from `KBox::into_raw`, and its probe is registered.
/// - It stays where it is as long as that is.
pub(crate) struct CallHook<T> {
    hooked: NonNull<Hooked<T>>,
}

/// The probe comes first, so that its address is that of all.
#[repr(C)]
struct Hooked<T> {
    probe: Opaque<bindings::fprobe>,
    target: Arc<T>,
}

// SAFETY: The kernel's functions for fprobes have locks of their own; the target is `Send` and `Sync`.
unsafe impl<T: Send + Sync> Send for CallHook<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for CallHook<T> {}

impl<T: Calls> CallHook<T> {
    /// Has it called for these functions, by their addresses, of which each is there once; there is one
    /// at least (`EINVAL`). `ENOENT`: one of them is none. May sleep.
    pub(crate) fn new(functions: &[usize], target: Arc<T>) -> Result<Self> {
        const { assert!(align_of::<T::Kept>() <= align_of::<usize>()) };
        let probe = bindings::fprobe {
            entry_data_size: size_of::<T::Kept>(),
            entry_handler: Some(called::<T>),
            exit_handler: Some(returned::<T>),
            ..Default::default()
        };
        let count = c_int::try_from(functions.len())?;
        let probe = Opaque::new(probe);
        let hooked = KBox::into_raw(KBox::new(Hooked { probe, target }, GFP_KERNEL)?);
        // SAFETY: The probe lives, where it is, until `drop` has unregistered it. So many addresses,
        // which are only read.
        let registered = to_result(unsafe {
            bindings::register_fprobe_ips(hooked.cast(), functions.as_ptr().cast_mut(), count)
        });
        if let Err(error) = registered {
            // SAFETY: From `into_raw`, and not registered.
            drop(unsafe { KBox::from_raw(hooked) });
            return Err(error);
        }
        // INVARIANT: Registered above; nothing moves it.
        let hooked = NonNull::new(hooked).ok_or(EINVAL)?;
        Ok(Self { hooked })
    }
}

impl<T> CallHook<T> {
    /// How many calls were not seen, for so many of their task had not returned.
    pub(crate) fn missed(&self) -> u64 {
        // SAFETY: A word of a live probe.
        unsafe {
            let probe = self.hooked.as_ptr().cast::<bindings::fprobe>();
            (&raw const (*probe).nmissed).read_volatile() as u64
        }
    }
}

impl<T> Drop for CallHook<T> {
    /// Waits until it runs nowhere. Returns of calls that are under way are not seen any more.
    fn drop(&mut self) {
        // SAFETY:
        // - By the invariant it is registered. Nobody runs its handlers when this returns.
        // - Then nobody uses it; it is from `into_raw`.
        unsafe {
            bindings::unregister_fprobe(self.hooked.as_ptr().cast());
            drop(KBox::from_raw(self.hooked.as_ptr()));
        }
    }
}

/// # Safety
///
/// `probe` must be that of a `Hooked<T>` that lives, and `kept` have room for what is kept, for this
/// call alone.
#[link_section = ".kprobes.text"]
unsafe extern "C" fn called<T: Calls>(
    probe: *mut bindings::fprobe,
    function: c_ulong,
    _returns_to: c_ulong,
    _registers: *mut bindings::ftrace_regs,
    kept: *mut c_void,
) -> c_int {
    // SAFETY: By the contract; the probe is the first field. Nobody has the target mutably. The room
    // begins at a word.
    let (target, kept) = unsafe {
        let target = &(*probe.cast::<Hooked<T>>()).target;
        (target, &mut *kept.cast::<MaybeUninit<T::Kept>>())
    };
    match target.called(function) {
        Some(value) => {
            kept.write(value);
            0
        }
        None => 1,
    }
}

/// # Safety
///
/// As [`called`], which has returned 0 for this call.
#[link_section = ".kprobes.text"]
unsafe extern "C" fn returned<T: Calls>(
    probe: *mut bindings::fprobe,
    function: c_ulong,
    _returns_to: c_ulong,
    _registers: *mut bindings::ftrace_regs,
    kept: *mut c_void,
) {
    // SAFETY: By the contract; `called` has put there what is kept.
    let (target, kept) = unsafe {
        let target = &(*probe.cast::<Hooked<T>>()).target;
        (target, kept.cast::<T::Kept>().read())
    };
    target.returned(function, kept);
}
