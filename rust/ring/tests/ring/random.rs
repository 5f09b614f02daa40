// SPDX-License-Identifier: GPL-2.0

//! Random operations of one context, against a model that is a queue of packets.

use super::model::machine::{Contents, Machine};
use super::model::{origins, Config};
use super::ring::consume::Unavailable;
use super::ring::lost::Lost;
use super::ring::Mode;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Record(u64),
    Switch,
    Get,
    Put,
    Unget,
    Report,
}

/// A packet in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Packet {
    number: u64,
    ids: Vec<u32>,
    content: u64,
    discarded: u64,
}

struct Model {
    config: Config,
    open: Option<Packet>,
    /// Finished packets, from the reader's on.
    finished: VecDeque<Packet>,
    held: Option<Packet>,
    fired: u32,
    made: u64,
    lost: u64,
    told: u64,
    overwritten: u64,
}

impl Model {
    fn new(config: Config) -> Self {
        Self {
            config,
            open: None,
            finished: VecDeque::new(),
            held: None,
            fired: 0,
            made: 0,
            lost: 0,
            told: 0,
            overwritten: 0,
        }
    }

    fn holds(&self, packet: &Packet) -> bool {
        self.held
            .as_ref()
            .is_some_and(|held| held.number == packet.number)
    }

    fn close(&mut self) -> bool {
        let Some(mut packet) = self.open.take() else {
            return false;
        };
        packet.discarded = self.lost;
        self.told = self.lost;
        self.finished.push_back(packet);
        true
    }

    /// Returns whether there is room for a packet after `closing` more are finished.
    fn make_room(&mut self, closing: usize) -> bool {
        let full = self.finished.len() + closing == self.config.count as usize;
        if full && self.config.mode == Mode::Overwrite {
            let oldest = self.finished.pop_front().expect("a full buffer");
            if !self.holds(&oldest) {
                self.overwritten += oldest.ids.len() as u64;
            }
            return true;
        }
        !full
    }

    fn new_packet(&mut self) -> Packet {
        self.made += 1;
        Packet {
            number: self.made,
            ids: Vec::new(),
            content: self.config.header,
            discarded: 0,
        }
    }

    fn record(&mut self, len: u64) -> Result<(), Lost> {
        let Config { size, header, .. } = self.config;
        let id = self.fired;
        self.fired += 1;
        if len > size - header {
            self.lost += 1;
            return Err(Lost::TooLarge);
        }
        let fits = |packet: &Packet| packet.content + len <= size;
        if !self.open.as_ref().is_some_and(fits) {
            if !self.make_room(self.open.is_some().into()) {
                self.lost += 1;
                return Err(Lost::Full);
            }
            self.close();
            self.open = Some(self.new_packet());
        }
        let open = self.open.as_mut().expect("an open packet");
        open.ids.push(id);
        open.content += len;
        if open.content == size {
            self.close();
        }
        Ok(())
    }

    fn get(&mut self) -> Result<Packet, Unavailable> {
        if self.held.is_none() {
            self.held = self.finished.front().cloned();
        }
        self.held.clone().ok_or(Unavailable::Empty)
    }

    fn put(&mut self) {
        let held = self.held.take();
        if self.finished.front() == held.as_ref() {
            self.finished.pop_front();
        }
    }

    fn unget(&mut self) -> bool {
        let held = self.held.take().expect("a held packet");
        let back = self.finished.front() == Some(&held);
        if !back {
            self.overwritten += held.ids.len() as u64;
        }
        back
    }

    fn report(&mut self) -> bool {
        if self.open.is_some() || self.lost == self.told {
            return false;
        }
        if !self.make_room(0) {
            return false;
        }
        self.open = Some(self.new_packet());
        self.close()
    }
}

/// Checks that the ring's packet is the model's.
fn assert_same(contents: &Contents, packet: &Packet) {
    assert_eq!(contents.ids, packet.ids);
    assert_eq!(contents.closing.content, packet.content);
    assert_eq!(contents.closing.discarded, packet.discarded);
    // The narrowest packet number here has 8 - 3 bits.
    assert_eq!(contents.opening.sequence & 31, (packet.number - 1) & 31);
}

fn run<const BITS: u32>(config: Config, operations: &[Operation]) {
    let machine = Machine::<BITS>::new(config);
    let mut model = Model::new(config);
    for &operation in operations {
        match operation {
            Operation::Record(len) => assert_eq!(machine.record(len), model.record(len)),
            Operation::Switch => assert_eq!(machine.switch(), model.close()),
            Operation::Get => match (machine.get(), model.get()) {
                (Ok(contents), Ok(packet)) => assert_same(&contents, &packet),
                (Err(why), Err(expected)) => assert_eq!(why, expected),
                (got, expected) => panic!("{got:?} instead of {expected:?}"),
            },
            Operation::Put if machine.holds() => {
                machine.put();
                model.put();
            }
            Operation::Unget if machine.holds() => assert_eq!(machine.unget(), model.unget()),
            Operation::Put | Operation::Unget => {}
            Operation::Report => assert_eq!(machine.report_losses(), model.report()),
        }
        assert_eq!(machine.holds(), model.held.is_some());
        if !machine.holds() {
            assert_eq!(machine.is_readable(), !model.finished.is_empty());
        }
        assert_eq!(machine.ring.overwritten(), model.overwritten & mask(BITS));
        assert_eq!(machine.ring.lost().discarded(), model.lost & mask(BITS));
    }
    machine.check_end();
}

fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (1u64..=7).prop_map(Operation::Record),
        2 => Just(Operation::Switch),
        3 => Just(Operation::Get),
        3 => Just(Operation::Put),
        1 => Just(Operation::Unget),
        1 => Just(Operation::Report),
    ]
}

fn config(bits: u32) -> impl Strategy<Value = Config> {
    (1u32..3, any::<bool>(), 0usize..3).prop_map(move |(count_bits, discard, origin)| Config {
        size: 8,
        count: 1 << count_bits,
        header: 2,
        mode: if discard {
            Mode::Discard
        } else {
            Mode::Overwrite
        },
        snapshots: false,
        origin: origins(bits, 8 << count_bits)[origin],
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    // So few operations that positions do not wrap while a packet is held.
    #[test]
    fn operations_8_bits(config in config(8), operations in vec(operation(), 0..32)) {
        run::<8>(config, &operations);
    }

    #[test]
    fn operations_16_bits(config in config(16), operations in vec(operation(), 0..200)) {
        run::<16>(config, &operations);
    }

    #[test]
    fn operations_64_bits(config in config(64), operations in vec(operation(), 0..200)) {
        run::<64>(config, &operations);
    }
}
