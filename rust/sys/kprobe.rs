// SPDX-License-Identifier: GPL-2.0

//! Kprobes: being called where code of the kernel is reached, and where a function returns.

use crate::sys::args::Registers;
use crate::sys::bindings;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// Where code is.
pub(crate) enum CodePlace {
    /// So many bytes behind a symbol.
    Symbol(CString, u32),
    /// At an address.
    Address(u64),
}

/// What is called where code is reached: in the kernel in any context but NMI, and maybe that, with
/// preemption disabled; in a program where it may sleep.
pub(crate) trait Reached: Send + Sync + 'static {
    /// With what the registers are there.
    fn reached(&self, registers: &Registers);
}

/// What is called where a function is called, and where it returns. Context as for [`Reached`].
pub(crate) trait Returned: Send + Sync + 'static {
    /// What is kept from the call to the return. It is not dropped.
    type Kept: Send + 'static;

    /// It is called. Returns what is kept, in that place.
    fn called<'k>(
        &self,
        registers: &Registers,
        kept: &'k mut MaybeUninit<Self::Kept>,
    ) -> &'k mut Self::Kept;

    /// It returns.
    fn returned(&self, registers: &Registers, kept: &mut Self::Kept);
}

/// A registered kprobe. It is off at first.
///
/// # Invariants
///
/// - `entry` is from `KBox::into_raw`, and its probe is registered.
/// - The probe stays where it is as long as it is registered.
pub(crate) struct Kprobe<T> {
    entry: NonNull<Entry<T>>,
}

/// The probe comes first, so that its address is that of all.
#[repr(C)]
struct Entry<T> {
    probe: Opaque<bindings::kprobe>,
    target: Arc<T>,
    place: CodePlace,
}

// SAFETY: The kernel's functions for kprobes have a lock of their own; the target is `Send` and `Sync`.
unsafe impl<T: Send + Sync> Send for Kprobe<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for Kprobe<T> {}

/// What a kprobe at a place begins as: off, and called nothing yet.
fn kprobe_at(place: &CodePlace) -> bindings::kprobe {
    let mut probe = bindings::kprobe {
        flags: bindings::KPROBE_FLAG_DISABLED,
        ..Default::default()
    };
    match place {
        CodePlace::Symbol(symbol, offset) => {
            probe.symbol_name = symbol.as_ptr().cast();
            probe.offset = *offset;
        }
        CodePlace::Address(address) => probe.addr = *address as usize as *mut _,
    }
    probe
}

impl<T: Reached> Kprobe<T> {
    /// Registers one. `ENOENT`: there is no such symbol; `EILSEQ`: no instruction begins there;
    /// `EINVAL`: no probe may be there. May sleep.
    pub(crate) fn new(place: CodePlace, target: Arc<T>) -> Result<Self> {
        let probe = bindings::kprobe {
            pre_handler: Some(reached::<T>),
            ..kprobe_at(&place)
        };
        let entry = Entry {
            probe: Opaque::new(probe),
            target,
            place,
        };
        let entry = KBox::into_raw(KBox::new(entry, GFP_KERNEL)?);
        // SAFETY: The entry lives, where it is, until `drop` has unregistered the probe, and with it the
        // symbol's text and what `reached` finds behind the probe.
        let registered = unsafe { bindings::register_kprobe(entry.cast()) };
        if let Err(error) = kernel::error::to_result(registered) {
            // SAFETY: From `into_raw`; nobody else has it.
            drop(unsafe { KBox::from_raw(entry) });
            return Err(error);
        }
        let entry = NonNull::new(entry).ok_or(EINVAL)?;
        // INVARIANT: Registered above; nothing moves it.
        Ok(Self { entry })
    }
}

impl<T> Kprobe<T> {
    fn probe(&self) -> *mut bindings::kprobe {
        self.entry.as_ptr().cast()
    }

    /// Has it called from now on. `EINVAL`: the module that it was in is gone. May sleep.
    pub(crate) fn enable(&self) -> Result {
        // SAFETY: By the invariant it is registered.
        kernel::error::to_result(unsafe { bindings::enable_kprobe(self.probe()) })
    }

    /// Has it not called any more; it may still run. May sleep.
    pub(crate) fn disable(&self) {
        // SAFETY: By the invariant it is registered. That its module is gone is no error here.
        unsafe { bindings::disable_kprobe(self.probe()) };
    }

    /// How often it was reached while another kprobe ran on the CPU, and not called.
    pub(crate) fn missed(&self) -> u64 {
        // SAFETY: A word of a live kprobe.
        unsafe { (&raw const (*self.probe()).nmissed).read_volatile() as u64 }
    }
}

impl<T> Drop for Kprobe<T> {
    fn drop(&mut self) {
        // SAFETY:
        // - By the invariant it is registered. It runs nowhere when this returns.
        // - Then nobody uses the entry, which is from `into_raw`.
        unsafe {
            bindings::unregister_kprobe(self.probe());
            drop(KBox::from_raw(self.entry.as_ptr()));
        }
    }
}

/// # Safety
///
/// `probe` must be that of an `Entry<T>`, `registers` live.
unsafe extern "C" fn reached<T: Reached>(
    probe: *mut bindings::kprobe,
    registers: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By the contract; the probe is the entry's first field. Nobody has the target mutably.
    let (target, registers) = unsafe {
        let entry = probe.cast::<Entry<T>>();
        (&(*entry).target, &*registers.cast::<Registers>())
    };
    target.reached(registers);
    0
}

