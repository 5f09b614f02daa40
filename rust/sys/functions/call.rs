// SPDX-License-Identifier: GPL-2.0

//! Being called where functions begin and where they return, by fprobe.

use crate::arch::clock::monotonic_ns;
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
    /// When it was made, in nanoseconds of the monotonic clock.
    made: u64,
}

/// What a task keeps of a call until that returns.
#[repr(C)]
struct Kept<V> {
    /// Of the hook: the kernel knows probes by their addresses, so this one may get the returns of calls
    /// that another one saw which was at the same address before.
    made: u64,
    value: V,
}

// SAFETY: The kernel's functions for fprobes have locks of their own; the target is `Send` and `Sync`.
unsafe impl<T: Send + Sync> Send for CallHook<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for CallHook<T> {}

impl<T: Calls> CallHook<T> {
    /// Has it called for these functions, by their addresses, of which each is there once; there is one
    /// at least (`EINVAL`). `ENOENT`: one of them is none. May sleep.
    pub(crate) fn new(functions: &[usize], target: Arc<T>) -> Result<Self> {
        const { assert!(align_of::<Kept<T::Kept>>() <= align_of::<usize>()) };
        let probe = bindings::fprobe {
            entry_data_size: size_of::<Kept<T::Kept>>(),
            entry_handler: Some(called::<T>),
            exit_handler: Some(returned::<T>),
            ..Default::default()
        };
        let count = c_int::try_from(functions.len())?;
        let hooked = Hooked {
            probe: Opaque::new(probe),
            target,
            made: monotonic_ns(),
        };
        let hooked = KBox::into_raw(KBox::new(hooked, GFP_KERNEL)?);
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
    /// Waits until it runs nowhere. Returns of calls that are under way are not seen any more, not even by
    /// a hook that is made where this one was.
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
    // SAFETY: By the contract; the probe is the first field. Nobody has it mutably. The room begins at a
    // word.
    let (hooked, kept) = unsafe {
        (
            &*probe.cast::<Hooked<T>>(),
            &mut *kept.cast::<MaybeUninit<Kept<T::Kept>>>(),
        )
    };
    match hooked.target.called(function) {
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
/// `probe` must be that of a `Hooked<T>` that lives. For this call a probe at this address has kept what
/// `kept` points to: this one's [`called`], or another one's that was there before.
#[link_section = ".kprobes.text"]
unsafe extern "C" fn returned<T: Calls>(
    probe: *mut bindings::fprobe,
    function: c_ulong,
    _returns_to: c_ulong,
    _registers: *mut bindings::ftrace_regs,
    kept: *mut c_void,
) {
    let kept = kept.cast::<Kept<T::Kept>>();
    // SAFETY:
    // - By the contract; the probe is the first field. Nobody has it mutably.
    // - What is kept begins with a word, whose probe ever it was, if there is anything (not NULL).
    // - If that is this hook's, `called` has put there the rest, for this `T`: no two hooks at one address
    //   are made at the same moment, for the kernel waits for RCU before the first one goes.
    unsafe {
        let hooked = &*probe.cast::<Hooked<T>>();
        if !kept.is_null() && (&raw const (*kept).made).read() == hooked.made {
            hooked.target.returned(function, kept.read().value);
        }
    }
}
