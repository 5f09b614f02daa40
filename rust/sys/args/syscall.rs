// SPDX-License-Identifier: GPL-2.0

//! The registers that user space came with to a system call, or code of the kernel where it was reached.

use crate::arch::registers::Register;
use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
use core::mem::MaybeUninit;
use kernel::types::Opaque;

/// A `struct pt_regs`.
#[repr(transparent)]
pub(crate) struct Registers(Opaque<bindings::pt_regs>);

// SAFETY: A pointer to live registers; tracepoints that pass one pass no NULL.
unsafe impl Arg for &Registers {
    type Raw = *mut bindings::pt_regs;
}

impl Registers {
    /// Those of a call of a function with these arguments, as far as they are in registers; all others are 0.
    #[inline(always)]
    pub(crate) fn of_call<const N: usize>(
        room: &mut MaybeUninit<Self>,
        arguments: [u64; N],
    ) -> &Self {
        const WORDS: usize = size_of::<bindings::pt_regs>() / 8;
        let words = room.as_mut_ptr().cast::<u64>();
        for word in 0..WORDS {
            // One by one, and where they stay: memset() and memcpy() would cost more than the event.
            // SAFETY: The place is within what is borrowed.
            unsafe { words.add(word).write_volatile(0) };
        }
        for (register, argument) in Register::FUNCTION_ARGUMENTS.into_iter().zip(arguments) {
            // SAFETY: As above: it is the place of a field.
            unsafe { words.add(register as usize).write(argument) };
        }
        // SAFETY: Each word was written; any value will do.
        unsafe { room.assume_init_ref() }
    }

    /// What is in `register`.
    #[inline(always)]
    pub(crate) fn get(&self, register: Register) -> u64 {
        // SAFETY: Live registers, which a probe does not change; the place is that of a field.
        unsafe { self.0.get().cast::<u64>().add(register as usize).read() }
    }

    /// The number of the call; negative if it is none.
    #[inline(always)]
    pub(crate) fn number(&self) -> i32 {
        self.get(Register::NUMBER) as i32
    }
}