/// A registered kretprobe. It is off at first.
///
/// # Invariants
///
/// As [`Kprobe`].
pub(crate) struct Kretprobe<T> {
    entry: NonNull<ReturnEntry<T>>,
}

#[repr(C)]
struct ReturnEntry<T> {
    probe: Opaque<bindings::kretprobe>,
    target: Arc<T>,
    place: CodePlace,
}

// SAFETY: As for `Kprobe`.
unsafe impl<T: Send + Sync> Send for Kretprobe<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for Kretprobe<T> {}

impl<T: Returned> Kretprobe<T> {
    /// Registers one that sees the returns of `max` calls at once; 0 leaves that to the kernel. Errors
    /// as for [`Kprobe::new`]. May sleep.
    pub(crate) fn new(place: CodePlace, max: u32, target: Arc<T>) -> Result<Self> {
        const { assert!(!core::mem::needs_drop::<T::Kept>()) };
        const { assert!(align_of::<T::Kept>() <= 8) };
        let probe = bindings::kretprobe {
            kp: kprobe_at(&place),
            entry_handler: Some(called::<T>),
            handler: Some(returned::<T>),
            maxactive: max as c_int,
            data_size: size_of::<T::Kept>(),
            ..Default::default()
        };
        let entry = ReturnEntry {
            probe: Opaque::new(probe),
            target,
            place,
        };
        let entry = KBox::into_raw(KBox::new(entry, GFP_KERNEL)?);
        // SAFETY: As in `Kprobe::new`.
        let registered = unsafe { bindings::register_kretprobe(entry.cast()) };
        if let Err(error) = kernel::error::to_result(registered) {
            // SAFETY: From `into_raw`; nobody else has it.
            drop(unsafe { KBox::from_raw(entry) });
            return Err(error);
        }
        let entry = NonNull::new(entry).ok_or(EINVAL)?;
        // INVARIANT: Registered above; nothing moves it.
        Ok(Self { entry })
    }
}

impl<T> Kretprobe<T> {
    fn probe(&self) -> *mut bindings::kretprobe {
        self.entry.as_ptr().cast()
    }

    /// As [`Kprobe::enable`].
    pub(crate) fn enable(&self) -> Result {
        // SAFETY: By the invariant it is registered.
        kernel::error::to_result(unsafe { bindings::enable_kprobe(&raw mut (*self.probe()).kp) })
    }

    /// As [`Kprobe::disable`].
    pub(crate) fn disable(&self) {
        // SAFETY: As there.
        unsafe { bindings::disable_kprobe(&raw mut (*self.probe()).kp) };
    }

    /// How many calls were not seen: as [`Kprobe::missed`], and where more than `max` had not
    /// returned.
    pub(crate) fn missed(&self) -> u64 {
        // SAFETY: Words of a live kretprobe.
        unsafe {
            let probe = self.probe();
            let at_once = (&raw const (*probe).nmissed).read_volatile();
            let nested = (&raw const (*probe).kp.nmissed).read_volatile();
            (nested as u64).wrapping_add(at_once as u64)
        }
    }
}

impl<T> Drop for Kretprobe<T> {
    fn drop(&mut self) {
        // SAFETY: As for `Kprobe`; calls that have not returned are forgotten.
        unsafe {
            bindings::unregister_kretprobe(self.probe());
            drop(KBox::from_raw(self.entry.as_ptr()));
        }
    }
}

/// The target of the probe that `instance` is of, and what the instance keeps.
///
/// # Safety
///
/// `instance` must be one of the probe of a `ReturnEntry<T>`, that lives.
unsafe fn of_instance<'a, T: Returned>(
    instance: *mut bindings::kretprobe_instance,
) -> (&'a T, *mut T::Kept) {
    // SAFETY: By the contract; the probe is the entry's first field. Nobody has the target mutably.
    unsafe {
        let entry = bindings::rtrace_kretprobe_of(instance).cast::<ReturnEntry<T>>();
        let kept = bindings::rtrace_kretprobe_data(instance).cast();
        (&(*entry).target, kept)
    }
}

/// # Safety
///
/// `instance` must be one of the probe of a `ReturnEntry<T>`, `registers` live.
unsafe extern "C" fn called<T: Returned>(
    instance: *mut bindings::kretprobe_instance,
    registers: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By the contract; an instance has room for what is kept, at a multiple of 8, and it is its
    // own.
    let (target, kept, registers) = unsafe {
        let (target, kept) = of_instance::<T>(instance);
        let kept = &mut *kept.cast::<MaybeUninit<T::Kept>>();
        (target, kept, &*registers.cast::<Registers>())
    };
    target.called(registers, kept);
    0
}

/// # Safety
///
/// As [`called`], which has been called with this instance.
unsafe extern "C" fn returned<T: Returned>(
    instance: *mut bindings::kretprobe_instance,
    registers: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By the contract; `called` has put there what is kept (by its type it can return nothing
    // else). Nobody else has the instance.
    let (target, kept, registers) = unsafe {
        let (target, kept) = of_instance::<T>(instance);
        (target, &mut *kept, &*registers.cast::<Registers>())
    };
    target.returned(registers, kept);
    0
}
