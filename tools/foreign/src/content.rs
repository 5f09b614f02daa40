// SPDX-License-Identifier: GPL-2.0

//! The events of a packet, in rtrace's layout.

use ctf::FoundEvent;
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
    /// The places of the events. The last one has no end yet.
    events: Vec<FoundEvent>,
    /// The time of the last event, or of the packet's begin.
    now: u64,
}

impl Content {
    /// Begins a packet at a time.
    pub fn start(&mut self, time: u64) {
        self.bytes.clear();
        self.events.clear();
        self.now = time;
    }

    /// The time of the last event, or of the packet's begin.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Writes the header of an event with this id, below [`IDS`], that is not before the last one. Its contexts follow,
    /// then [`Self::payload`], then its fields.
    #[inline]
    pub fn event(&mut self, id: u32, time: u64) {
        self.close();
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
        let at = self.place();
        self.events.push(FoundEvent {
            timestamp: time,
            layout: id,
            contexts: at,
            payload: at,
            end: at,
        });
    }

    /// Begins the fields of the last event.
    #[inline]
    pub fn payload(&mut self) {
        let at = self.place();
        if let Some(event) = self.events.last_mut() {
            event.payload = at;
        }
    }

    /// Ends the last event.
    #[inline]
    fn close(&mut self) {
        let at = self.place();
        if let Some(event) = self.events.last_mut() {
            event.end = at;
        }
    }

    /// The place of the next byte. A reader finds no event at the last place.
    #[inline]
    fn place(&self) -> u32 {
        u32::try_from(self.bytes.len()).unwrap_or(u32::MAX)
    }

    /// Ends the packet: exchanges bytes and events with those of the caller.
    pub fn exchange(&mut self, bytes: &mut Vec<u8>, events: &mut Vec<FoundEvent>) {
        self.close();
        std::mem::swap(&mut self.bytes, bytes);
        std::mem::swap(&mut self.events, events);
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
        let is_kept = |event: &FoundEvent| event.contexts as usize <= before;
        self.events.truncate(self.events.partition_point(is_kept));
        self.now = now;
    }
}
