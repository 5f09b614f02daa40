// SPDX-License-Identifier: GPL-2.0

//! Single cases of the writer.

use super::model::machine::Machine;
use super::model::{origins, Config};
use super::ring::geometry::Geometry;
use super::ring::lost::Lost;
use super::ring::slot::Slot;
use super::ring::{Mode, Ring};
use super::slots::IndexedSlots;

/// Runs `test` in both modes, from position 0 and from before each wrap.
pub fn each(count: u64, test: impl Fn(&Machine<16>)) {
    for mode in [Mode::Discard, Mode::Overwrite] {
        each_origin(mode, count, &test);
    }
}

/// Runs `test` from position 0 and from before each wrap.
pub fn each_origin(mode: Mode, count: u64, test: impl Fn(&Machine<16>)) {
    for origin in origins(16, 8 * count) {
        let machine = Machine::new(Config {
            size: 8,
            count,
            header: 2,
            mode,
            snapshots: false,
            origin,
        });
        test(&machine);
        machine.check_end();
    }
}

#[cfg_attr(not(fault), test)]
pub fn too_large_is_not_called_full() {
    each_origin(Mode::Discard, 2, |machine| {
        while machine.record(6).is_ok() {}
        assert_eq!(machine.record(7), Err(Lost::TooLarge), "it never fits");
        assert_eq!(machine.record(6), Err(Lost::Full));
        assert_eq!(machine.ring.lost().get(Lost::TooLarge), 1);
        assert_eq!(machine.ring.lost().get(Lost::Full), 2);
        assert_eq!(machine.ring.lost().get(Lost::Wrapped), 0);
    });
}

#[test]
pub fn too_large_in_any_state() {
    each(2, |machine| {
        assert_eq!(machine.record(7), Err(Lost::TooLarge));
        assert_eq!(machine.record(1 << 20), Err(Lost::TooLarge));
        assert_eq!(machine.record(3), Ok(()));
        assert_eq!(machine.record(8), Err(Lost::TooLarge));
        assert_eq!(machine.record(3), Ok(()));
        let packets = machine.drain();
        assert_eq!(packets[0].ids, [2, 4]);
        assert_eq!(packets[0].closing.discarded, 3);
    });
}

#[cfg_attr(not(fault), test)]
pub fn switch_of_an_empty_buffer_does_nothing() {
    each(2, |machine| {
        for _ in 0..100 {
            assert!(!machine.switch(), "a switch makes an empty packet");
            assert!(!machine.is_readable());
        }
        assert_eq!(machine.record(1), Ok(()));
        assert!(machine.switch());
        for _ in 0..100 {
            assert!(!machine.switch());
        }
        assert_eq!(machine.drain().len(), 1);
        assert!(!machine.switch());
        assert_eq!(machine.drain().len(), 0);
    });
}

#[test]
pub fn exact_fill_finishes_without_a_switch() {
    each(2, |machine| {
        assert_eq!(machine.record(2), Ok(()));
        assert_eq!(machine.record(4), Ok(()));
        let packets = machine.drain();
        assert_eq!(packets.len(), 1);
        assert_eq!(packets[0].ids, [0, 1]);
        assert_eq!(packets[0].closing.content, 8);
        assert!(!machine.switch());
    });
}

#[test]
pub fn closing_a_packet_while_filling_the_next() {
    each(2, |machine| {
        assert_eq!(machine.record(1), Ok(()));
        assert_eq!(machine.record(6), Ok(()));
        let packets = machine.drain();
        assert_eq!(packets.len(), 2);
        assert_eq!(
            (&*packets[0].ids, packets[0].closing.content),
            (&[0][..], 3)
        );
        assert_eq!(
            (&*packets[1].ids, packets[1].closing.content),
            (&[1][..], 8)
        );
        assert_eq!(packets[0].closing.time, packets[1].opening.time);
    });
}

#[test]
pub fn a_small_record_fits_where_a_large_one_is_refused() {
    each_origin(Mode::Discard, 2, |machine| {
        assert_eq!(machine.record(6), Ok(()));
        assert_eq!(machine.record(3), Ok(()));
        assert_eq!(machine.record(4), Err(Lost::Full));
        assert_eq!(machine.record(3), Ok(()));
        let packets = machine.drain();
        assert_eq!(packets[1].ids, [1, 3]);
        assert_eq!(packets[1].closing.discarded, 1);
    });
}

