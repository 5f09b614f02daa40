// SPDX-License-Identifier: GPL-2.0

//! The events of a packet, in rtrace's layout.

use rtrace_abi::header::{LARGE_ESCAPE, LARGE_TIME_BITS, STACK_ID};

/// The first id that an event of another tracer cannot have: rtrace's own events have it and those after it.
pub const IDS: u32 = STACK_ID;

/// The content of a packet whose stream class has [`Layout::Large`](rtrace_abi::header::Layout::Large).
///
/// Each event is a header, its contexts and its fields, one after the other without padding. All integers are little
/// endian.
#[derive(Debug, Default)]
pub struct Content {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The time of the last event, or of the packet's begin.
    now: u64,
}

impl Content {
    /// Begins a packet at a time.
    pub fn start(&mut self, time: u64) {
        self.bytes.clear();
        self.now = time;
    }

    /// The time of the last event, or of the packet's begin.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Writes the header of an event with this id, below [`IDS`], that is not before the last one.
    #[inline]
    pub fn event(&mut self, id: u32, time: u64) {
        let is_near = time.wrapping_sub(self.now) >> LARGE_TIME_BITS == 0;
        self.now = time;
        if is_near {
            let mut header = [0; 6];
            header[..2].copy_from_slice(&(id as u16).to_le_bytes());
            header[2..].copy_from_slice(&(time as u32).to_le_bytes());
            self.bytes.extend_from_slice(&header);
        } else {
            self.bytes
                .extend_from_slice(&(LARGE_ESCAPE as u16).to_le_bytes());
            self.bytes.extend_from_slice(&id.to_le_bytes());
            self.bytes.extend_from_slice(&time.to_le_bytes());
        }
    }

    /// Writes the low bytes of an integer.
    #[inline]
    pub fn integer(&mut self, value: u64, bytes: u8) {
        let value = value.to_le_bytes();
        self.bytes
            .extend_from_slice(&value[..usize::from(bytes).min(8)]);
    }

    /// Writes a string, and the NUL after it.
    pub fn string(&mut self, text: &[u8]) {
        let end = text.iter().position(|byte| *byte == 0);
        self.bytes
            .extend_from_slice(&text[..end.unwrap_or(text.len())]);
        self.bytes.push(0);
    }

    /// Removes the bytes of an incomplete last event. `before` and `now` are those before it.
    pub fn undo(&mut self, before: usize, now: u64) {
        self.bytes.truncate(before);
        self.now = now;
    }
}
