// SPDX-License-Identifier: GPL-2.0

//! Call stacks: the functions that led to the running code.

use crate::arch::preempt::NoPreempt;
use crate::arch::registers::Frame;
use crate::sys::args::Registers;
use crate::sys::bindings;
use crate::sys::rcu::RcuArc;
use crate::sys::tracepoint::Iterators;
use core::mem::MaybeUninit;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Maximum number of addresses of a stack.
pub(crate) const DEPTH: usize = 64;

/// Maximum number of calls at the beginning of a kernel stack that are the tracer's: this module's own, a handler's
/// of another module, and an iterator's.
const OWN: usize = 10;

/// The iterators of this kernel, which stacks leave out. Empty before [`prepare`].
static ITERATORS: RcuArc<Iterators> = RcuArc::new();

/// Finds the iterators of the kernel's tracepoints. May sleep.
pub(crate) fn prepare() -> Result {
    ITERATORS.replace(Some(Arc::new(Iterators::new()?, GFP_KERNEL)?));
    Ok(())
}

/// Frees what [`prepare`] has found. May sleep.
pub(crate) fn forget() {
    ITERATORS.replace(None);
}

/// The innermost function of a call stack of the kernel.
#[derive(Clone, Copy)]
pub(crate) enum StackStart<'a> {
    /// A function of this module, at one of its instructions, which has not returned. The functions that
    /// it calls need not be unwound.
    Function(Frame),
    /// As `Function`, but a tracepoint's handler in another module has called this module.
    InHandler(Frame),
    /// Code that was interrupted with these registers.
    Interrupted(&'a Registers),
}

impl StackStart<'_> {
    /// The function that contains this.
    #[inline(always)]
    pub(crate) fn here() -> Self {
        Self::Function(Frame::here())
    }

    /// The function that contains this, which a tracepoint's handler in another module has called.
    #[inline(always)]
    pub(crate) fn in_handler() -> Self {
        Self::InHandler(Frame::here())
    }
}

/// A call stack: addresses of code, the innermost first. Large: over half a KiB.
///
/// # Invariants
///
/// The addresses from `start` to `end` are initialised.
pub(crate) struct CallStack {
    addresses: [MaybeUninit<u64>; OWN + DEPTH],
    start: usize,
    end: usize,
}

impl CallStack {
    /// An empty stack.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self {
            addresses: [const { MaybeUninit::uninit() }; OWN + DEPTH],
            start: 0,
            end: 0,
        }
    }

    /// The addresses.
    #[inline(always)]
    pub(crate) fn addresses(&self) -> &[u64] {
        // SAFETY: By the invariant.
        unsafe {
            core::slice::from_raw_parts(
                self.addresses.as_ptr().add(self.start).cast(),
                self.end.wrapping_sub(self.start),
            )
        }
    }

    /// The addresses as bytes.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        let addresses = self.addresses();
        // SAFETY: These are the bytes of the addresses.
        unsafe { core::slice::from_raw_parts(addresses.as_ptr().cast(), size_of_val(addresses)) }
    }

    /// Takes the kernel's stack, through interrupts to the entry from user space or the thread's first
    /// function. It begins with the traced code: the function that has reached a tracepoint or called this module, or
    /// interrupted code. It does not include addresses beyond [`DEPTH`], nor those that the kernel does not know. Any
    /// context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn take_kernel(&mut self, start: Option<StackStart<'_>>, guard: &NoPreempt) {
        let room = self.addresses.as_mut_ptr().cast();
        let start = start.unwrap_or_else(StackStart::here);
        let taken = match start {
            // SAFETY: There is room for as many addresses. The function takes no lock, and reads the
            // stack with care; perf calls the same functions in NMIs. It does not write to the registers.
            StackStart::Interrupted(registers) => unsafe {
                let registers = core::ptr::from_ref(registers).cast_mut().cast();
                bindings::rtrace_interrupted_stack(registers, room, DEPTH as u32)
            },
            StackStart::Function(Frame { ip, sp, bp })
            | StackStart::InHandler(Frame { ip, sp, bp }) => {
                let most = self.addresses.len() as u32;
                // SAFETY: As above.
                unsafe { bindings::rtrace_stack_of(ip, sp, bp, room, most) }
            }
        };
        // INVARIANT: As many are initialised.
        (self.start, self.end) = (0, (taken as usize).min(self.addresses.len()));
        self.start = match start {
            StackStart::Interrupted(_) => 0,
            StackStart::Function(_) => self.of_tracer(0, guard),
            StackStart::InHandler(_) => self.of_tracer(1, guard),
        };
        self.end = self.end.min(self.start.wrapping_add(DEPTH));
    }

    /// The number of innermost addresses that are the tracer's: this module's, that many of a handler's module, and
    /// an iterator's.
    #[inline(always)]
    fn of_tracer(&self, handlers: usize, guard: &NoPreempt) -> usize {
        let taken = self.addresses();
        let own = taken.iter().take(OWN.wrapping_sub(2));
        let own = own.take_while(|address| is_own(**address)).count();
        let before = own.wrapping_add(handlers).min(taken.len());
        let is_iterator = |address: &u64| {
            let iterators = ITERATORS.get(guard);
            iterators.is_some_and(|iterators| iterators.contain(*address))
        };
        before.wrapping_add(taken.get(before).is_some_and(is_iterator).into())
    }

    /// Takes the user's stack: where the task that runs left user space, and as far as frame
    /// pointers lead. Empty if it is a thread of the kernel, or has no memory any more. A page that is not
    /// in memory now ends it: nothing is faulted in. Any context, NMI included; in an NMI that
    /// came in the first instructions of an entry to the kernel it is that of the entry before.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn take_user(&mut self, _guard: &NoPreempt) {
        // SAFETY: There is room for as many addresses. The function reads user space without faults.
        let taken = unsafe {
            bindings::rtrace_user_stack(self.addresses.as_mut_ptr().cast(), DEPTH as u32)
        };
        // INVARIANT: As many are initialised.
        (self.start, self.end) = (0, (taken as usize).min(DEPTH));
    }
}

/// Whether `address` is in this module's code.
#[inline(always)]
fn is_own(address: u64) -> bool {
    #[allow(improper_ctypes)] // The type is the kernel crate's.
    extern "C" {
        static __this_module: bindings::module;
    }
    // SAFETY: The object is this module, which lives while its code runs. Its code does not move.
    let text = unsafe {
        let all = (&raw const __this_module.mem).cast::<bindings::module_memory>();
        &*all.add(bindings::mod_mem_type_MOD_TEXT as usize)
    };
    address.wrapping_sub(text.base.addr() as u64) < text.size.into()
}
