// SPDX-License-Identifier: GPL-2.0

//! Reasons for the end of a call stack.

/// Bit that a trace adds to a [`StackEnd`]: frame pointers led to an address of the stack, so the address is a guess.
pub const GUESSED: u8 = 16;

/// Reason for the end of a user stack. The number is part of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum StackEnd {
    /// The last function has no caller.
    Whole = 0,
    /// More functions than are recorded.
    Limit = 1,
    /// A word of the stack could not be read.
    Unreadable = 2,
    /// The file of the last function has no table yet.
    NoTable = 3,
    /// The last function has no rule, and frame pointers lead no further.
    NoRules = 4,
    /// The last address is not in an executable mapping.
    NoMapping = 5,
    /// The rule of the last function is not supported, or leads to no frame above it.
    UnsupportedRule = 6,
    /// The mappings of the process were changing.
    MappingsChanging = 7,
}

impl StackEnd {
    /// All reasons, by number.
    pub const ALL: [Self; 8] = [
        Self::Whole,
        Self::Limit,
        Self::Unreadable,
        Self::NoTable,
        Self::NoRules,
        Self::NoMapping,
        Self::UnsupportedRule,
        Self::MappingsChanging,
    ];

    /// The reason in a byte of a trace, and whether an address of the stack is a guess. [`None`]: a newer module has
    /// written the byte.
    #[inline]
    pub fn from_raw(raw: u8) -> Option<(Self, bool)> {
        let end = Self::ALL.get(usize::from(raw & !GUESSED))?;
        Some((*end, raw & GUESSED != 0))
    }

    /// The byte of a trace.
    #[inline]
    pub const fn to_raw(self, is_guessed: bool) -> u8 {
        self as u8 | if is_guessed { GUESSED } else { 0 }
    }

    /// The reason as a text for viewers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Limit => "cut: more functions than are recorded",
            Self::Unreadable => "cut: stack not readable",
            Self::NoTable => "cut: no table yet",
            Self::NoRules => "cut: code without rules",
            Self::NoMapping => "cut: address in no code",
            Self::UnsupportedRule => "cut: rule not supported",
            Self::MappingsChanging => "cut: mappings were changing",
        }
    }
}
