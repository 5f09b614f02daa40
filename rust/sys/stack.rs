// SPDX-License-Identifier: GPL-2.0

//! Call stacks: which functions led to the code that runs.

use crate::arch::preempt::NoPreempt;
use crate::sys::args::Registers;
use crate::sys::bindings;
use core::mem::MaybeUninit;

/// So many addresses a stack has at most.
pub(crate) const DEPTH: usize = 64;

/// Calls of this module's own that a stack of the kernel may begin with.
const OWN: usize = 8;

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
    /// An empty one.
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

    /// The same as bytes.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        let addresses = self.addresses();
        // SAFETY: Their bytes.
        unsafe { core::slice::from_raw_parts(addresses.as_ptr().cast(), size_of_val(addresses)) }
    }

    /// Takes the kernel's stack: who called this module, who called that, and so on through
    /// interrupts to the entry from user space or the thread's first function. What lies beyond
    /// [`DEPTH`], or what the kernel cannot tell, is left out. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn take_kernel(&mut self, _guard: &NoPreempt) {
        // SAFETY: There is room for so many addresses. The function takes no lock, and reads the
        // stack that it runs on with care; perf calls what it calls in NMIs.
        let taken = unsafe {
            bindings::stack_trace_save(
                self.addresses.as_mut_ptr().cast(),
                self.addresses.len() as u32,
                0,
            )
        } as usize;
        // INVARIANT: So many are initialised.
        (self.start, self.end) = (0, taken.min(self.addresses.len()));
        let own = self.addresses().iter().take(OWN);
        self.start = own.take_while(|address| is_own(**address)).count();
        self.end = self.end.min(self.start.wrapping_add(DEPTH));
    }

    /// Takes the stack of the kernel's code that was interrupted with these registers; empty if it was a
    /// program. Else as [`take_kernel`](Self::take_kernel).
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn take_interrupted(&mut self, registers: &Registers, _guard: &NoPreempt) {
        // SAFETY: There is room for so many addresses. The function takes no lock, and reads the
        // stack with care; perf calls what it calls in NMIs. It does not write to the registers.
        let taken = unsafe {
            bindings::rtrace_kernel_stack(
                core::ptr::from_ref(registers).cast_mut().cast(),
                self.addresses.as_mut_ptr().cast(),
                DEPTH as u32,
            )
        } as usize;
        // INVARIANT: So many are initialised.
        (self.start, self.end) = (0, taken.min(DEPTH));
    }

    /// Takes the user's stack: where the task that runs left user space, and as far as frame
    /// pointers lead. Empty if it is a thread of the kernel, or has no memory any more. What is not
    /// in memory now ends it: nothing is faulted in. Any context, NMI included; in an NMI that
    /// came in the first instructions of an entry to the kernel it is that of the entry before.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn take_user(&mut self, _guard: &NoPreempt) {
        (self.start, self.end) = (0, 0);
        let mut frame = bindings::rtrace_user_frame::default();
        // SAFETY: A place for a frame.
        if !unsafe { bindings::rtrace_user_frame(&mut frame) } {
            return;
        }
        self.push(frame.ip);
        while self.end < DEPTH {
            let below = frame.fp;
            // SAFETY: A place for a frame; the function takes any address.
            let is_frame = unsafe { bindings::rtrace_caller_frame(&mut frame) };
            if !is_frame || frame.ip == 0 {
                return;
            }
            self.push(frame.ip);
            // A stack grows downwards.
            if frame.fp <= below {
                return;
            }
        }
    }

    #[inline(always)]
    fn push(&mut self, address: u64) {
        if let Some(place) = self.addresses.get_mut(self.end) {
            // INVARIANT: One more is initialised.
            place.write(address);
            self.end = self.end.wrapping_add(1);
        }
    }
}

/// Whether code of this module is there.
#[inline(always)]
fn is_own(address: u64) -> bool {
    #[allow(improper_ctypes)] // The kernel crate's own.
    extern "C" {
        static __this_module: bindings::module;
    }
    // SAFETY: This module, which lives while its code runs; where its code lies does not change.
    let text = unsafe {
        let all = (&raw const __this_module.mem).cast::<bindings::module_memory>();
        &*all.add(bindings::mod_mem_type_MOD_TEXT as usize)
    };
    address.wrapping_sub(text.base.addr() as u64) < text.size.into()
}
