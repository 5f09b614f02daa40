// SPDX-License-Identifier: GPL-2.0

//! A reader that is closed between get and put, and one that is opened again.

use super::directed::{each, each_origin};
use super::ring::lost::Lost;
use super::ring::Mode;

#[cfg_attr(not(fault), test)]
pub fn what_was_held_can_be_read_again() {
    each(2, |machine| {
        assert_eq!(machine.record(6), Ok(()));
        let first = machine.get();
        assert!(machine.unget(), "what was held is given back");
        assert!(machine.is_readable());
        assert_eq!(machine.get(), first);
        assert!(machine.unget());
        assert_eq!(machine.drain().len(), 1);
    });
}

#[test]
pub fn a_held_packet_keeps_its_room() {
    each_origin(Mode::Discard, 2, |machine| {
        for _ in 0..2 {
            assert_eq!(machine.record(6), Ok(()));
        }
        assert!(machine.get().is_ok());
        assert_eq!(machine.record(1), Err(Lost::Full));
        assert!(machine.unget());
        assert_eq!(machine.record(1), Err(Lost::Full));
        assert_eq!(machine.drain().len(), 2);
        assert_eq!(machine.record(1), Ok(()));
    });
}

#[test]
pub fn what_was_overwritten_meanwhile_is_lost() {
    each_origin(Mode::Overwrite, 2, |machine| {
        for _ in 0..2 {
            assert_eq!(machine.record(6), Ok(()));
        }
        assert_eq!(machine.get().map(|packet| packet.ids.clone()), Ok(vec![0]));
        assert_eq!(machine.record(1), Ok(()));
        assert_eq!(machine.ring.overwritten(), 0);
        assert!(!machine.unget());
        assert_eq!(machine.ring.overwritten(), 1);
        let ids: Vec<_> = machine
            .drain()
            .iter()
            .map(|packet| packet.ids.clone())
            .collect();
        assert_eq!(ids, [[1]]);
    });
}

#[test]
pub fn put_after_being_pushed_moves_nothing() {
    each_origin(Mode::Overwrite, 2, |machine| {
        for _ in 0..2 {
            assert_eq!(machine.record(6), Ok(()));
        }
        assert_eq!(machine.get().map(|packet| packet.ids.clone()), Ok(vec![0]));
        assert_eq!(machine.record(6), Ok(()));
        machine.put();
        let ids: Vec<_> = machine
            .drain()
            .iter()
            .map(|packet| packet.ids.clone())
            .collect();
        assert_eq!(ids, [[1], [2]]);
    });
}

#[test]
pub fn poll_agrees_with_get() {
    each(2, |machine| {
        assert!(!machine.is_readable());
        assert_eq!(machine.record(1), Ok(()));
        assert!(!machine.is_readable(), "not finished");
        assert!(machine.switch());
        assert!(machine.is_readable());
        assert!(machine.get().is_ok());
        machine.put();
        assert!(!machine.is_readable());
    });
}
