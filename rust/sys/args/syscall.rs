// SPDX-License-Identifier: GPL-2.0

//! Registers: of user space at a system call, or of kernel code at a probe.

use crate::arch::registers::Register;
use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
use core::mem::MaybeUninit;
use kernel::types::Opaque;

/// A `struct pt_regs`.
#[repr(transparent)]
pub(crate) struct Registers(Opaque<bindings::pt_regs>);

// SAFETY: The pointer is to live registers. No tracepoint passes NULL for it.
unsafe impl Arg for &Registers {
    type Raw = *mut bindings::pt_regs;
}

impl Registers {
    /// Registers of a function call with these arguments, as far as registers carry arguments. All other
    /// registers are 0.
    #[inline(always)]
    pub(crate) fn of_call<const N: usize>(
        room: &mut MaybeUninit<Self>,
        arguments: [u64; N],
    ) -> &Self {
        const WORDS: usize = size_of::<bindings::pt_regs>() / 8;
        let words = room.as_mut_ptr().cast::<u64>();
        for word in 0..WORDS {
            // Word by word and volatile: memset() and memcpy() would cost more than the event.
            // SAFETY: The word is within the borrowed room.
            unsafe { words.add(word).write_volatile(0) };
        }
        for (register, argument) in Register::FUNCTION_ARGUMENTS.into_iter().zip(arguments) {
            // SAFETY: As above. The word is that of a field.
            unsafe { words.add(register as usize).write(argument) };
        }
        // SAFETY: Each word was written, and every value is valid.
        unsafe { room.assume_init_ref() }
    }

    /// Value of `register`.
    #[inline(always)]
    pub(crate) fn get(&self, register: Register) -> u64 {
        // SAFETY: The registers are live, and a probe does not change them. The word is that of a field.
        unsafe { self.0.get().cast::<u64>().add(register as usize).read() }
    }

    /// Number of the system call; negative outside of system calls.
    #[inline(always)]
    pub(crate) fn number(&self) -> i32 {
        self.get(Register::NUMBER) as i32
    }
}
