// SPDX-License-Identifier: GPL-2.0

//! Call stacks as contexts.
//!
//! To take one the kernel's functions are called, which a tracer must not do lightly: they cost
//! thousands of instructions, and what they do may be traced. So it is done once the way into the
//! buffer is found, where a recursion finds that it is one; and apart, so that others do not pay.

use crate::arch::preempt::NoPreempt;
use crate::record::memory::Space;
use crate::sys::stack::CallStack;

/// Which stacks are recorded.
#[derive(Clone, Copy, Default)]
pub(super) struct StackChoice {
    pub(super) kernel: bool,
    pub(super) user: bool,
}

/// The stacks that are recorded with an event. Large: over a KiB.
pub(crate) struct Stacks {
    choice: StackChoice,
    kernel: CallStack,
    user: CallStack,
}

impl Stacks {
    /// Those that are chosen, not taken yet.
    #[inline(always)]
    pub(super) const fn new(choice: StackChoice) -> Self {
        Self {
            choice,
            kernel: CallStack::new(),
            user: CallStack::new(),
        }
    }

    /// Takes them. Any context, NMI included; the kernel is called, and what it does may be traced.
    #[inline(always)]
    pub(crate) fn take(&mut self, guard: &NoPreempt) {
        if self.choice.kernel {
            self.kernel.take_kernel(guard);
        }
        if self.choice.user {
            self.user.take_user(guard);
        }
    }

    #[inline(always)]
    fn chosen(&self) -> [Option<&CallStack>; 2] {
        let StackChoice { kernel, user } = self.choice;
        [kernel.then_some(&self.kernel), user.then_some(&self.user)]
    }

    /// Bytes in a record.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.chosen().iter().flatten().fold(0, |len, stack| {
            len.wrapping_add(size_of::<u32>())
                .wrapping_add(stack.bytes().len())
        })
    }

    /// Lays them down.
    #[inline(always)]
    pub(crate) fn write(&self, space: &mut Space<'_>) {
        for stack in self.chosen().into_iter().flatten() {
            space.put(stack.addresses().len() as u32);
            space.put_bytes(stack.bytes());
        }
    }
}
