// SPDX-License-Identifier: GPL-2.0

//! Call stacks of the kernel: the functions that led to the running code.

use crate::arch::preempt::NoPreempt;
use crate::arch::registers::Frame;
use crate::sys::args::Registers;
use crate::sys::bindings;
use crate::sys::rcu::RcuArc;
use crate::sys::tracepoint::Iterators;
use core::mem::MaybeUninit;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Maximum number of addresses of a stack.
pub(crate) const DEPTH: usize = 64;

/// Maximum number of calls at the beginning of a kernel stack that are the tracer's: this module's own, a handler's
/// of another module, and an iterator's.
const OWN: usize = 10;

// All stacks can be compared.
const _: () = assert!(OWN + DEPTH <= bindings::RTRACE_STACK_ROOM as usize);

/// The iterators of this kernel, which stacks leave out. Empty before [`prepare`].
static ITERATORS: RcuArc<Iterators> = RcuArc::new();

/// Finds the iterators of the kernel's tracepoints, and prepares for the first stack. May sleep.
pub(crate) fn prepare() -> Result {
    let iterators = Arc::new(Iterators::new()?, GFP_KERNEL)?;
    // SAFETY: No stack was taken before. If this succeeds, `forget` follows the last stack.
    to_result(unsafe { bindings::rtrace_stacks_begin() })?;
    ITERATORS.replace(Some(iterators));
    Ok(())
}

/// Undoes [`prepare`], after the last stack. May sleep.
pub(crate) fn forget() {
    ITERATORS.replace(None);
    // SAFETY: `prepare` has succeeded, and no stack is taken any more.
    unsafe { bindings::rtrace_stacks_end() };
}

/// How the kernel's stacks are taken. All ways give the same addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelStacks {
    /// By learnt rules, and by the kernel's unwinder what they do not describe.
    Learnt,
    /// By the kernel's unwinder.
    Kernel,
    /// By both, to compare them.
    Compare,
}

impl KernelStacks {
    /// All ways.
    pub(crate) const ALL: [Self; 3] = [Self::Learnt, Self::Kernel, Self::Compare];

    /// The way in use.
    pub(crate) fn now() -> Self {
        // SAFETY: Reads a variable.
        let now = unsafe { bindings::rtrace_stacks() };
        let is_now = |way: &Self| way.raw() == now;
        Self::ALL.into_iter().find(is_now).unwrap_or(Self::Kernel)
    }

    /// Makes this the way for all stacks. [`EINVAL`]: this kernel's unwinder has no rules.
    pub(crate) fn set(self) -> Result {
        // SAFETY: Writes a variable; stacks may be taken meanwhile.
        let is_set = unsafe { bindings::rtrace_set_stacks(self.raw()) };
        is_set.then_some(()).ok_or(EINVAL)
    }

    /// Number of stacks that were compared since the module was loaded, and how many of them differed.
    pub(crate) fn compared() -> (u64, u64) {
        // SAFETY: These read variables.
        unsafe {
            let different = bindings::rtrace_compared_stacks(true);
            (bindings::rtrace_compared_stacks(false), different)
        }
    }

    fn raw(self) -> bindings::rtrace_stacks {
        match self {
            Self::Learnt => bindings::rtrace_stacks_RTRACE_STACKS_LEARNT,
            Self::Kernel => bindings::rtrace_stacks_RTRACE_STACKS_KERNEL,
            Self::Compare => bindings::rtrace_stacks_RTRACE_STACKS_COMPARED,
        }
    }
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

/// The bytes of words.
#[inline(always)]
pub(crate) fn words_as_bytes(words: &[u64]) -> &[u8] {
    // SAFETY: These are the bytes of the words.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}
