// SPDX-License-Identifier: GPL-2.0

//! Text that was not read yet.

use core::fmt;
use kernel::prelude::*;
use kernel::uaccess::UserSliceWriter;

/// A text that is written at its end and read from its beginning.
pub(super) struct PendingText {
    bytes: KVVec<u8>,
    /// Number of bytes that were read.
    read: usize,
}

impl PendingText {
    /// An empty text.
    pub(super) fn new() -> Self {
        Self {
            bytes: KVVec::new(),
            read: 0,
        }
    }

    /// Number of bytes that were written since all had been read.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether all was read.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Removes the text after the first `len` bytes.
    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// Copies as much as there is room for. Returns the number of bytes.
    pub(super) fn take(&mut self, out: &mut UserSliceWriter) -> Result<usize> {
        let unread = self.bytes.get(self.read..).unwrap_or(&[]);
        let part = unread.get(..out.len()).unwrap_or(unread);
        out.write_slice(part)?;
        let taken = part.len();
        self.read = self.read.wrapping_add(taken);
        if self.read == self.bytes.len() {
            self.bytes.clear();
            self.read = 0;
        }
        Ok(taken)
    }
}

impl fmt::Write for PendingText {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let pushed = self.bytes.extend_from_slice(s.as_bytes(), GFP_KERNEL);
        pushed.map_err(|_| fmt::Error)
    }
}
