// SPDX-License-Identifier: GPL-2.0

//! The buffer's memory. Each byte names the record that wrote it.

use super::Config;
use std::cell::Cell;

/// Content of a byte: byte `index` of record `id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Byte {
    pub id: u32,
    pub index: u32,
}

/// The part of a packet's header that is written when the packet is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Opening {
    pub sequence: u64,
    pub time: u64,
}

/// The part of a packet's header that is written when the packet is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Closing {
    pub content: u64,
    pub time: u64,
    pub discarded: u64,
}

/// The sub-buffers of both banks, the reader's included.
pub struct Memory {
    size: u64,
    header: u64,
    bytes: Vec<Cell<Byte>>,
    openings: Vec<Cell<Opening>>,
    closings: Vec<Cell<Closing>>,
    /// The sub-buffers that the reader owns: a bit for each.
    owned: Cell<u64>,
}

impl Memory {
    pub fn new(config: &Config) -> Self {
        let count = 2 * (config.count as usize + 1);
        Self {
            size: config.size,
            header: config.header,
            bytes: vec![Cell::default(); count * config.size as usize],
            openings: vec![Cell::default(); count],
            closings: vec![Cell::default(); count],
            owned: Cell::new(1 << config.count),
        }
    }

    /// The sub-buffer in which `at` lies, which must be a writer's.
    fn writable(&self, at: u64) -> usize {
        let index = at / self.size;
        let owned = (self.owned.get() >> index) & 1;
        assert_eq!(owned, 0, "wrote into the reader's memory");
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

    /// Gives the reader the sub-buffer at `at`.
    pub fn own(&self, at: u64) {
        self.owned.set(self.owned.get() | self.bit(at));
    }

    /// Gives the sub-buffer at `at` to the writer.
    pub fn disown(&self, at: u64) {
        self.owned.set(self.owned.get() & !self.bit(at));
    }

    fn bit(&self, at: u64) -> u64 {
        assert_eq!(at % self.size, 0, "a packet is not at the beginning");
        1 << (at / self.size)
    }

    /// Copies a sub-buffer.
    pub fn copy(&self, from: u64, to: u64) {
        for offset in 0..self.size {
            self.bytes[(to + offset) as usize].set(self.byte(from + offset));
        }
        let index = |at: u64| (at / self.size) as usize;
        self.openings[index(to)].set(self.opening(from));
        self.closings[index(to)].set(self.closing(from));
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
