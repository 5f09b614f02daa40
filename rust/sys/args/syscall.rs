// SPDX-License-Identifier: GPL-2.0

//! System calls: the registers that user space came with.

use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
use core::mem::offset_of;
use kernel::types::Opaque;

/// A `struct pt_regs` of a system call.
#[repr(transparent)]
pub(crate) struct Registers(Opaque<bindings::pt_regs>);

// SAFETY: A pointer to live registers; tracepoints that pass one pass no NULL.
unsafe impl Arg for &Registers {
    type Raw = *mut bindings::pt_regs;
}

macro_rules! registers {
    ($($(#[$doc:meta])* $name:ident = $field:ident;)*) => {
        /// A register in a `struct pt_regs`; its value is the place there, in words.
        #[derive(Clone, Copy)]
        #[repr(u8)]
        pub(crate) enum Register {
            $($(#[$doc])* $name = {
                assert!(offset_of!(bindings::pt_regs, $field) % 8 == 0);
                (offset_of!(bindings::pt_regs, $field) / 8) as u8
            },)*
        }
    };
}

registers! {
    /// The first argument.
    Di = di;
    /// The second.
    Si = si;
    /// The third.
    Dx = dx;
    /// The fourth.
    R10 = r10;
    /// The fifth.
    R8 = r8;
    /// The sixth.
    R9 = r9;
    /// An argument of a 32-bit program.
    Bx = bx;
    /// An argument of a 32-bit program.
    Cx = cx;
    /// An argument of a 32-bit program.
    Bp = bp;
    /// The result.
    Ax = ax;
    /// The number.
    OrigAx = orig_ax;
}

impl Register {
    /// Where a program passes its arguments.
    pub(crate) const ARGUMENTS: [Self; 6] =
        [Self::Di, Self::Si, Self::Dx, Self::R10, Self::R8, Self::R9];

    /// Where a 32-bit program passes its arguments.
    pub(crate) const COMPAT_ARGUMENTS: [Self; 6] =
        [Self::Bx, Self::Cx, Self::Dx, Self::Si, Self::Di, Self::Bp];
}

impl Registers {
    /// What is in `register`.
    #[inline(always)]
    pub(crate) fn get(&self, register: Register) -> u64 {
        // SAFETY: Live registers, which a probe does not change; the place is that of a field.
        unsafe { self.0.get().cast::<u64>().add(register as usize).read() }
    }

    /// The number of the call; negative if it is none.
    #[inline(always)]
    pub(crate) fn number(&self) -> i32 {
        self.get(Register::OrigAx) as i32
    }
}
