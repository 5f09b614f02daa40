// SPDX-License-Identifier: GPL-2.0

//! The physical limit: the same bytes, copied one after the other into memory of the same size, without a
//! protocol.

use crate::writer::{Outcome, Writer};
use anyhow::{bail, Result};
use rtrace_arch::clock::tsc;
use std::hint::black_box;

const MEMORY: usize = 4 << 20;

struct Copier<const N: usize, const TIME: bool> {
    memory: Vec<u8>,
    at: usize,
    fired: u64,
}

/// A copier of records of `bytes` bytes. With `TIME` it stores the clock in their first four bytes.
pub(crate) fn writer<const TIME: bool>(bytes: u64) -> Result<Box<dyn Writer>> {
    fn of<const N: usize, const TIME: bool>() -> Box<dyn Writer> {
        Box::new(Copier::<N, TIME> {
            // Not 0, so that all pages are present.
            memory: vec![0xff; MEMORY],
            at: 0,
            fired: 0,
        })
    }
    Ok(match bytes {
        6 => of::<6, TIME>(),
        22 => of::<22, TIME>(),
        60 => of::<60, TIME>(),
        _ => bail!("no record has {bytes} bytes"),
    })
}

impl<const N: usize, const TIME: bool> Copier<N, TIME> {
    /// Not inlined, as a probe is not.
    #[inline(never)]
    fn copy(&mut self, record: &[u8; N]) {
        if self.at + N > self.memory.len() {
            self.at = 0;
        }
        if let Some(to) = self.memory[self.at..].first_chunk_mut::<N>() {
            *to = *record;
            if TIME {
                to[..4].copy_from_slice(&(tsc() as u32).to_le_bytes());
            }
        }
        self.at += N;
    }
}

impl<const N: usize, const TIME: bool> Writer for Copier<N, TIME> {
    fn fire(&mut self, records: u64) {
        let record = black_box([0x5a; N]);
        for _ in 0..records {
            self.copy(&record);
        }
        self.fired += records;
    }

    fn finish(self: Box<Self>) -> Result<Outcome> {
        Ok(Outcome {
            fired: self.fired,
            recorded: self.fired,
            ..Outcome::default()
        })
    }
}
