// SPDX-License-Identifier: GPL-2.0

//! Contexts that require a call of the kernel: counters of perf, and call stacks.
//!
//! A call costs hundreds or thousands of instructions, and the kernel's functions may be traced. So the call is
//! made after the buffer was entered, where a recursion is detected. The code is separate, so that other
//! contexts do not pay for it.

use super::counters::{CounterKind, MAX_COUNTERS};
use super::user_stack::UserStacksUse;
use super::{stack, Moment};
use crate::record::memory::Space;
use crate::sys::counter::Counter;
use crate::sys::stack::CallStack;
use crate::sys::user_stack::UserStack;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The contexts of this kind that a channel records.
pub(super) struct CalledContexts {
    /// At most [`MAX_COUNTERS`], in the order of the record.
    pub(super) counters: KVec<(CounterKind, Arc<Counter>)>,
    pub(super) kernel_stack: bool,
    pub(super) user_stack: Option<UserStacksUse>,
}

impl CalledContexts {
    /// No counter and no stack.
    pub(super) const NONE: Self = Self {
        counters: KVec::new(),
        kernel_stack: false,
        user_stack: None,
    };

    /// Whether there is any.
    #[inline(always)]
    pub(super) fn any(&self) -> bool {
        self.kernel_stack || self.user_stack.is_some() || !self.counters.is_empty()
    }
}

/// The values that are recorded with an event. Large: nearly two KiB.
pub(crate) struct KernelCalls<'a> {
    calls: &'a CalledContexts,
    counts: [u64; MAX_COUNTERS],
    kernel_stack: CallStack,
    user_stack: UserStack,
}

impl<'a> KernelCalls<'a> {
    /// The values, before the calls.
    #[inline(always)]
    pub(super) const fn new(calls: &'a CalledContexts) -> Self {
        Self {
            calls,
            counts: [0; MAX_COUNTERS],
            kernel_stack: CallStack::new(),
            user_stack: UserStack::new(),
        }
    }

    /// Makes the calls. Any context, NMI included. The kernel's functions may be traced.
    #[inline(always)]
    pub(crate) fn call(&mut self, now: Moment<'_>) {
        self.call_for(self.calls.kernel_stack, now);
    }

    /// As [`call`](Self::call), and always takes the kernel's stack.
    #[inline(always)]
    pub(crate) fn call_with_kernel_stack(&mut self, now: Moment<'_>) {
        self.call_for(true, now);
    }

    #[inline(always)]
    fn call_for(&mut self, kernel_stack: bool, now: Moment<'_>) {
        for (count, (_, counter)) in self.counts.iter_mut().zip(&self.calls.counters) {
            *count = counter.now(now.guard);
        }
        if kernel_stack {
            self.kernel_stack.take_kernel(now.stack, now.guard);
        }
        if let Some(stacks) = &self.calls.user_stack {
            stacks.take(&mut self.user_stack, now.guard);
        }
    }

    /// The kernel's stack; empty if it was not taken.
    #[inline(always)]
    pub(crate) fn kernel_stack(&self) -> &CallStack {
        &self.kernel_stack
    }

    #[inline(always)]
    fn counts(&self) -> &[u64] {
        self.counts
            .get(..self.calls.counters.len())
            .unwrap_or_default()
    }

    /// The stacks that are recorded.
    #[inline(always)]
    fn stacks(&self) -> (Option<&[u64]>, Option<&UserStack>) {
        let kernel = self.calls.kernel_stack;
        let kernel = kernel.then(|| self.kernel_stack.addresses());
        let user = self.calls.user_stack.as_ref().map(|_| &self.user_stack);
        (kernel, user)
    }

    /// Size in a record, in bytes.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        let (kernel, user) = self.stacks();
        size_of_val(self.counts())
            .wrapping_add(kernel.map_or(0, stack::len))
            .wrapping_add(user.map_or(0, stack::user_len))
    }

    /// Writes the values.
    #[inline(always)]
    pub(crate) fn write(&self, space: &mut Space<'_>) {
        for count in self.counts() {
            space.put(*count);
        }
        let (kernel, user) = self.stacks();
        if let Some(addresses) = kernel {
            stack::write(addresses, space);
        }
        if let Some(stack) = user {
            stack::write_user(stack, space);
        }
    }
}
