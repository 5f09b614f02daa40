// SPDX-License-Identifier: GPL-2.0

//! Call stacks: the functions that led to the running code.

use crate::arch::preempt::NoPreempt;
use crate::sys::args::Registers;
use crate::sys::bindings;
use core::mem::MaybeUninit;

/// Maximum number of addresses of a stack.
pub(crate) const DEPTH: usize = 64;

/// Maximum number of this module's own calls at the beginning of a kernel stack.
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

    /// Takes the kernel's stack: the caller of this module, the caller of that, and so on. The stack goes
    /// through interrupts, to the entry from user space or to the thread's first function. It ends at [`DEPTH`]
    /// addresses, or where the kernel cannot unwind it. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn take_kernel(&mut self, _guard: &NoPreempt) {
        // SAFETY: There is room for all the addresses. The function takes no lock, and reads the current stack
        // safely: perf calls the same unwinder in NMIs.
        let taken = unsafe {
            bindings::stack_trace_save(
                self.addresses.as_mut_ptr().cast(),
                self.addresses.len() as u32,
                0,
            )
        } as usize;
        // INVARIANT: `taken` addresses are initialised.
        (self.start, self.end) = (0, taken.min(self.addresses.len()));
        let own = self.addresses().iter().take(OWN);
        self.start = own.take_while(|address| is_own(**address)).count();
        self.end = self.end.min(self.start.wrapping_add(DEPTH));
    }

    /// Takes the stack of the kernel code that was interrupted with these registers; empty if a program was
    /// interrupted. Otherwise as [`take_kernel`](Self::take_kernel).
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn take_interrupted(&mut self, registers: &Registers, _guard: &NoPreempt) {
        // SAFETY: There is room for all the addresses. The function takes no lock, and reads the stack safely:
        // perf calls the same unwinder in NMIs. It does not write to the registers.
        let taken = unsafe {
            bindings::rtrace_kernel_stack(
                core::ptr::from_ref(registers).cast_mut().cast(),
                self.addresses.as_mut_ptr().cast(),
                DEPTH as u32,
            )
        } as usize;
        // INVARIANT: `taken` addresses are initialised.
        (self.start, self.end) = (0, taken.min(DEPTH));
    }

    /// Takes the user's stack, from the place where the current task left user space, as far as frame pointers
    /// lead. The stack is empty for a kernel thread and for a task without memory. A page that is not in memory
    /// ends it: no page is faulted in. Any context, NMI included. In an NMI in the first instructions of a
    /// kernel entry, the stack is that of the previous entry.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn take_user(&mut self, _guard: &NoPreempt) {
        (self.start, self.end) = (0, 0);
        let mut frame = bindings::rtrace_user_frame::default();
        // SAFETY: `frame` is memory for a frame.
        if !unsafe { bindings::rtrace_user_frame(&mut frame) } {
            return;
        }
        self.push(frame.ip);
        while self.end < DEPTH {
            let below = frame.fp;
            // SAFETY: `frame` is memory for a frame. The function accepts any address.
            let is_frame = unsafe { bindings::rtrace_caller_frame(&mut frame) };
            if !is_frame || frame.ip == 0 {
                return;
            }
            self.push(frame.ip);
            // A stack grows downwards, so the caller's frame has a higher address.
            if frame.fp <= below {
                return;
            }
        }
    }

    #[inline(always)]
    fn push(&mut self, address: u64) {
        if let Some(place) = self.addresses.get_mut(self.end) {
            // INVARIANT: One more address is initialised.
            place.write(address);
            self.end = self.end.wrapping_add(1);
        }
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