#[test]
pub fn only_what_does_not_fit_is_refused_where_no_packet_is_free() {
    each_origin(Mode::Discard, 2, |machine| {
        assert_eq!(machine.record(6), Ok(()));
        assert_eq!(machine.record(3), Ok(()));
        for len in 1..=6 {
            let refused = machine.ring.refuse_if_full(len);
            assert_eq!(refused, len > 3, "{len} bytes, where there are 3");
            if refused {
                // The record was not fired by the machine: remove it from the final count.
                machine
                    .log
                    .set(machine.log.fire(len), 0, super::model::log::Fate::Lost);
            }
        }
    });
}

#[test]
pub fn losses_are_told_once_and_when_there_is_room() {
    each_origin(Mode::Discard, 2, |machine| {
        assert!(!machine.report_losses());
        for _ in 0..2 {
            assert_eq!(machine.record(6), Ok(()));
        }
        for _ in 0..3 {
            assert_eq!(machine.record(6), Err(Lost::Full));
        }
        assert!(!machine.report_losses(), "no room");
        assert!(machine.get().is_ok());
        assert!(!machine.report_losses(), "still none");
        machine.put();
        assert!(machine.report_losses());
        assert!(!machine.report_losses());
        let packets = machine.drain();
        assert_eq!(packets.len(), 2);
        assert_eq!(packets[0].closing.discarded, 0);
        assert_eq!(packets[1].closing.discarded, 3);
        assert_eq!(packets[1].ids, []);
        assert_eq!(packets[1].closing.content, 2);
        assert!(!machine.report_losses());
    });
}

#[test]
pub fn losses_wait_for_the_open_packet() {
    each(2, |machine| {
        assert_eq!(machine.record(1), Ok(()));
        assert_eq!(machine.record(7), Err(Lost::TooLarge));
        assert!(!machine.report_losses(), "a packet is open");
        assert!(machine.switch());
        assert!(!machine.report_losses(), "that packet has reported them");
        assert_eq!(machine.drain()[0].closing.discarded, 1);
    });
}

#[test]
pub fn what_a_probe_counts_is_told() {
    each(2, |machine| {
        machine.ring.lost().count(Lost::Nested);
        assert!(machine.report_losses());
        assert_eq!(machine.drain()[0].closing.discarded, 1);
        // The record was not fired by the machine: remove it from the final count.
        machine
            .log
            .set(machine.log.fire(1), 0, super::model::log::Fate::Lost);
    });
}

#[test]
pub fn almost_full() {
    each_origin(Mode::Discard, 4, |machine| {
        for _ in 0..3 {
            assert!(!machine.ring.is_almost_full());
            assert_eq!(machine.record(6), Ok(()));
        }
        assert_eq!(machine.record(1), Ok(()));
        assert!(machine.ring.is_almost_full(), "in the last one");
        assert!(machine.switch());
        assert!(machine.ring.is_almost_full(), "there is none");
        machine.drain();
        assert!(!machine.ring.is_almost_full());
    });
}

#[test]
pub fn unread() {
    each(4, |machine| {
        assert_eq!(machine.ring.unread(), 0);
        assert_eq!(machine.record(1), Ok(()));
        assert_eq!(
            machine.ring.unread(),
            0,
            "what is being written does not count"
        );
        assert!(machine.switch());
        assert_eq!(machine.ring.unread(), 8, "padding does");
        for _ in 0..2 {
            assert_eq!(machine.record(6), Ok(()));
        }
        assert_eq!(machine.ring.unread(), 24);
        assert_eq!(machine.record(1), Ok(()));
        assert_eq!(machine.ring.unread(), 24);
        machine.drain();
        assert_eq!(machine.ring.unread(), 0);
    });
}

#[test]
pub fn what_makes_no_ring() {
    let geometry = Geometry::new(8, 2).expect("valid sizes");
    let make = |header, origin, count| {
        let slots: Vec<_> = (0..count)
            .map(|index| Slot::new(&geometry, index, origin))
            .collect();
        let platform = super::model::platform::Narrow::<16>;
        Ring::new(
            geometry,
            Mode::Discard,
            header,
            origin,
            0,
            IndexedSlots::new(slots),
            platform,
        )
        .is_some()
    };
    assert!(make(2, 0, 2));
    assert!(make(7, 16, 2));
    assert!(!make(8, 0, 2), "no room for a record");
    assert!(!make(0, 0, 2), "a header of size 0");
    assert!(!make(2, 8, 2), "not a lap's beginning");
    assert!(!make(2, 0, 1), "too few slots");
    assert!(!make(2, 0, 3), "too many slots");
}
