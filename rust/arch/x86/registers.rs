// SPDX-License-Identifier: GPL-2.0

//! Where a `struct pt_regs` has what belongs to a system call.

use core::mem::offset_of;
use kernel::bindings;

macro_rules! registers {
    ($($(#[$doc:meta])* $name:ident = $field:ident;)*) => {
        /// A register in a `struct pt_regs`; its value is the place there, in words.
        #[derive(Clone, Copy)]
        #[repr(u8)]
        pub enum Register {
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
    /// Where the number of the call is.
    pub const NUMBER: Self = Self::OrigAx;

    /// Where its result is.
    pub const RESULT: Self = Self::Ax;

    /// Where a program passes its arguments.
    pub const ARGUMENTS: [Self; 6] = [Self::Di, Self::Si, Self::Dx, Self::R10, Self::R8, Self::R9];

    /// Where a 32-bit program passes its arguments.
    pub const COMPAT_ARGUMENTS: [Self; 6] =
        [Self::Bx, Self::Cx, Self::Dx, Self::Si, Self::Di, Self::Bp];
}
