// SPDX-License-Identifier: GPL-2.0

//! Kprobes: callbacks where kernel code is reached, and where a function returns.

use crate::sys::args::Registers;
use crate::sys::errno::eilseq;
use crate::sys::{bindings, privilege};
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// Place of a probe in code.
pub(crate) enum CodePlace {
    /// A number of bytes after a symbol.
    Symbol(CString, u32),
    /// An address.
    Address(u64),
}

/// Receives the calls of a probe. For code of the kernel, preemption is disabled and the context is any, possibly
/// NMI too. For code of a program, the call may sleep.
pub(crate) trait Reached: Send + Sync + 'static {
    /// Handles the call. `registers` are those at the probe's place.
    fn reached(&self, registers: &Registers);
}

/// Receives the calls and the returns of a function. Context as for [`Reached`].
pub(crate) trait Returned: Send + Sync + 'static {
    /// Handles the call. `kept` has the bytes that are kept until the return; they are 0.
    fn called(&self, registers: &Registers, kept: &mut [u8]);

    /// Handles the return.
    fn returned(&self, registers: &Registers, kept: &[u8]);
}

/// Limits of the number of calls that a kretprobe watches at once, if the user chooses none. The kernel allocates room for
/// them, and for each CPU an array of one more pointer than calls, rounded up to a power of two.
const LEAST_CALLS: u32 = 1023;
const MOST_CALLS: u32 = 4095;

/// A kprobe or a kretprobe, as the kernel defines it.
///
/// # Safety
///
/// `REGISTER` and `UNREGISTER` must be the kernel's functions for this kind. `kprobe` must return the kprobe
/// inside it.
unsafe trait Kind: Sized {
    /// Registers the probe. May sleep.
    const REGISTER: unsafe extern "C" fn(*mut Self) -> c_int;

    /// Unregisters these probes. Afterwards no CPU runs any of them. May sleep.
    const UNREGISTER: unsafe extern "C" fn(*mut *mut Self, c_int);

    /// The kprobe inside the probe.
    fn kprobe(probe: *mut Self) -> *mut bindings::kprobe;
}

// SAFETY: These are the kernel's functions. A kprobe is its own kprobe.
unsafe impl Kind for bindings::kprobe {
    const REGISTER: unsafe extern "C" fn(*mut Self) -> c_int = bindings::register_kprobe;
    const UNREGISTER: unsafe extern "C" fn(*mut *mut Self, c_int) = bindings::unregister_kprobes;

    fn kprobe(probe: *mut Self) -> *mut bindings::kprobe {
        probe
    }
}

// SAFETY: These are the kernel's functions. The kprobe is the field `kp`.
unsafe impl Kind for bindings::kretprobe {
    const REGISTER: unsafe extern "C" fn(*mut Self) -> c_int = bindings::register_kretprobe;
    const UNREGISTER: unsafe extern "C" fn(*mut *mut Self, c_int) = bindings::unregister_kretprobes;

    fn kprobe(probe: *mut Self) -> *mut bindings::kprobe {
        probe
            .wrapping_byte_add(core::mem::offset_of!(bindings::kretprobe, kp))
            .cast()
    }
}

/// A registered probe. It is disabled at first.
///
/// # Invariants
///
/// - `entry` is from `KBox::into_raw`, and its probe is registered.
/// - The probe does not move while it is registered.
#[expect(private_bounds)]
#[repr(transparent)]
pub(crate) struct Registered<P: Kind, T> {
    entry: NonNull<Entry<P, T>>,
}

/// A probe that calls a target where code is reached.
pub(crate) type Kprobe<T> = Registered<bindings::kprobe, T>;

/// A probe that calls a target where a function is called and where it returns.
pub(crate) type Kretprobe<T> = Registered<bindings::kretprobe, T>;

/// The probe is the first field, so that both have the same address.
#[repr(C)]
struct Entry<P, T> {
    probe: Opaque<P>,
    target: Arc<T>,
    place: CodePlace,
}

