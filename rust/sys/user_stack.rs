// SPDX-License-Identifier: GPL-2.0

//! Stacks of programs: the frames, the rules that are known, and the files whose code a program executes.

use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::sys::args::Task;
use crate::sys::bindings;
use crate::sys::page_words::PageWords;
use core::mem::MaybeUninit;
use kernel::error::to_result;
use kernel::prelude::*;

/// Maximum number of addresses of a stack.
pub(crate) const DEPTH: usize = 128;

/// Bits of a rule's word in C: the base is the frame pointer, the caller's frame pointer is saved, there is no caller.
#[allow(dead_code)] // A check at compile time uses it.
pub(crate) const RULE_BITS: [u64; 3] = [
    bindings::RTRACE_RULE_FROM_FP as u64,
    bindings::RTRACE_RULE_FP_SAVED as u64,
    bindings::RTRACE_RULE_OUTERMOST as u64,
];

/// The stack of a program: addresses of code, the innermost first. Large: a KiB.
///
/// # Invariants
///
/// The first `len` addresses are initialised; `len` is at most [`DEPTH`].
pub(crate) struct UserStack {
    addresses: [MaybeUninit<u64>; DEPTH],
    len: usize,
    /// Why it ends: see [`StackEnd::to_raw`](crate::unwind::end::StackEnd::to_raw).
    pub(crate) end: u8,
}

impl UserStack {
    /// An empty stack.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        // INVARIANT: No address is initialised.
        Self {
            addresses: [const { MaybeUninit::uninit() }; DEPTH],
            len: 0,
            end: 0,
        }
    }

    /// The addresses.
    #[inline(always)]
    pub(crate) fn addresses(&self) -> &[u64] {
        // SAFETY: By the invariant.
        unsafe { core::slice::from_raw_parts(self.addresses.as_ptr().cast(), self.len) }
    }

    /// Appends an address. Returns whether there was room.
    pub(crate) fn push(&mut self, address: u64) -> bool {
        let Some(place) = self.addresses.get_mut(self.len) else {
            return false;
        };
        place.write(address);
        // INVARIANT: One more is initialised; there was room for it.
        self.len = self.len.wrapping_add(1);
        true
    }
}

/// Where a walk stands. The numbers are those of C, which saves their conversion.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum WalkState {
    /// The thread is the kernel's, has no memory any more, or begins a program.
    NoProgram = bindings::rtrace_user_step_RTRACE_USER_NONE,
    /// At the registers of a 32-bit program.
    Narrow = bindings::rtrace_user_step_RTRACE_USER_NARROW,
    /// At a frame whose rule is not known, and whose address is not in the stack yet.
    Rule = bindings::rtrace_user_step_RTRACE_USER_RULE,
    /// At a frame for which there is no room.
    Limit = bindings::rtrace_user_step_RTRACE_USER_LIMIT,
    /// At the end of the stack.
    Outermost = bindings::rtrace_user_step_RTRACE_USER_OUTERMOST,
    /// A word of the stack cannot be read now.
    Unreadable = bindings::rtrace_user_step_RTRACE_USER_UNREADABLE,
}

impl WalkState {
    #[inline(always)]
    fn of_raw(raw: bindings::rtrace_user_step) -> Self {
        match raw {
            bindings::rtrace_user_step_RTRACE_USER_NARROW => Self::Narrow,
            bindings::rtrace_user_step_RTRACE_USER_RULE => Self::Rule,
            bindings::rtrace_user_step_RTRACE_USER_LIMIT => Self::Limit,
            bindings::rtrace_user_step_RTRACE_USER_OUTERMOST => Self::Outermost,
            bindings::rtrace_user_step_RTRACE_USER_UNREADABLE => Self::Unreadable,
            _ => Self::NoProgram,
        }
    }
}

/// A walk through the stack of the program that runs, from where it left user space. Any context, NMI included; in an NMI
/// that came in the first instructions of an entry to the kernel, it begins where the entry before did.
pub(crate) struct UserWalk<'a> {
    raw: bindings::rtrace_user_walk,
    stack: &'a mut UserStack,
    _guard: &'a NoPreempt,
}

