// SPDX-License-Identifier: GPL-2.0

//! Offsets of the registers in a `struct pt_regs`, and the registers of calls.

use core::arch::asm;
use core::mem::offset_of;
use kernel::bindings;

/// Offset of a field, in words.
macro_rules! at {
    ($($field:tt)+) => {{
        assert!(offset_of!(bindings::pt_regs, $($field)+) % 8 == 0);
        (offset_of!(bindings::pt_regs, $($field)+) / 8) as u8
    }};
}

macro_rules! registers {
    ($($name:ident = $text:literal at $place:expr;)*) => {
        /// A register in a `struct pt_regs`; the value is its offset, in words.
        #[allow(missing_docs)]
        #[derive(Clone, Copy)]
        #[repr(u8)]
        pub enum Register {
            $($name = $place,)*
        }

        impl Register {
            /// Returns the register that has this name in the kernel.
            pub fn by_name(name: &str) -> Option<Self> {
                match name {
                    $($text => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

// x0 to x30 are an array at the beginning.
const _: () = assert!(offset_of!(bindings::user_pt_regs, regs) == 0);
const SP: u8 = (offset_of!(bindings::user_pt_regs, sp) / 8) as u8;
const PC: u8 = (offset_of!(bindings::user_pt_regs, pc) / 8) as u8;
const PSTATE: u8 = (offset_of!(bindings::user_pt_regs, pstate) / 8) as u8;

registers! {
    X0 = "x0" at 0;
    X1 = "x1" at 1;
    X2 = "x2" at 2;
    X3 = "x3" at 3;
    X4 = "x4" at 4;
    X5 = "x5" at 5;
    X6 = "x6" at 6;
    X7 = "x7" at 7;
    X8 = "x8" at 8;
    X9 = "x9" at 9;
    X10 = "x10" at 10;
    X11 = "x11" at 11;
    X12 = "x12" at 12;
    X13 = "x13" at 13;
    X14 = "x14" at 14;
    X15 = "x15" at 15;
    X16 = "x16" at 16;
    X17 = "x17" at 17;
    X18 = "x18" at 18;
    X19 = "x19" at 19;
    X20 = "x20" at 20;
    X21 = "x21" at 21;
    X22 = "x22" at 22;
    X23 = "x23" at 23;
    X24 = "x24" at 24;
    X25 = "x25" at 25;
    X26 = "x26" at 26;
    X27 = "x27" at 27;
    X28 = "x28" at 28;
    X29 = "x29" at 29;
    X30 = "x30" at 30;
    Sp = "sp" at SP;
    Ip = "pc" at PC;
    Flags = "pstate" at PSTATE;
    OrigX0 = "orig_x0" at at!(orig_x0);
    SyscallNo = "syscallno" at at!(syscallno);
}

impl Register {
    /// Register with the number of a system call, in its lower half.
    pub const NUMBER: Self = Self::SyscallNo;

    /// Registers in which a 64-bit and a 32-bit program gives the number of a call. An `execve` clears them, but not
    /// [`Self::NUMBER`], which keeps the number that the former program gave (`start_thread_common()`).
    pub const CLEARED_BY_EXEC: Option<[Self; 2]> = Some([Self::X8, Self::X7]);

    /// Register with the stack pointer.
    pub const STACK: Self = Self::Sp;

    /// Register with the result of a system call or function.
    pub const RESULT: Self = Self::X0;

    /// Registers with the first arguments of a function of the kernel.
    pub const FUNCTION_ARGUMENTS: [Self; 6] =
        [Self::X0, Self::X1, Self::X2, Self::X3, Self::X4, Self::X5];

    /// Registers with the arguments of a system call. (The result replaces the first one in `x0`.)
    pub const ARGUMENTS: [Self; 6] = [
        Self::OrigX0,
        Self::X1,
        Self::X2,
        Self::X3,
        Self::X4,
        Self::X5,
    ];

    /// Registers with the arguments of a 32-bit program's system call.
    pub const COMPAT_ARGUMENTS: [Self; 6] = Self::ARGUMENTS;

    /// Low bits of the register that have the result of a 32-bit program's system call, with its sign. The kernel
    /// clears the others (`syscall_set_return_value()`).
    pub const COMPAT_RESULT_BITS: u8 = 32;
}

/// The state of the processor at an instruction of a function, from which the function can be unwound
/// until it returns.
#[derive(Clone, Copy)]
pub struct Frame {
    /// Address of the instruction.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
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
                "adr {ip}, .",
                "mov {sp}, sp",
                "mov {bp}, x29",
                ip = out(reg) ip,
                sp = out(reg) sp,
                bp = out(reg) bp,
                options(nomem, nostack, preserves_flags),
            );
        }
        Self { ip, sp, bp }
    }
}
