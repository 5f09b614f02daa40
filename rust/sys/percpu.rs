// SPDX-License-Identifier: GPL-2.0

//! Dynamically allocated per-CPU variables.

use crate::arch::percpu::this_cpu_address;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::record::gate::{self, FilledOnce};
use crate::sys::bindings;
use crate::sys::{cpu, pages};
use core::marker::PhantomData;
use core::mem::{align_of, size_of};
use kernel::prelude::*;
use kernel::sync::Arc;

/// One `T` for each possible CPU, each on its CPU's memory node.
///
/// # Invariants
///
/// `offset` was returned by `pcpu_alloc_noprof` for the size and alignment of a `T`. There is a `T` for each
/// possible CPU.
pub(crate) struct PerCpu<T> {
    offset: usize,
    data: PhantomData<T>,
}

// SAFETY: The type gives out shared references only.
unsafe impl<T: Sync> Sync for PerCpu<T> {}
// SAFETY: If one `T` can be sent, several of them can.
unsafe impl<T: Send> Send for PerCpu<T> {}

impl<T> PerCpu<T> {
    /// Allocates the variables, and initialises each with `make`. The memory cgroup of the caller is charged. `ENOMEM`:
    /// there is not enough memory. May sleep.
    pub(crate) fn new(make: impl Fn() -> T) -> Result<Self> {
        if !pages::has_room(size_of::<T>().saturating_mul(cpu::count() as usize)) {
            return Err(ENOMEM);
        }
        // SAFETY: A plain allocation, whose result is checked.
        let pointer = unsafe {
            bindings::pcpu_alloc_noprof(
                size_of::<T>(),
                align_of::<T>(),
                false,
                bindings::rtrace_gfp_RTRACE_GFP,
            )
        };
        if pointer.is_null() {
            return Err(ENOMEM);
        }
        let offset = pointer as usize;
        for cpu in cpu::possible() {
            // SAFETY: The memory was just allocated for each possible CPU. No other code uses it.
            unsafe { (address(offset, cpu) as *mut T).write(make()) };
        }
        // INVARIANT: Allocated and initialised above.
        Ok(Self {
            offset,
            data: PhantomData,
        })
    }

    /// The variable of the current CPU. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn this_cpu(&self, _guard: &NoPreempt) -> &T {
        // SAFETY:
        // - By the invariant this is the address of the current CPU's `T`.
        // - While the guard lives, the CPU stays the current one. After that the address is still that of a
        //   valid `T`.
        // - So the address is not 0, which the compiler does not see.
        unsafe {
            let address = this_cpu_address(self.offset);
            core::hint::assert_unchecked(address != 0);
            &*(address as *const T)
        }
    }

    /// The variable of `cpu`, or [`None`] if this CPU cannot exist. Any CPU may call this.
    pub(crate) fn of(&self, cpu: u32) -> Option<&T> {
        if cpu >= cpu::count() {
            return None;
        }
        // SAFETY: By the invariant this is the `T` of `cpu`, valid as long as `self`.
        Some(unsafe { &*(address(self.offset, cpu) as *const T) })
    }
}

impl<T> Drop for PerCpu<T> {
    fn drop(&mut self) {
        for cpu in cpu::possible() {
            if let Some(value) = self.of(cpu) {
                // SAFETY: No reference is left. Each `T` is dropped once.
                unsafe { core::ptr::from_ref(value).cast_mut().drop_in_place() };
            }
        }
        // SAFETY: By the invariant.
        unsafe { bindings::free_percpu(self.offset as *mut _) };
    }
}

/// Address on `cpu` of the per-CPU variable at `offset`. `cpu` must be below [`cpu::count`].
fn address(offset: usize, cpu: u32) -> usize {
    // SAFETY: The array has an entry for each CPU below `nr_cpu_ids`.
    let distance = unsafe {
        (&raw const bindings::__per_cpu_offset)
            .cast::<usize>()
            .add(cpu as usize)
            .read()
    };
    offset.wrapping_add(distance)
}

/// Per-CPU variables with several owners. An access needs one load less than through an `Arc`.
///
/// # Invariants
///
/// `offset` is the one of `values`.
pub(crate) struct SharedPerCpu<T> {
    offset: usize,
    values: Arc<PerCpu<T>>,
}

