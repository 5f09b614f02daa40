// SPDX-License-Identifier: GPL-2.0

//! Call stacks of events: contexts, and `rtrace_stack`, the kernel's stack that a trigger records.

use ctf::{Event, Metadata, StreamClass, Value};
use rtrace_unwind::end::StackEnd;
use store::maps::UserStack;

/// The first address after user space on any processor: x86-64 with five levels of page tables has most.
const USER_SPACE: u64 = 1 << 56;

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
    /// The frames of a stack in a map, the innermost first.
    pub fn of_user(stack: &UserStack) -> impl Iterator<Item = Self> + '_ {
        let addresses = stack.addresses.iter().enumerate();
        addresses.map(|(place, address)| Self {
            address: *address,
            is_caller: place > 0,
        })
    }

    /// An address inside the running code. After a call at the end of a function the frame's address belongs to the
    /// next function.
    pub fn code(self) -> u64 {
        self.address.saturating_sub(self.is_caller.into())
    }
}

/// The end of a user stack, as its trace records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    /// The reason. [`None`]: a newer module has written a number that is not known here.
    reason: Option<StackEnd>,
    /// Whether frame pointers led to an address of the stack.
    pub is_guessed: bool,
}

/// The fields and contexts with the stacks of a channel's events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stacks {
    kernel: Option<usize>,
    user: Option<usize>,
    /// The end of the user stack. Older modules do not record it.
    end: Option<usize>,
}

impl End {
    /// The end with this number in a trace.
    pub fn of(raw: u64) -> Self {
        match u8::try_from(raw).ok().and_then(StackEnd::from_raw) {
            Some((reason, is_guessed)) => Self {
                reason: Some(reason),
                is_guessed,
            },
            None => Self {
                reason: None,
                is_guessed: false,
            },
        }
    }

    /// Whether the stack reaches the first function of its thread.
    pub fn is_whole(self) -> bool {
        self.reason == Some(StackEnd::Whole)
    }

    /// The reason as a text.
    pub fn reason(self) -> &'static str {
        self.reason.map_or("cut: unknown reason", StackEnd::name)
    }

    /// The text that stands for the missing callers of the stack, in the place of its outermost frame. [`None`]: no
    /// caller is missing.
    pub fn frame(self) -> Option<String> {
        let guessed = if self.is_guessed { ", guessed" } else { "" };
        (!self.is_whole()).then(|| format!("[{}{guessed}]", self.reason()))
    }
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

    /// Whether code can be at an address. Tracers end a stack with 0 or with the largest number.
    fn has(self, address: u64) -> bool {
        match self {
            Self::Kernel => address != 0 && address != u64::MAX,
            Self::User => (1..USER_SPACE).contains(&address),
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
            end: class.context("callstack_user_end"),
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

    /// Whether its events have stacks of this kind.
    pub fn has(&self, side: Side) -> bool {
        match side {
            Side::Kernel => self.kernel.is_some(),
            Side::User => self.user.is_some(),
        }
    }

    /// The number in the trace of the reason why an event's user stack ends.
    pub fn raw_end(&self, event: &Event<'_>) -> Option<u8> {
        match event.context(self.end?)? {
            Value::Unsigned(raw) => u8::try_from(raw).ok(),
            _ => None,
        }
    }

    /// The end of an event's user stack. [`None`]: the event has none, as in a thread of the kernel, or the trace does
    /// not say how it ended.
    pub fn end(&self, event: &Event<'_>) -> Option<End> {
        let Some(Value::Unsigned(raw)) = event.context(self.end?) else {
            return None;
        };
        let end = End::of(raw);
        let is_empty = || match self.user.and_then(|user| event.context(user)) {
            Some(Value::Integers(mut integers)) => integers.next().is_none(),
            _ => true,
        };
        (!end.is_whole() || !is_empty()).then_some(end)
    }

    /// The text in the place of the outermost frame of an event's user stack, if callers are missing there.
    pub fn cut(&self, event: &Event<'_>) -> Option<String> {
        self.end(event)?.frame()
    }

    /// An event's stack, the innermost frame first. Addresses that no code can have are left out.
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
        let frames = addresses.into_iter().enumerate().map(frame);
        let frames: Vec<_> = frames.filter(|frame| side.has(frame.address)).collect();
        frames.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_stack_says_why_and_whether_it_is_guessed() {
        let texts = [0, 1, 2, 3, 4, 5, 6, 7, 16, 19].map(|raw| End::of(raw).frame());
        let texts = texts.each_ref().map(Option::as_deref);
        assert_eq!(
            texts,
            [
                None,
                Some("[cut: more functions than are recorded]"),
                Some("[cut: stack not readable]"),
                Some("[cut: no table yet]"),
                Some("[cut: code without rules]"),
                Some("[cut: address in no code]"),
                Some("[cut: rule not supported]"),
                Some("[cut: mappings were changing]"),
                None,
                Some("[cut: no table yet, guessed]"),
            ]
        );
        assert!(End::of(16).is_whole() && End::of(16).is_guessed && !End::of(0).is_guessed);
    }

    #[test]
    fn an_unknown_number_is_an_unknown_reason() {
        for raw in [8, 15, 24, 32, 255, 256, u64::MAX] {
            assert_eq!(
                End::of(raw).frame().as_deref(),
                Some("[cut: unknown reason]"),
                "{raw}"
            );
        }
    }

    #[test]
    fn no_code_is_at_an_impossible_address() {
        for (address, user, kernel) in [
            (0, false, false),
            (0x1000, true, true),
            (0x7fff_ffff_f000, true, true),
            (0x00ff_ffff_ffff_f000, true, true),
            (1 << 56, false, true),
            (0xffff_ffff_8100_0000, false, true),
            (u64::MAX, false, false),
        ] {
            let has = [Side::User.has(address), Side::Kernel.has(address)];
            assert_eq!(has, [user, kernel], "{address:#x}");
        }
    }
}
