// SPDX-License-Identifier: GPL-2.0

//! Reading of a slot whose writer is gone.

use super::model::platform::Narrow;
use super::ring::image::Image;
use super::ring::platform::{Local, Platform, Shared};
use super::ring::reference::{IDLE, PACKET};
use super::slots::IndexedSlots;

const SIZE: u64 = 4096;
const COUNT: u64 = 4;
/// The tag of the next lap, which has no effect here.
const TAG: u64 = 5 << 33;

/// The words of a slot; those that an image does not use are not 0.
struct Words {
    left: u64,
    records: u64,
    reference: u64,
    packet_records: u64,
    delivered_records: u64,
}

impl Words {
    fn read(&self) -> Option<Image> {
        let words = [
            self.left,
            self.records,
            1,
            2,
            self.reference,
            3,
            self.packet_records,
            self.delivered_records,
        ];
        let mut bytes = [0; Image::SIZE];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Image::read(&bytes, SIZE, COUNT)
    }
}

/// Makes a slot with seven records in its last packet, and three more since.
fn slot(left: u64, reference: u64) -> Words {
    Words {
        left,
        records: 13,
        reference,
        packet_records: 7,
        delivered_records: 10,
    }
}

/// A word of `SIZE` bytes that is never read.
struct Bytes<const SIZE: usize>([u8; SIZE]);

impl<const SIZE: usize> Local for Bytes<SIZE> {
    fn new(_: u64) -> Self {
        Self([0; SIZE])
    }
    fn load(&self) -> u64 {
        unreachable!()
    }
    fn store(&self, _: u64) {
        unreachable!()
    }
    fn compare_exchange(&self, _: u64, _: u64) -> bool {
        unreachable!()
    }
    fn subtract(&self, _: u64) -> bool {
        unreachable!()
    }
    fn add(&self, _: u64) {
        unreachable!()
    }
    fn increment(&self) {
        unreachable!()
    }
}

impl<const SIZE: usize> Shared for Bytes<SIZE> {
    fn new(_: u64) -> Self {
        Self([0; SIZE])
    }
    fn load(&self) -> u64 {
        unreachable!()
    }
    fn load_acquire(&self) -> u64 {
        unreachable!()
    }
    fn store(&self, _: u64) {
        unreachable!()
    }
    fn compare_exchange(&self, _: u64, _: u64) -> bool {
        unreachable!()
    }
}

/// Words of other sizes, which change the layout of slots in memory.
struct Sizes<const LOCAL: usize, const SHARED: usize>;

impl<const LOCAL: usize, const SHARED: usize> Platform for Sizes<LOCAL, SHARED> {
    type Local = Bytes<LOCAL>;
    type Shared = Bytes<SHARED>;
    type Slots = IndexedSlots<Self>;

    fn publish(&self) {
        unreachable!()
    }
    fn promote(&self) {
        unreachable!()
    }
}

#[test]
fn it_lies_in_memory_as_it_is_read() {
    assert!(Image::is_of::<Narrow<64>>());
    assert!(Image::is_of::<Sizes<8, 8>>());
    // Each of these has some fields at the right offset, and others not.
    assert!(!Image::is_of::<Sizes<4, 4>>());
    assert!(!Image::is_of::<Sizes<8, 4>>());
    assert!(!Image::is_of::<Sizes<4, 18>>(), "the last place is right");
    assert!(!Image::is_of::<Sizes<16, 16>>());
}

#[test]
fn a_delivered_packet_is_finished() {
    for memory in 0..=COUNT {
        let finished = Some(Image::Finished { memory, records: 7 });
        // Before and after `deliver` has set `left` for the next lap.
        for left in [0, SIZE] {
            assert_eq!(
                slot(left, IDLE | PACKET | TAG | memory).read(),
                finished,
                "memory {memory}, {left} left"
            );
        }
    }
}

#[test]
fn what_was_read_is_empty() {
    for memory in 0..=COUNT {
        for left in [0, 1, SIZE] {
            assert_eq!(slot(left, IDLE | memory).read(), Some(Image::Empty));
        }
    }
}

#[test]
fn a_held_packet_is_open_until_nothing_is_left() {
    for memory in 0..=COUNT {
        for left in [1, 100, SIZE] {
            let open = Image::Open {
                memory,
                committed: SIZE - left,
                records: 3,
            };
            assert_eq!(slot(left, memory).read(), Some(open));
        }
        // Not delivered yet: the packet's records are those since the last delivery.
        let mut words = slot(0, memory);
        words.packet_records = 2;
        let finished = |records| Some(Image::Finished { memory, records });
        assert_eq!(words.read(), finished(3));
        // `deliver` has counted the records already.
        words.packet_records = 3;
        words.delivered_records = 13;
        assert_eq!(words.read(), finished(3));
    }
}

#[test]
fn counts_of_records_wrap() {
    let mut words = slot(1, 0);
    words.records = 1;
    words.delivered_records = u64::MAX - 1;
    let open = Image::Open {
        memory: 0,
        committed: SIZE - 1,
        records: 3,
    };
    assert_eq!(words.read(), Some(open));
}

#[test]
fn what_no_writer_leaves_is_nothing() {
    for state in [0, IDLE, IDLE | PACKET] {
        assert_eq!(slot(SIZE, state | (COUNT + 1)).read(), None);
        assert_eq!(slot(SIZE + 1, state).read(), None);
        assert_eq!(slot(u64::MAX, state | (PACKET - 1)).read(), None);
    }
}
