// SPDX-License-Identifier: GPL-2.0

//! The buffer's memory. Each byte says which record wrote it.

use super::Config;
use std::cell::Cell;

/// What a byte holds: byte `index` of record `id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Byte {
    pub id: u32,
    pub index: u32,
}

/// What is written of a packet's header when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Opening {
    pub sequence: u64,
    pub time: u64,
}

/// What is written of a packet's header when it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Closing {
    pub content: u64,
    pub time: u64,
    pub discarded: u64,
}

/// All the sub-buffers, and the reader's.
pub struct Memory {
    size: u64,
    header: u64,
    bytes: Vec<Cell<Byte>>,
    openings: Vec<Cell<Opening>>,
    closings: Vec<Cell<Closing>>,
    /// The sub-buffer that the reader owns.
    owned: Cell<u64>,
}

impl Memory {
    pub fn new(config: &Config) -> Self {
        let count = config.count as usize + 1;
        Self {
            size: config.size,
            header: config.header,
            bytes: vec![Cell::default(); count * config.size as usize],
            openings: vec![Cell::default(); count],
            closings: vec![Cell::default(); count],
            owned: Cell::new(config.count),
        }
    }

    /// The sub-buffer in which `at` lies, which must be a writer's.
    fn writable(&self, at: u64) -> usize {
        let index = at / self.size;
        assert_ne!(index, self.owned.get(), "wrote into the reader's memory");
        index as usize
    }

    fn header(&self, at: u64) -> usize {
        assert_eq!(at % self.size, 0, "a header is not at the beginning");
        self.writable(at)
    }

    pub fn write_opening(&self, at: u64, opening: Opening) {
        self.openings[self.header(at)].set(opening);
    }

    pub fn write_closing(&self, at: u64, closing: Closing) {
        self.closings[self.header(at)].set(closing);
    }

    pub fn write(&self, at: u64, byte: Byte) {
        self.writable(at);
        assert!(at % self.size >= self.header, "a record in the header");
        self.bytes[at as usize].set(byte);
    }

    /// Gives the reader the sub-buffer at `at`, instead of the one that it had.
    pub fn own(&self, at: u64) {
        assert_eq!(at % self.size, 0, "a packet is not at the beginning");
        self.owned.set(at / self.size);
    }

    pub fn opening(&self, at: u64) -> Opening {
        self.openings[(at / self.size) as usize].get()
    }

    pub fn closing(&self, at: u64) -> Closing {
        self.closings[(at / self.size) as usize].get()
    }

    pub fn byte(&self, at: u64) -> Byte {
        self.bytes[at as usize].get()
    }
}
