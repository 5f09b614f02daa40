// SPDX-License-Identifier: GPL-2.0

//! Call stacks of events: contexts, and `rtrace_stack`, the kernel's stack that a trigger records.

use ctf::{Event, Metadata, StreamClass, Value};

/// The kind of stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The kernel's stack.
    Kernel,
    /// The program's stack.
    User,
}

/// A frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The address at which its code continues.
    pub address: u64,
    /// Whether it called the previous frame. Its code then continues after the call.
    pub is_caller: bool,
}

impl Frame {
    /// An address inside the running code. After a call at the end of a function the frame's address belongs to the
    /// next function.
    pub fn code(self) -> u64 {
        self.address.saturating_sub(self.is_caller.into())
    }
}

/// The fields and contexts with the stacks of a channel's events.
#[derive(Clone, Copy, Debug)]
pub struct Stacks {
    kernel: Option<usize>,
    user: Option<usize>,
}

impl Side {
    /// The kind of code at an address.
    pub fn of(address: u64) -> Self {
        if address >> 63 == 0 {
            Self::User
        } else {
            Self::Kernel
        }
    }
}

impl Stacks {
    /// The event whose field `stack` is a stack of the kernel.
    pub const EVENT: &'static str = "rtrace_stack";

    /// The stacks of a channel.
    pub fn of(class: &StreamClass) -> Self {
        Self {
            kernel: class.context("callstack_kernel"),
            user: class.context("callstack_user"),
        }
    }

    /// The stacks of each channel of a trace. [`None`]: no event of it has a stack.
    pub fn of_all(metadata: &Metadata) -> Option<Vec<Self>> {
        let mut layouts = metadata.streams.iter().flat_map(|s| s.events.values());
        let has_event = layouts.any(|layout| layout.name == Self::EVENT);
        let all: Vec<_> = metadata.streams.iter().map(Self::of).collect();
        (has_event || all.iter().any(Self::is_some)).then_some(all)
    }

    /// Whether its events have stacks.
    pub fn is_some(&self) -> bool {
        self.kernel.is_some() || self.user.is_some()
    }

    /// An event's stack, the innermost frame first.
    pub fn frames(&self, event: &Event<'_>, side: Side) -> impl DoubleEndedIterator<Item = Frame> {
        let context = match side {
            Side::Kernel => self.kernel,
            Side::User => self.user,
        };
        let own = || match (side, event.layout.name.as_str()) {
            (Side::Kernel, Self::EVENT) => event.value(event.layout.field("stack")?),
            _ => None,
        };
        let value = context
            .and_then(|context| event.context(context))
            .or_else(own);
        let addresses: Vec<u64> = match value {
            Some(Value::Integers(integers)) => integers
                .filter_map(|value| match value {
                    Value::Unsigned(address) => Some(address),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        let frame = |(place, address)| Frame {
            address,
            is_caller: place > 0,
        };
        let frames: Vec<_> = addresses.into_iter().enumerate().map(frame).collect();
        frames.into_iter()
    }
}
