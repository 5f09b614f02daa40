// SPDX-License-Identifier: GPL-2.0

//! Lists of CPUs, in the syntax of the kernel's `cpulist_parse()`.

use super::caret;
use super::rest::Rest;
use core::fmt;

/// A list of CPUs.
///
/// Commas or white space separate the items: a CPU, a range `0-3`, or a pattern `0-15:2/4`, which
/// is the first two of each four CPUs of the range. `N` is the last CPU, `all` means all CPUs.
#[derive(Clone, Debug)]
pub struct CpuList<'a> {
    rest: Rest<'a>,
    cpus: u32,
}

/// An item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    first: u32,
    last: u32,
    /// Of each `group` CPUs, counted from `first`, this many belong to the item.
    of_group: u32,
    group: u32,
}

/// An error in a list.
pub type Error = caret::Error<CpuListReason>;

/// Description of an error in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuListReason {
    /// The text is no list.
    NoList,
    /// The machine has no such CPU.
    NoCpu,
}

impl fmt::Display for CpuListReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoList => "this is not a list of CPUs (0-3,5)",
            Self::NoCpu => "this machine has no such CPU",
        })
    }
}

impl Item {
    /// Returns the CPUs of the item, in order.
    pub fn cpus(self) -> impl Iterator<Item = u32> {
        (self.first..=self.last).filter(move |cpu| {
            let from_first = cpu.wrapping_sub(self.first);
            from_first.checked_rem(self.group).unwrap_or(0) < self.of_group
        })
    }
}

impl<'a> CpuList<'a> {
    /// Makes an iterator over the list in `text`, for a machine with CPUs 0 to `cpus` - 1. It
    /// checks one item after the other, and ends at the first error.
    pub fn new(text: &'a str, cpus: u32) -> Self {
        Self {
            rest: Rest::new(text),
            cpus,
        }
    }

    /// Consumes `word` if it is next, in upper or lower case.
    fn take(&mut self, word: &str) -> bool {
        let next = self.rest.left().get(..word.len());
        let is_next = next.is_some_and(|next| next.eq_ignore_ascii_case(word));
        if is_next {
            self.rest.advance(word.len());
        }
        is_next
    }

    fn number(&mut self) -> Result<u32, Error> {
        let at = self.rest.at;
        if self.rest.take("N") {
            return Ok(self.cpus.saturating_sub(1));
        }
        let digits = self.rest.take_while(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Err(error(at, CpuListReason::NoList));
        }
        digits.parse().map_err(|_| error(at, CpuListReason::NoCpu))
    }

    fn item(&mut self) -> Result<Item, Error> {
        let at = self.rest.at;
        let mut is_range = true;
        let (first, last) = if self.take("all") {
            (0, self.cpus.saturating_sub(1))
        } else {
            let first = self.number()?;
            is_range = self.take("-");
            (first, if is_range { self.number()? } else { first })
        };
        let (mut of_group, mut group) = (1, 1);
        if is_range && self.take(":") {
            of_group = self.number()?;
            let slash = self.rest.at;
            if !self.take("/") {
                return Err(error(slash, CpuListReason::NoList));
            }
            group = self.number()?;
        }
        if !(self.rest.left().is_empty() || self.rest.left().starts_with(is_separator)) {
            return Err(error(self.rest.at, CpuListReason::NoList));
        }
        if first > last || group == 0 || of_group > group {
            return Err(error(at, CpuListReason::NoList));
        }
        if last >= self.cpus {
            return Err(error(at, CpuListReason::NoCpu));
        }
        Ok(Item {
            first,
            last,
            of_group,
            group,
        })
    }
}

fn error(at: usize, reason: CpuListReason) -> Error {
    Error { at, reason }
}

fn is_separator(character: char) -> bool {
    character == ',' || character.is_ascii_whitespace()
}

impl Iterator for CpuList<'_> {
    type Item = Result<Item, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rest.take_while(is_separator);
        if self.rest.left().is_empty() {
            return None;
        }
        let item = self.item();
        if item.is_err() {
            self.rest.at = self.rest.text.len();
        }
        Some(item)
    }
}
