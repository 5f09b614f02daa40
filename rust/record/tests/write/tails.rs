// SPDX-License-Identifier: GPL-2.0

//! The bytes that a tail writes, and those of them that a capture returns.

use super::platform::set_time;
use super::Trace;
use rtrace_abi::header::Layout;
use rtrace_record::clock::TraceClock;
use rtrace_record::header::RecordLabel;
use rtrace_record::memory::{tail_alone, Capture, NulTerminated, Space, Tail};
use rtrace_ring::Mode;

/// A tail of a given size, written by a function that may write fewer bytes.
struct Asks<W>(usize, W);

impl<W: Fn(Space<'_>)> Tail for Asks<W> {
    fn len(&self) -> usize {
        self.0
    }
    fn write(&self, space: Space<'_>) {
        self.1(space);
    }
}

/// Returns the bytes after the header of a record with this tail.
fn recorded(tail: &impl Tail) -> Vec<u8> {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    set_time(1);
    trace.record_tail(&RecordLabel::in_layout(1, Layout::Compact), tail);
    trace.buffer.flush();
    trace.packets()[0].content[4..].to_vec()
}

#[test]
fn nothing_takes_no_room() {
    assert!(recorded(&()).is_empty());
}

#[test]
fn values_that_have_no_room_are_left_out() {
    let tail = Asks(7, |mut space: Space<'_>| {
        space.put(0x4433_2211u32);
        space.put(0x6655u16);
        space.put(0x9988u16);
        space.put(0x77u8);
        space.put(0xaau8);
    });
    assert_eq!(recorded(&tail), [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77]);
}

#[test]
fn bytes_that_have_no_room_are_left_out() {
    let tail = Asks(5, |mut space: Space<'_>| {
        space.put_bytes(b"abc");
        space.put_bytes(b"def");
        space.put_bytes(b"gh");
        space.put_bytes(b"i");
    });
    assert_eq!(recorded(&tail), *b"abcgh");
}

#[test]
fn what_is_captured_is_what_would_be_recorded() {
    fn captured<const ROOM: usize>() -> Option<Vec<u8>> {
        let text = NulTerminated(b"abcd");
        let (len, write) = tail_alone(&text);
        let mut capture = Capture::<ROOM>::new();
        let captured = capture.fill(len, write)?;
        let fields = captured.fields();
        // A whole word can be read at each captured byte.
        assert_eq!(captured.with_slack(), [fields, &[0; 8]].concat());
        Some(fields.to_vec())
    }
    let whole = Some(b"abcd\0".to_vec());
    assert_eq!(captured::<8>(), whole);
    assert_eq!(captured::<5>(), whole);
    assert_eq!(captured::<4>(), None);
}
