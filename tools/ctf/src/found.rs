// SPDX-License-Identifier: GPL-2.0

//! The place of an event in the bytes of its packet.

/// The parts of an event, as ranges of the bytes in which it was found.
#[derive(Clone, Copy, Debug)]
pub struct FoundEvent {
    /// Clock value.
    pub timestamp: u64,
    /// The index of its layout in its class.
    pub layout: u32,
    /// The first byte of its contexts.
    pub contexts: u32,
    /// The first byte of its payload.
    pub payload: u32,
    /// The byte after the payload.
    pub end: u32,
}

impl FoundEvent {
    /// The event in bytes that begin with its byte `begin`, after `base` other bytes.
    #[inline]
    pub(super) fn moved(self, begin: usize, base: usize) -> Self {
        let by = (base as u32).wrapping_sub(begin as u32);
        Self {
            contexts: self.contexts.wrapping_add(by),
            payload: self.payload.wrapping_add(by),
            end: self.end.wrapping_add(by),
            ..self
        }
    }
}