impl<T> Clone for SharedPerCpu<T> {
    fn clone(&self) -> Self {
        Self {
            offset: self.offset,
            values: self.values.clone(),
        }
    }
}

impl<T> gate::EachCpu<T, NoPreempt> for SharedPerCpu<T> {
    fn new(make: impl Fn() -> T) -> Option<Self> {
        let values = PerCpu::new(make).ok()?;
        Some(Self {
            offset: values.offset,
            values: Arc::new(values, GFP_KERNEL).ok()?,
        })
    }

    #[inline(always)]
    fn word(&self) -> u64 {
        self.offset as u64
    }

    #[inline(always)]
    unsafe fn at<'a>(word: u64, _guard: &NoPreempt) -> &'a T {
        // SAFETY: By the contract `word` is an offset. The rest as in `PerCpu::this_cpu`.
        unsafe { &*(this_cpu_address(word as usize) as *const T) }
    }

    fn of(&self, cpu: u32) -> Option<&T> {
        self.values.of(cpu)
    }

    fn for_each(&self, each: impl FnMut(&T)) {
        cpu::possible()
            .filter_map(|cpu| self.of(cpu))
            .for_each(each);
    }
}

/// A place for an `Arc` that is filled once, and read in any context.
///
/// # Invariants
///
/// The word is 0 or the pointer of an `Arc` that this owns. While it may be read, it changes only once.
pub(crate) struct OnceArc<T> {
    pointer: SharedWord,
    data: PhantomData<Arc<T>>,
}

impl<T> FilledOnce<T> for OnceArc<T> {
    fn new() -> Self {
        Self {
            pointer: SharedWord::new(0),
            data: PhantomData,
        }
    }

    #[inline(always)]
    fn get(&self) -> Option<&T> {
        // SAFETY: By the invariant the pointer is NULL, or valid as long as `self`. The load is an acquire. So
        // the value behind the pointer is seen as it was when the `Arc` was stored.
        unsafe { (self.pointer.load_acquire() as *const T).as_ref() }
    }

    #[inline(always)]
    unsafe fn get_filled(&self) -> &T {
        // SAFETY: By the contract the word does not change any more. By the invariant it is a pointer that is
        // valid as long as `self`.
        unsafe {
            let pointer = self.pointer.load_settled() as *const T;
            core::hint::assert_unchecked(!pointer.is_null());
            &*pointer
        }
    }

    fn is_filled(&self) -> bool {
        self.pointer.load() != 0
    }

    unsafe fn empty(&self) {
        let mut pointer = self.pointer.load();
        while !self.pointer.compare_exchange(pointer, 0) {
            pointer = self.pointer.load();
        }
        let pointer = pointer as *const T;
        if !pointer.is_null() {
            // SAFETY: By the invariant the place owned the pointer, which was removed above. By the contract no
            // reference to the value is left.
            drop(unsafe { Arc::from_raw(pointer) });
        }
    }
}

impl<T> OnceArc<T> {
    /// A reference to the value, if there is one. Any context, NMI included.
    pub(crate) fn get_arc(&self) -> Option<Arc<T>> {
        let pointer: *const T = self.get()?;
        // SAFETY: By the invariant. The place keeps its own reference.
        let held = core::mem::ManuallyDrop::new(unsafe { Arc::from_raw(pointer) });
        Some((*held).clone())
    }

    /// Fills the place. Returns whether it was empty; if not, drops `value`.
    pub(crate) fn set(&self, value: Arc<T>) -> bool {
        let pointer = Arc::into_raw(value);
        if self.pointer.compare_exchange(0, pointer as u64) {
            return true;
        }
        // SAFETY: The pointer is from `into_raw` above, and was not stored.
        drop(unsafe { Arc::from_raw(pointer) });
        false
    }
}

impl<T> Drop for OnceArc<T> {
    fn drop(&mut self) {
        let pointer = self.pointer.load() as *const T;
        if !pointer.is_null() {
            // SAFETY: By the invariant.
            drop(unsafe { Arc::from_raw(pointer) });
        }
    }
}
