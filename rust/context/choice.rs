// SPDX-License-Identifier: GPL-2.0

//! Values that a channel can record with its events: contexts, and values that are not single numbers.

use super::{stack, Context, CounterKind};
use crate::abi::schema::{Field, Integer};

/// A value to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContextChoice {
    /// A context.
    Context(Context),
    /// A counter of perf.
    Counter(CounterKind),
    /// The kernel's call stack.
    KernelStack,
    /// The user's call stack.
    UserStack,
}

/// LTTng's names: a number and as many addresses.
const KERNEL_STACK: [Field<'static>; 2] = stack::fields(
    "_callstack_kernel_length",
    "callstack_kernel",
    Integer::address(),
);
const USER_STACK: [Field<'static>; 2] =
    stack::fields("_callstack_user_length", "callstack_user", Integer::hex(64));
/// The tracer's own: why the user's stack ends.
const USER_STACK_END: Field<'static> = stack::end("callstack_user_end");

impl ContextChoice {
    /// All values.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let contexts = Context::ALL.iter().copied().map(Self::Context);
        let counters = CounterKind::all().map(Self::Counter);
        let stacks = [Self::KernelStack, Self::UserStack];
        Iterator::chain(contexts, counters).chain(stacks)
    }

    /// The value with this name: the user's name, or that in traces.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        match name {
            "callstack-kernel" | "callstack_kernel" => Some(Self::KernelStack),
            "callstack-user" | "callstack_user" => Some(Self::UserStack),
            _ => Context::by_name(name)
                .map(Self::Context)
                .or_else(|| CounterKind::by_name(name).map(Self::Counter)),
        }
    }

    /// The name for users.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Context(context) => context.name(),
            Self::Counter(counter) => counter.name(),
            Self::KernelStack => "callstack-kernel",
            Self::UserStack => "callstack-user",
        }
    }

    /// The value's fields.
    pub(super) fn fields(self) -> impl Iterator<Item = Field<'static>> + Clone {
        let (two, one) = match self {
            Self::Context(context) => (None, Some(context.field())),
            Self::Counter(counter) => (None, counter.field()),
            Self::KernelStack => (Some(KERNEL_STACK), None),
            Self::UserStack => (Some(USER_STACK), Some(USER_STACK_END)),
        };
        Iterator::chain(two.into_iter().flatten(), one)
    }
}
