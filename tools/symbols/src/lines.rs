// SPDX-License-Identifier: GPL-2.0

//! The lines of a text beside a trace. One line at a time is in memory, because a long recording has millions.

use anyhow::{bail, Context};
use std::io::{BufRead, Read};

/// The maximum length of a line in bytes: the longest path, escaped, and more.
const LONGEST: u64 = 1 << 16;

/// Lines.
pub struct Lines<R> {
    text: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// The lines of a text.
    pub fn new(text: R) -> Self {
        Self {
            text,
            line: Vec::new(),
            number: 0,
        }
    }

    /// The next line, with its number from 1 on. [`None`]: the end of the text.
    pub fn next_line(&mut self) -> anyhow::Result<Option<(u64, &str)>> {
        self.line.clear();
        let mut text = self.text.by_ref().take(LONGEST);
        let read = text.read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let number = self.number;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if read as u64 == LONGEST {
            bail!("line {number}: it has more than {LONGEST} bytes");
        }
        let line = std::str::from_utf8(&self.line);
        Ok(Some((
            number,
            line.with_context(|| format!("line {number}"))?,
        )))
    }

    /// The next line; an empty one at the end.
    pub fn head(&mut self) -> anyhow::Result<&str> {
        Ok(self.next_line()?.map_or("", |(_, line)| line))
    }
}