// SAFETY: The kernel's functions for kprobes have their own lock; the target is `Send` and `Sync`.
unsafe impl<P: Kind, T: Send + Sync> Send for Registered<P, T> {}
// SAFETY: As above.
unsafe impl<P: Kind, T: Send + Sync> Sync for Registered<P, T> {}

/// Initial value of a kprobe: disabled, without a handler.
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
    /// Registers a probe. Errors: `ENOENT` if there is no such symbol, `EILSEQ` if no instruction begins there,
    /// `EINVAL` if the kernel allows no probe there, `EPERM` under lockdown=confidentiality. May sleep.
    pub(crate) fn new(place: CodePlace, target: Arc<T>) -> Result<Self> {
        let probe = bindings::kprobe {
            pre_handler: Some(reached::<T>),
            ..kprobe_at(&place)
        };
        Self::register(probe, place, target)
    }
}

impl<T: Returned> Kretprobe<T> {
    /// Registers a probe that can watch up to `max` calls at once, and that keeps `keeps` bytes of each. 0: as many as the
    /// present tasks are likely to make. Calls that have not returned when the probe is dropped are forgotten. Errors and
    /// context as for [`Kprobe::new`].
    pub(crate) fn new(place: CodePlace, max: u32, keeps: usize, target: Arc<T>) -> Result<Self> {
        let max = match max {
            // SAFETY: The function only reads a number.
            0 => unsafe { bindings::rtrace_task_count() }
                .saturating_mul(2)
                .clamp(LEAST_CALLS, MOST_CALLS),
            max => max,
        };
        let probe = bindings::kretprobe {
            kp: kprobe_at(&place),
            entry_handler: Some(called::<T>),
            handler: Some(returned::<T>),
            maxactive: max as c_int,
            data_size: keeps,
            ..Default::default()
        };
        Self::register(probe, place, target)
    }

    /// Number of calls that were missed because `max` earlier calls had not returned.
    pub(crate) fn missed_at_once(&self) -> u64 {
        // SAFETY: The word belongs to a live kretprobe.
        unsafe { (&raw const (*self.probe()).nmissed).read_volatile() as u64 }
    }
}

#[expect(private_bounds)]
impl<P: Kind, T> Registered<P, T> {
    fn register(probe: P, place: CodePlace, target: Arc<T>) -> Result<Self> {
        privilege::may_probe_code()?;
        let entry = Entry {
            probe: Opaque::new(probe),
            target,
            place,
        };
        let entry = KBox::into_raw(KBox::new(entry, GFP_KERNEL)?);
        // SAFETY: The entry lives, and does not move, until `drop` has unregistered the probe. The entry owns
        // the symbol's text and the handlers' data.
        let registered = unsafe { P::REGISTER(entry.cast()) };
        if let Err(error) = kernel::error::to_result(registered) {
            // SAFETY: The pointer is from `into_raw`. No other code has it. The kernel has stored the address that it
            // found for the symbol, or 0.
            let is_aligned = unsafe {
                let is_aligned = (*P::kprobe(entry.cast())).addr.is_aligned();
                drop(KBox::from_raw(entry));
                is_aligned
            };
            // arm64 says `EINVAL` for an address within an instruction.
            return Err(if is_aligned { error } else { eilseq() });
        }
        let entry = NonNull::new(entry).ok_or(EINVAL)?;
        // INVARIANT: The probe was registered above. No code moves it.
        Ok(Self { entry })
    }

    /// Unregisters all these probes, and waits once until no CPU runs any of them. May sleep.
    pub(crate) fn unregister(mut probes: KVec<Self>) {
        // SAFETY:
        // - A `Registered` is the pointer to its entry, whose first field is the probe. So these are pointers to probes.
        // - By the invariant they are registered.
        unsafe { P::UNREGISTER(probes.as_mut_ptr().cast(), probes.len() as c_int) };
        for probe in probes {
            let entry = ManuallyDrop::new(probe).entry.as_ptr();
            // SAFETY: The entry is from `into_raw`. No CPU runs its probe, and no other code uses it.
            drop(unsafe { KBox::from_raw(entry) });
        }
    }

