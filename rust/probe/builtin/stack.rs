// SPDX-License-Identifier: GPL-2.0

//! Call stacks of the kernel that triggers record as events.

use super::{Builtin, BuiltinProbe};
use crate::abi::schema::{Field, Integer};
use crate::context::{stack, ContextSet, KernelCalls, Moment};
use crate::record::memory::{Space, Tail};

/// The event's fields.
pub(crate) const FIELDS: [Field<'static>; 2] =
    stack::fields("_stack_length", "stack", Integer::address());

impl BuiltinProbe {
    /// Records the kernel's call stack of this moment. The trace's metadata must describe the event. Any
    /// context, NMI included.
    #[inline(never)]
    pub(crate) fn record_stack(&self, now: Moment<'_>) {
        let contexts = &*self.contexts;
        let called = &mut contexts.called();
        let least = contexts.len().wrapping_add(stack::LEAST);
        // Inside the gate, as for contexts.
        self.destination(Builtin::Stack)
            .record_made(least, move || {
                called.call_with_kernel_stack(now);
                StackRecord {
                    contexts,
                    now,
                    called,
                }
            });
    }
}

/// The channel's contexts, followed by the kernel's stack, which may be one of them.
struct StackRecord<'a> {
    contexts: &'a ContextSet,
    /// The moment of the recording. The guard of the buffer's gate comes later.
    now: Moment<'a>,
    called: &'a KernelCalls<'a>,
}

impl Tail for StackRecord<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.contexts
            .len()
            .wrapping_add(self.called.len())
            .wrapping_add(stack::len(self.called.kernel_stack().addresses()))
    }

    #[inline(always)]
    fn write(&self, space: Space<'_>) {
        let mut space = self.contexts.write(space, &self.now.inside());
        self.called.write(&mut space);
        stack::write(self.called.kernel_stack().addresses(), &mut space);
    }
}