impl<'a> UserWalk<'a> {
    /// A walk that will append its addresses to `stack`, which is empty.
    #[inline(always)]
    pub(crate) fn new(stack: &'a mut UserStack, guard: &'a NoPreempt) -> Self {
        Self {
            raw: bindings::rtrace_user_walk::default(),
            stack,
            _guard: guard,
        }
    }

    /// Begins the walk.
    #[inline(always)]
    pub(crate) fn begin(&mut self) -> WalkState {
        // SAFETY: The function fills in the structure.
        WalkState::of_raw(unsafe { bindings::rtrace_user_begin(&mut self.raw) })
    }

    /// Steps outwards as far as the rules are known.
    #[inline(always)]
    pub(crate) fn go_on(&mut self, rules: &KnownRules) -> WalkState {
        self.raw.taken = self.stack.len as u32;
        let addresses = self.stack.addresses.as_mut_ptr().cast();
        // SAFETY:
        // - There is room for `DEPTH` addresses, of which `taken` are there.
        // - There are as many slots as `bits` says, and they live as long as `rules`.
        // - The walk has begun in this section without preemption, so the address space is the same.
        let state = unsafe {
            bindings::rtrace_user_steps(
                &mut self.raw,
                addresses,
                DEPTH as u32,
                rules.first(),
                rules.bits,
            )
        };
        // INVARIANT: As many are initialised.
        self.stack.len = (self.raw.taken as usize).min(DEPTH);
        WalkState::of_raw(state)
    }

    /// If a return probe of the kernel has replaced the address of the frame, puts back the one that the program has saved.
    /// Returns whether it did.
    pub(crate) fn unprobe(&mut self) -> bool {
        // SAFETY: The walk has begun. The function only reads, with care, what belongs to the running task.
        unsafe { bindings::rtrace_user_unprobe(&mut self.raw) }
    }

    /// Takes the addresses of a 32-bit program, as far as its frame pointers lead.
    pub(crate) fn follow_narrow(&mut self) {
        self.stack.push(self.raw.ip);
        let from = self.stack.len;
        let room = self.stack.addresses.get_mut(from..).unwrap_or_default();
        // SAFETY: There is room for as many addresses.
        let taken = unsafe {
            bindings::rtrace_user_narrow(&self.raw, room.as_mut_ptr().cast(), room.len() as u32)
        };
        // INVARIANT: As many are initialised.
        self.stack.len = from.wrapping_add(taken as usize).min(DEPTH);
    }

    /// The stack so far.
    pub(crate) fn stack(&mut self) -> &mut UserStack {
        self.stack
    }

    /// The frame at which the walk stands.
    pub(crate) fn frame(&self) -> ProgramFrame {
        ProgramFrame {
            ip: self.raw.ip,
            sp: self.raw.sp,
            fp: self.raw.fp,
            kept: self.raw.kept,
            is_exact: self.raw.exact,
        }
    }

    /// Moves to the frame of a caller.
    pub(crate) fn move_to(&mut self, frame: ProgramFrame) {
        // SAFETY: The function computes a number.
        self.raw.ip = unsafe { bindings::rtrace_user_code(frame.ip) };
        self.raw.sp = frame.sp;
        self.raw.fp = frame.fp;
        self.raw.kept = frame.kept;
        self.raw.exact = frame.is_exact;
    }

    /// Makes the rule of an address known, for the program that runs. The word of the rule is not 0. Returns whether that is
    /// possible.
    pub(crate) fn keep(&self, rules: &KnownRules, address: u64, rule: u64) -> bool {
        if rules.watch.is_none() {
            return false;
        }
        let (first, bits) = (rules.first().cast_mut(), rules.bits);
        // SAFETY: There are as many slots as `bits` says. Their words may be written by any context.
        unsafe {
            bindings::rtrace_user_keep(first, bits, self.raw.space, address, rule);
        }
        true
    }
}

/// A frame of a program.
pub(crate) struct ProgramFrame {
    /// The instruction pointer.
    pub(crate) ip: u64,
    /// The stack pointer.
    pub(crate) sp: u64,
    /// The frame pointer.
    pub(crate) fp: u64,
    /// The register that [`Processor::kept`](crate::unwind::processor::Processor::kept) names.
    pub(crate) kept: u64,
    /// Whether the rule is that of `ip` itself, and not of the call before it.
    pub(crate) is_exact: bool,
}