    fn probe(&self) -> *mut P {
        self.entry.as_ptr().cast()
    }

    fn kprobe(&self) -> *mut bindings::kprobe {
        P::kprobe(self.probe())
    }

    /// Enables the probe. `EINVAL`: the module at its place is unloaded. May sleep.
    pub(crate) fn enable(&self) -> Result {
        // SAFETY: By the invariant it is registered.
        kernel::error::to_result(unsafe { bindings::enable_kprobe(self.kprobe()) })
    }

    /// Disables the probe. A handler may still run. May sleep.
    pub(crate) fn disable(&self) {
        // SAFETY: By the invariant the probe is registered. If its module is unloaded, the call does nothing.
        unsafe { bindings::disable_kprobe(self.kprobe()) };
    }

    /// Number of times that the probe was skipped because another kprobe ran on the CPU.
    pub(crate) fn missed(&self) -> u64 {
        // SAFETY: The word belongs to a live kprobe.
        unsafe { (&raw const (*self.kprobe()).nmissed).read_volatile() as u64 }
    }
}

impl<P: Kind, T> Drop for Registered<P, T> {
    fn drop(&mut self) {
        let mut probe = self.probe();
        // SAFETY:
        // - By the invariant the probe is registered. When the first call returns, no CPU runs it.
        // - Then no other code uses the entry, which is from `into_raw`.
        unsafe {
            P::UNREGISTER(&raw mut probe, 1);
            drop(KBox::from_raw(self.entry.as_ptr()));
        }
    }
}

/// # Safety
///
/// `probe` must be that of a live `Entry<kprobe, T>`, and `registers` must be live.
unsafe extern "C" fn reached<T: Reached>(
    probe: *mut bindings::kprobe,
    registers: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By the contract. The probe is the entry's first field. No code has a mutable reference to the
    // target.
    let (target, registers) = unsafe {
        let entry = probe.cast::<Entry<bindings::kprobe, T>>();
        (&(*entry).target, &*registers.cast::<Registers>())
    };
    target.reached(registers);
    0
}

/// The target of the probe of `instance`, and the data that the instance keeps, with their number of bytes.
///
/// # Safety
///
/// `instance` must be one of the probe of a live `Entry<kretprobe, T>`.
unsafe fn of_instance<'a, T: Returned>(
    instance: *mut bindings::kretprobe_instance,
) -> (&'a T, *mut u8, usize) {
    // SAFETY: By the contract. The probe is the entry's first field. No code has a mutable reference to the
    // target.
    unsafe {
        let probe = bindings::rtrace_kretprobe_of(instance);
        let entry = probe.cast::<Entry<bindings::kretprobe, T>>();
        let kept = bindings::rtrace_kretprobe_data(instance).cast();
        (&(*entry).target, kept, (*probe).data_size)
    }
}

/// # Safety
///
/// `instance` must be one of the probe of a live `Entry<kretprobe, T>`, and `registers` must be live.
unsafe extern "C" fn called<T: Returned>(
    instance: *mut bindings::kretprobe_instance,
    registers: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By the contract. An instance has its own room for the data to keep. All of it is initialised here.
    let (target, kept, registers) = unsafe {
        let (target, kept, len) = of_instance::<T>(instance);
        kept.write_bytes(0, len);
        let kept = core::slice::from_raw_parts_mut(kept, len);
        (target, kept, &*registers.cast::<Registers>())
    };
    target.called(registers, kept);
    0
}

/// # Safety
///
/// As [`called`], which must have been called with this instance.
unsafe extern "C" fn returned<T: Returned>(
    instance: *mut bindings::kretprobe_instance,
    registers: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By the contract. `called` has initialised the data. No other code uses the instance.
    let (target, kept, registers) = unsafe {
        let (target, kept, len) = of_instance::<T>(instance);
        let kept = core::slice::from_raw_parts(kept, len);
        (target, kept, &*registers.cast::<Registers>())
    };
    target.returned(registers, kept);
    0
}
