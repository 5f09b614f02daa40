// SPDX-License-Identifier: GPL-2.0

//! Offsets of the registers in a `struct pt_regs`, and the registers of calls.

use core::arch::asm;
use core::mem::offset_of;
use kernel::bindings;

macro_rules! registers {
    ($($(#[$doc:meta])* $name:ident = $field:ident;)*) => {
        /// A register in a `struct pt_regs`; the value is its offset, in words.
        #[derive(Clone, Copy)]
        #[repr(u8)]
        pub enum Register {
            $($(#[$doc])* $name = {
                assert!(offset_of!(bindings::pt_regs, $field) % 8 == 0);
                (offset_of!(bindings::pt_regs, $field) / 8) as u8
            },)*
        }

        impl Register {
            /// Returns the register that has this name in the kernel.
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
    /// An argument of a 32-bit program, and the fourth argument of a function.
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
    /// Not used in calls.
    R11 = r11;
    /// Not used in calls.
    R12 = r12;
    /// Not used in calls.
    R13 = r13;
    /// Not used in calls.
    R14 = r14;
    /// Not used in calls.
    R15 = r15;
    /// The number of a system call.
    OrigAx = orig_ax;
    /// The address of the next instruction.
    Ip = ip;
    /// Flags.
    Flags = flags;
    /// The stack pointer.
    Sp = sp;
}

impl Register {
    /// Register with the number of a system call.
    pub const NUMBER: Self = Self::OrigAx;

    /// None: the number at the exit of an `execve` is the one of the new program's kind.
    pub const CLEARED_BY_EXEC: Option<[Self; 2]> = None;

    /// Register with the stack pointer.
    pub const STACK: Self = Self::Sp;

    /// Register with the result of a system call or function.
    pub const RESULT: Self = Self::Ax;

    /// Registers with the first arguments of a function of the kernel.
    pub const FUNCTION_ARGUMENTS: [Self; 6] =
        [Self::Di, Self::Si, Self::Dx, Self::Cx, Self::R8, Self::R9];

    /// Registers with the arguments of a system call.
    pub const ARGUMENTS: [Self; 6] = [Self::Di, Self::Si, Self::Dx, Self::R10, Self::R8, Self::R9];

    /// Registers with the arguments of a 32-bit program's system call.
    pub const COMPAT_ARGUMENTS: [Self; 6] =
        [Self::Bx, Self::Cx, Self::Dx, Self::Si, Self::Di, Self::Bp];

    /// Low bits of the register that have the result of a 32-bit program's system call, with its sign.
    pub const COMPAT_RESULT_BITS: u8 = 64;
}

/// The state of the processor at an instruction of a function, from which the function can be unwound
/// until it returns.
#[derive(Clone, Copy)]
pub struct Frame {
    /// Address of the instruction.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer, or the value that the function keeps for its caller.
    pub bp: u64,
}

impl Frame {
    /// The state of the function that contains this.
    #[inline(always)]
    pub fn here() -> Self {
        let (ip, sp, bp);
        // SAFETY: Reads three registers.
        unsafe {
            asm!(
                "lea {ip}, [rip]",
                "mov {sp}, rsp",
                "mov {bp}, rbp",
                ip = out(reg) ip,
                sp = out(reg) sp,
                bp = out(reg) bp,
                options(nomem, nostack, preserves_flags),
            );
        }
        Self { ip, sp, bp }
    }
}
