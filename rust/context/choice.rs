// SPDX-License-Identifier: GPL-2.0

//! What a channel may record beside its events: contexts, and what is no single value.

use super::Context;
use crate::abi::schema::{Field, FieldType, Integer};

/// One thing to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// A context.
    Context(Context),
    /// The kernel's call stack.
    KernelStack,
    /// The user's call stack.
    UserStack,
}

/// LTTng's names: a number and as many addresses.
const KERNEL_STACK: [Field<'static>; 2] = stack(
    "_callstack_kernel_length",
    "callstack_kernel",
    Integer::address(),
);
const USER_STACK: [Field<'static>; 2] =
    stack("_callstack_user_length", "callstack_user", Integer::hex(64));

const fn stack(length: &'static str, name: &'static str, address: Integer) -> [Field<'static>; 2] {
    [
        Field {
            name: length,
            ty: FieldType::unsigned(32),
        },
        Field {
            name,
            ty: FieldType::Sequence(address, length),
        },
    ]
}

impl Choice {
    /// What is called so, by users or in traces.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        match name {
            "callstack-kernel" | "callstack_kernel" => Some(Self::KernelStack),
            "callstack-user" | "callstack_user" => Some(Self::UserStack),
            _ => Context::by_name(name).map(Self::Context),
        }
    }

    /// What users call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Context(context) => context.name(),
            Self::KernelStack => "callstack-kernel",
            Self::UserStack => "callstack-user",
        }
    }

    /// It, as fields.
    pub(super) fn fields(self) -> impl Iterator<Item = Field<'static>> + Clone {
        let (one, two) = match self {
            Self::Context(context) => (Some(context.field()), None),
            Self::KernelStack => (None, Some(KERNEL_STACK)),
            Self::UserStack => (None, Some(USER_STACK)),
        };
        Iterator::chain(one.into_iter(), two.into_iter().flatten())
    }
}
