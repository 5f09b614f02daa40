// SPDX-License-Identifier: GPL-2.0

//! AUX area: what it grants and counts, step by step and at random.

use super::model::platform::Narrow;
use super::ring::aux::{Aux, AuxCounts, Chunk, Told};
use super::ring::Mode;
use proptest::prelude::*;

fn area(size: u64, mode: Mode) -> Aux<Narrow<64>> {
    Aux::new(size, mode).unwrap()
}

fn chunk(position: u64, len: u64) -> Option<Chunk> {
    Some(Chunk { position, len })
}

#[test]
fn an_area_is_a_power_of_two() {
    for size in [0, 3, 4097, 1 << 63] {
        assert!(
            Aux::<Narrow<64>>::new(size, Mode::Discard).is_none(),
            "{size}"
        );
    }
}

#[test]
fn a_chunk_ends_where_the_area_does() {
    let area = area(16, Mode::Discard);
    assert_eq!((area.size(), area.mode()), (16, Mode::Discard));
    let first = area.begin(10).unwrap();
    assert_eq!(Some(first), chunk(0, 10));
    assert_eq!(area.end(first, 10), Told::default());
    area.free(10);
    let second = area.begin(10).unwrap();
    assert_eq!(Some(second), chunk(10, 6));
    area.end(second, 6);
    let third = area.begin(4);
    assert_eq!(third, chunk(16, 4));
    assert_eq!(area.offset(16), 0);
}

#[test]
fn what_the_reader_has_not_given_back_is_not_given() {
    let area = area(16, Mode::Discard);
    let first = area.begin(12).unwrap();
    area.end(first, 12);
    // The chunk gets the 4 bytes that are left. The next request gets none and loses its bytes.
    let second = area.begin(10).unwrap();
    assert_eq!(second.len, 4);
    assert_eq!(area.end(second, 4), Told::default());
    assert_eq!(area.begin(6), None);
    assert_eq!(area.begin(0), None);
    assert_eq!(area.hold(), 0);
    area.free(5);
    let third = area.begin(10).unwrap();
    assert_eq!(
        third,
        Chunk {
            position: 16,
            len: 5
        }
    );
    let told = area.end(third, 3);
    assert_eq!(
        (told.lost, told.truncated, told.collision),
        (6, true, false)
    );
    // Reported only once.
    let fourth = area.begin(1).unwrap();
    assert_eq!(area.end(fourth, 1), Told::default());
    let counts = AuxCounts {
        chunks: 4,
        bytes: 20,
        refused: 2,
        lost: 6,
        ..AuxCounts::default()
    };
    assert_eq!(area.counts(), counts);
    assert_eq!(area.unread(), 15);
}

#[test]
fn the_oldest_is_overwritten_unless_it_is_held() {
    let area = area(16, Mode::Overwrite);
    for _ in 0..4 {
        let chunk = area.begin(8).unwrap();
        area.end(chunk, 8);
    }
    assert_eq!(area.counts().overwritten, 16);
    assert_eq!((area.held(), area.unread()), (None, 16));
    assert_eq!(area.hold(), 16);
    assert_eq!(area.begin(1), None);
    area.free(20);
    let chunk = area.begin(8).unwrap();
    assert_eq!(chunk.len, 4);
    let told = area.end(chunk, 4);
    assert_eq!((told.lost, told.truncated), (1, true));
    area.release();
    assert_eq!(area.held(), None);
    let chunk = area.begin(8).unwrap();
    assert_eq!(chunk.len, 8);
    area.end(chunk, 8);
    assert_eq!(area.counts().overwritten, 24);
    // The bytes that a chunk overwrites are lost, even if it does not use them.
    let chunk = area.begin(4).unwrap();
    area.end(chunk, 0);
    assert_eq!((area.unread(), area.counts().overwritten), (12, 28));
}

#[test]
fn there_is_one_chunk_at_a_time() {
    let area = area(16, Mode::Discard);
    let chunk = area.begin(4).unwrap();
    assert_eq!(area.begin(4), None);
    let told = area.end(chunk, 4);
    assert_eq!((told.collision, told.truncated), (true, false));
    assert_eq!(area.counts().collisions, 1);
    let chunk = area.begin(4).unwrap();
    assert_eq!(chunk.position, 4);
    area.abandon(3);
    assert_eq!(area.begin(4).unwrap().position, 4);
    assert_eq!((area.counts().bytes, area.counts().lost), (4, 3));
}

/// An operation on an area.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin(u64),
    End(u64),
    Abandon(u64),
    Hold,
    Free(u64),
    Release,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..12u64).prop_map(Step::Begin),
        3 => (0..12u64).prop_map(Step::End),
        1 => (0..12u64).prop_map(Step::Abandon),
        1 => Just(Step::Hold),
        2 => (0..12u64).prop_map(Step::Free),
        1 => Just(Step::Release),
    ]
}

proptest! {
    /// Each byte in the area has the value of its position, and each other byte is accounted for.
    #[test]
    fn no_byte_is_lost_untold(steps in proptest::collection::vec(step(), 0..200), overwrite: bool) {
        const SIZE: u64 = 8;
        let mode = if overwrite { Mode::Overwrite } else { Mode::Discard };
        let area = area(SIZE, mode);
        let mut bytes = [0; SIZE as usize];
        let mut open: Option<Chunk> = None;
        let (mut read, mut held, mut lost, mut told) = (0, !overwrite, 0, 0);
        for step in steps {
            match step {
                Step::Begin(wanted) => match area.begin(wanted) {
                    Some(chunk) => {
                        prop_assert!(open.is_none());
                        prop_assert!(chunk.len > 0 && (wanted == 0 || chunk.len <= wanted));
                        prop_assert_eq!(chunk.position, area.head());
                        // The chunk may be written at once.
                        for at in chunk.position..chunk.position + chunk.len {
                            bytes[area.offset(at) as usize] = at;
                        }
                        open = Some(chunk);
                    }
                    None if open.is_some() => {}
                    None => {
                        prop_assert!(held && area.unread() == SIZE);
                        lost += wanted;
                    }
                },
                Step::End(written) => if let Some(chunk) = open.take() {
                    told += area.end(chunk, written).lost;
                    prop_assert_eq!(told, lost);
                    prop_assert_eq!(area.head(), chunk.position + written.min(chunk.len));
                },
                Step::Abandon(written) => if open.take().is_some() {
                    area.abandon(written);
                    lost += written;
                },
                Step::Hold => {
                    area.hold();
                    held = true;
                }
                Step::Free(count) => if let Some(tail) = area.held() {
                    prop_assert!(held);
                    let freed = count.min(area.unread());
                    area.free(tail + freed);
                    read += freed;
                },
                Step::Release => {
                    area.release();
                    held &= !overwrite;
                }
            }
            prop_assert_eq!(area.held().is_some(), held);
            let counts = area.counts();
            prop_assert_eq!(counts.bytes, read + counts.overwritten + area.unread());
            prop_assert_eq!(counts.lost, lost);
            let head = area.head();
            for at in head - area.unread()..head {
                prop_assert_eq!(bytes[area.offset(at) as usize], at);
            }
        }
    }
}
