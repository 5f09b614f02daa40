// SPDX-License-Identifier: GPL-2.0

//! The flight recorder keeps the newest records.

use super::directed::each_origin;
use super::ring::Mode;

#[test]
pub fn keeps_the_newest() {
    each_origin(Mode::Overwrite, 4, |machine| {
        for _ in 0..103 {
            assert_eq!(machine.record(6), Ok(()));
        }
        let packets = machine.drain();
        let ids: Vec<u32> = packets
            .iter()
            .flat_map(|packet| packet.ids.clone())
            .collect();
        assert_eq!(ids, [99, 100, 101, 102]);
        assert_eq!(machine.ring.overwritten(), 99);
        assert_eq!(machine.ring.recorded(), 103);
    });
}

#[test]
pub fn nothing_is_refused() {
    each_origin(Mode::Overwrite, 2, |machine| {
        for len in (1..=6).cycle().take(1000) {
            assert_eq!(machine.record(len), Ok(()));
        }
        assert_eq!(machine.ring.lost().discarded(), 0);
    });
}

#[test]
pub fn a_held_packet_outlives_many_laps() {
    each_origin(Mode::Overwrite, 2, |machine| {
        for _ in 0..2 {
            assert_eq!(machine.record(6), Ok(()));
        }
        let held = machine.get();
        for _ in 0..50 {
            assert_eq!(machine.record(6), Ok(()));
        }
        assert_eq!(machine.get(), held);
        // The writer has pushed the position long ago: put does not move it.
        machine.put();
        let packets = machine.drain();
        let ids: Vec<u32> = packets
            .iter()
            .flat_map(|packet| packet.ids.clone())
            .collect();
        assert_eq!(ids, [50, 51]);
        assert_eq!(machine.ring.overwritten(), 49);
    });
}
