// SPDX-License-Identifier: GPL-2.0

//! The registers that user space came with to a system call, or code of the kernel where it was reached.

use crate::arch::registers::Register;
use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
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
    pub(crate) fn of_call<const N: usize>(arguments: [u64; N]) -> Self {
        let registers = Self(Opaque::new(bindings::pt_regs::default()));
        for (register, argument) in Register::FUNCTION_ARGUMENTS.into_iter().zip(arguments) {
            // SAFETY: Registers that nobody else has; the place is that of a field.
            unsafe {
                let words = registers.0.get().cast::<u64>();
                words.add(register as usize).write(argument);
            }
        }
        registers
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