/// A register of the program at its last entry to the kernel, by its number in DWARF. [`None`]: there is none.
pub(crate) fn entry_register(number: u8) -> Option<u64> {
    let mut value = 0;
    // SAFETY: The function writes the value.
    let is_there = unsafe { bindings::rtrace_user_register(number.into(), &mut value) };
    is_there.then_some(value)
}

/// The word at an address of the program that runs. [`None`]: it cannot be read now. Any context, NMI included.
pub(crate) fn program_word(address: u64) -> Option<u64> {
    let mut word = 0;
    // SAFETY: The function accepts any address, and writes the word.
    let is_there = unsafe { bindings::rtrace_user_word(address, &mut word) };
    is_there.then_some(word)
}

/// Rules of addresses, of all programs. All CPUs read and write it: a rule that is being replaced is not found.
pub(crate) struct KnownRules {
    /// Four for each slot, which has two rules.
    words: PageWords<SharedWord>,
    /// There are `1 << bits` slots.
    bits: u32,
    /// [`None`]: the kernel does not tell of code that is unmapped. Then no rule is kept.
    watch: Option<Watch>,
}

impl KnownRules {
    /// Room for `2 << bits` rules. The rules of code that is unmapped are forgotten. One at a time. May sleep.
    pub(crate) fn new(bits: u32) -> Result<Self> {
        Ok(Self {
            words: PageWords::new(4 << bits, Task::current().cpu() as u32)?,
            bits,
            watch: Watch::new().ok(),
        })
    }

    fn first(&self) -> *const bindings::rtrace_user_slot {
        self.words.as_ref().as_ptr().cast()
    }
}

/// The kernel tells us of code that programs unmap.
struct Watch;

impl Watch {
    fn new() -> Result<Self> {
        // SAFETY: Process context. There is one at a time.
        to_result(unsafe { bindings::rtrace_user_watch() }).map(|()| Self)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // SAFETY: `new` has succeeded.
        unsafe { bindings::rtrace_user_unwatch() };
    }
}

/// The identity of a file and of its contents. All words of the vDSO are 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileIdentity([u64; 6]);

impl FileIdentity {
    fn of_raw(raw: &bindings::rtrace_user_file) -> Self {
        Self([
            raw.inode,
            raw.filesystem,
            raw.number,
            raw.size,
            raw.changed_sec as u64,
            u64::from(raw.changed_nsec) << 32 | u64::from(raw.generation),
        ])
    }

    /// Returns the identity of the file that the calling program has open as `fd`; of the vDSO if it is -1. `EINVAL`: the
    /// file is not a regular one. May sleep.
    pub(crate) fn of_open(fd: i32) -> Result<Self> {
        let mut raw = bindings::rtrace_user_file::default();
        // SAFETY: The function fills in the structure.
        to_result(unsafe { bindings::rtrace_user_file_of(fd, &mut raw) })?;
        Ok(Self::of_raw(&raw))
    }

    /// A number that tells files apart, but not their contents; 0: the vDSO.
    pub(crate) fn inode(&self) -> u64 {
        let [inode, ..] = self.0;
        inode
    }
}

/// The mapping of a program at an address.
pub(crate) enum UserPlace {
    /// No code.
    Nothing,
    /// Code in no file.
    Memory,
    /// Code of a file.
    File {
        /// The file.
        file: FileIdentity,
        /// The offset of the address in it.
        offset: u64,
        /// The addresses of the mapping.
        mapping: (u64, u64),
    },
    /// A thread of the program changes its mappings.
    Changes,
}

impl UserPlace {
    /// Finds the mapping of the program that runs, which must have memory, at an address. Any context, NMI included.
    pub(crate) fn of(address: u64) -> Self {
        let mut raw = bindings::rtrace_user_mapping::default();
        // SAFETY: The function fills in the structure, and accepts any address.
        match unsafe { bindings::rtrace_user_place_of(address, &mut raw) } {
            bindings::rtrace_user_place_RTRACE_PLACE_MEMORY => Self::Memory,
            bindings::rtrace_user_place_RTRACE_PLACE_CHANGES => Self::Changes,
            bindings::rtrace_user_place_RTRACE_PLACE_FILE => Self::File {
                file: FileIdentity::of_raw(&raw.file),
                offset: raw.offset,
                mapping: (raw.start, raw.end),
            },
            _ => Self::Nothing,
        }
    }
}
