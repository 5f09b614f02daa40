// SPDX-License-Identifier: GPL-2.0

//! Differences between processors.

/// The processor of a table, as a number in its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Processor {
    /// x86-64.
    X86_64 = 1,
    /// arm64.
    Arm64 = 2,
}

/// Offsets of an interrupted program's registers from the stack pointer of a function that returns from a signal
/// (`rt_sigreturn`).
#[derive(Clone, Copy, Debug)]
pub(super) struct SignalFrame {
    pub(super) ip: u64,
    pub(super) sp: u64,
    pub(super) fp: u64,
    pub(super) kept: u64,
}

impl Processor {
    /// The processor of a number.
    #[inline]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        match raw {
            1 => Some(Self::X86_64),
            2 => Some(Self::Arm64),
            _ => None,
        }
    }

    /// DWARF's number of the register that a walk follows besides instruction pointer, stack pointer and frame
    /// pointer ([`kept`](super::step::UnwindFrame::kept)).
    ///
    /// On x86-64 this is rbx, which the dynamic linker uses as the base of a frame. On arm64 it is the link register,
    /// whose value is known again in a function that a signal has interrupted.
    #[inline(always)]
    pub const fn kept(self) -> u8 {
        match self {
            Self::X86_64 => 3,
            Self::Arm64 => 30,
        }
    }

    /// The registers in a signal's frame.
    #[inline(always)]
    pub(super) const fn signal_frame(self) -> SignalFrame {
        match self {
            // struct ucontext, whose registers begin at byte 40.
            Self::X86_64 => SignalFrame {
                ip: 168,
                sp: 160,
                fp: 120,
                kept: 128,
            },
            // struct rt_sigframe: siginfo of 128 bytes, then struct ucontext. The registers begin at byte 184 of it.
            Self::Arm64 => SignalFrame {
                ip: 568,
                sp: 560,
                fp: 544,
                kept: 552,
            },
        }
    }
}
