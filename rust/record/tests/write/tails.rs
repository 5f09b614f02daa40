// SPDX-License-Identifier: GPL-2.0

//! The bytes that a tail writes, and those of them that a capture returns.

use super::platform::set_time;
use super::Trace;
use rtrace_abi::header::Layout;
use rtrace_record::clock::TraceClock;
use rtrace_record::header::RecordLabel;
use rtrace_record::memory::{tail_alone, word, Capture, NulTerminated, Space, Tail};
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
fn a_part_is_split_off_if_there_is_room() {
    let tail = Asks(7, |mut space: Space<'_>| {
        let part = space.split_off(4).unwrap();
        assert!(space.split_off(4).is_none());
        space.split_off(3).unwrap().put([5_u8, 6, 7]);
        part.put([1_u8, 2, 3, 4]);
    });
    assert_eq!(recorded(&tail), [1, 2, 3, 4, 5, 6, 7]);
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
        Some(captured.fields().to_vec())
    }
    let whole = Some(b"abcd\0".to_vec());
    assert_eq!(captured::<8>(), whole);
    assert_eq!(captured::<5>(), whole);
    assert_eq!(captured::<4>(), None);
}

#[test]
fn numbers_of_a_capture_are_those_of_the_record() {
    let bytes: [u8; 10] = core::array::from_fn(|at| at as u8 + 1);
    let mut capture = Capture::<16>::new();
    let captured = capture.fill(10, |to| {
        to.put(bytes);
    });
    let number = |at| captured.unwrap().number(at);
    assert_eq!(number(0), Some(0x0807_0605_0403_0201));
    assert_eq!(number(2), Some(0x0a09_0807_0605_0403));
    // As many bytes as there are.
    assert_eq!(number(3), Some(0x000a_0908_0706_0504));
    assert_eq!(number(9), Some(10));
    assert_eq!(number(10), None);
    assert_eq!(number(usize::MAX), None);
}

#[test]
fn a_number_has_no_bytes_of_an_earlier_capture() {
    let mut capture = Capture::<8>::new();
    capture.fill(8, |to| {
        to.put(u64::MAX);
    });
    let captured = capture.fill(4, |to| {
        to.put(0x0403_0201_u32);
    });
    assert_eq!(captured.unwrap().number(1), Some(0x0004_0302));
}

#[test]
fn a_value_is_a_number_of_its_bytes() {
    assert_eq!(word(-2_i8), Some(0xfe));
    assert_eq!(word(0x1234_u16), Some(0x1234));
    assert_eq!(word(-2_i32), Some(0xffff_fffe));
    assert_eq!(word(-2_i64), Some(u64::MAX - 1));
    assert_eq!(word([1_u8, 2]), Some(0x0201));
    assert_eq!(word([0_u8; 3]), None);
    assert_eq!(word([0_u8; 16]), None);
}

#[test]
fn a_part_is_skipped_or_written_twice() {
    let mut capture = Capture::<8>::new();
    let captured = capture.fill(8, |to| {
        to.put_here(0x1111_1111_u32);
        let to = to.put(0x2222_u16);
        to.put_here(0x4444_u16);
        to.skip(2).put(0x3333_3333_u32);
    });
    assert_eq!(captured.unwrap().number(0), Some(0x3333_3333_4444_2222));
}
