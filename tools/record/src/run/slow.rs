// SPDX-License-Identifier: GPL-2.0

//! The condition that a call takes longer than a limit: `slow:CALL > DURATION`.

use std::env::consts::ARCH;
use system::quantity;

/// A system call or a function, and the limit of its duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowCall {
    /// The name of a system call, or a function as for `record -k`.
    call: String,
    /// The limit, in nanoseconds.
    limit: u128,
}

impl SlowCall {
    /// Parses the text after `slow:`. The error has its place in the text.
    pub fn parse(text: &str) -> Result<Self, (usize, &'static str)> {
        let mut words = text.split_whitespace();
        let at = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
        let Some(call) = words.next() else {
            return Err((0, "expected a system call or a function"));
        };
        match words.next() {
            Some(">") => {}
            Some(other) => return Err((at(other), "expected '>'")),
            None => return Err((text.len(), "expected '>'")),
        }
        let Some(typed) = words.next() else {
            return Err((text.len(), "expected a duration, as 50ms"));
        };
        let limit = quantity::duration(typed);
        let limit = limit.map_err(|_| (at(typed), "expected a duration, as 50ms"))?;
        if let Some(more) = words.next() {
            return Err((at(more), "expected the end"));
        }
        Ok(Self {
            call: call.to_owned(),
            limit: limit.as_nanos(),
        })
    }

    /// The specification of the event at the return of the call.
    pub(super) fn spec(&self) -> String {
        let function = match decode::is_call(&self.call) {
            true => format!("{}{}", entry(), self.call),
            false => self.call.clone(),
        };
        format!("{}={function} -> ret=$retval:s64", self.event())
    }

    /// The name of the event.
    pub(super) fn event(&self) -> String {
        let name = self.call.rsplit([':', '/']).next().unwrap_or(&self.call);
        let letters = name.chars();
        let name: String = letters
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        format!("slow_{name}")
    }

    /// The filter of the event.
    pub(super) fn filter(&self) -> String {
        format!("duration_ns > {}", self.limit)
    }
}

/// Prefix of the kernel's functions that execute the system calls of 64-bit programs.
fn entry() -> &'static str {
    match ARCH {
        "aarch64" => "__arm64_sys_",
        _ => "__x64_sys_",
    }
}
