// SPDX-License-Identifier: GPL-2.0

//! Where a `struct pt_regs` has which register, and what belongs to calls there.

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

        impl Register {
            /// The one that the kernel calls so.
            pub fn by_name(name: &str) -> Option<Self> {
                match name {
                    $(stringify!($field) => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

registers! {
    /// An argument of a 32-bit program.
    Bx = bx;
    /// An argument of a 32-bit program, and the fourth one of a function.
    Cx = cx;
    /// The third argument.
    Dx = dx;
    /// The second argument.
    Si = si;
    /// The first argument.
    Di = di;
    /// An argument of a 32-bit program.
    Bp = bp;
    /// The result.
    Ax = ax;
    /// The fifth argument.
    R8 = r8;
    /// The sixth argument.
    R9 = r9;
    /// The fourth argument of a system call.
    R10 = r10;
    /// No part in calls.
    R11 = r11;
    /// No part in calls.
    R12 = r12;
    /// No part in calls.
    R13 = r13;
    /// No part in calls.
    R14 = r14;
    /// No part in calls.
    R15 = r15;
    /// The number of a system call.
    OrigAx = orig_ax;
    /// The next instruction.
    Ip = ip;
    /// Flags.
    Flags = flags;
    /// The stack.
    Sp = sp;
}

impl Register {
    /// Where the number of the call is.
    pub const NUMBER: Self = Self::OrigAx;

    /// Where the stack is.
    pub const STACK: Self = Self::Sp;

    /// Where its result is, and that of a function.
    pub const RESULT: Self = Self::Ax;

    /// Where a function of the kernel gets its first arguments.
    pub const FUNCTION_ARGUMENTS: [Self; 6] =
        [Self::Di, Self::Si, Self::Dx, Self::Cx, Self::R8, Self::R9];

    /// Where a program passes its arguments.
    pub const ARGUMENTS: [Self; 6] = [Self::Di, Self::Si, Self::Dx, Self::R10, Self::R8, Self::R9];

    /// Where a 32-bit program passes its arguments.
    pub const COMPAT_ARGUMENTS: [Self; 6] =
        [Self::Bx, Self::Cx, Self::Dx, Self::Si, Self::Di, Self::Bp];
}
