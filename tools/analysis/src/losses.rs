// SPDX-License-Identifier: GPL-2.0

//! What every report ends with: how many events were recorded, and how many lost.

use super::summary::{missing, Content};
use ctf::Damage;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use store::{Recording, Trace};

/// Damaged places that are listed one by one.
const LISTED: usize = 100;

/// What became of a trace's events.
#[derive(Debug, Serialize)]
pub struct Losses {
    /// Events recorded: those in the trace.
    pub recorded: u64,
    /// Events lost: by the kernel's counters, where they stand beside the trace, else those
    /// that packets tell of.
    pub lost: u64,
    /// Whether `lost` is all; else what was in `packets_lost` and `packets_before`, at the damaged places,
    /// and the `missing` events are lost as well.
    pub lost_is_exact: bool,
    /// How the recording ended; none if no tool of rtrace wrote the trace, or one that is old.
    pub recording: Option<Recording>,
    /// Packets missing between others: overwritten before they were read.
    pub packets_lost: u64,
    /// Packets missing before the first: overwritten by a flight recorder, or read earlier.
    pub packets_before: u64,
    /// Events that were read from the kernel and are not in the files.
    pub missing: u64,
    /// Places of the files that cannot be read.
    #[serde(flatten)]
    pub damages: Damages,
}

/// The damaged places of a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Damages {
    /// The first of them.
    #[serde(rename = "damaged")]
    first: Vec<Damage>,
    /// Number of all of them.
    #[serde(rename = "damaged_places")]
    places: u64,
    /// Bytes of all of them.
    #[serde(rename = "damaged_bytes")]
    bytes: u64,
}

impl Damages {
    /// Damages of a trace that are known before its streams are read.
    pub fn of(trace: &Trace) -> Self {
        let mut damages = Self::default();
        let known = trace.damages.iter().cloned();
        known.for_each(|damage| damages.add(damage));
        damages
    }

    /// Adds a place.
    pub fn add(&mut self, damage: Damage) {
        self.places += 1;
        self.bytes = self.bytes.saturating_add(damage.bytes);
        if self.first.len() < LISTED {
            self.first.push(damage);
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places == 0
    }
}

impl Display for Damages {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { places, bytes, .. } = self;
        let s = if *places == 1 { "" } else { "s" };
        write!(f, "{places} damaged place{s} ({bytes} bytes)")
    }
}

/// Parts of a trace cannot be shown.
#[derive(Debug, thiserror::Error)]
#[error("the trace is damaged: {0}; all else is shown")]
pub struct Damaged(String);

impl Losses {
    /// Of a trace that holds all this, whose recording ended so, and that is damaged there.
    pub fn new(all: &Content, recording: Option<&Recording>, damages: Damages) -> Self {
        let gaps = all.packets_lost.saturating_add(all.packets_before);
        let totals = recording.and_then(|recording| recording.totals(all.events));
        let missing = missing(recording, all.events);
        Self {
            recorded: all.events,
            lost: totals.map_or(all.lost, |totals| totals.lost),
            lost_is_exact: (totals.is_some() || gaps == 0) && damages.is_empty() && missing == 0,
            recording: recording.cloned(),
            packets_lost: all.packets_lost,
            packets_before: all.packets_before,
            missing,
            damages,
        }
    }

    /// Warnings about the trace.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<_> = self.damages.first.iter().map(Damage::to_string).collect();
        if self.damages.places > warnings.len() as u64 {
            let more = self.damages.places - warnings.len() as u64;
            warnings.push(format!("{more} more places are damaged"));
        }
        if self.missing > 0 {
            let damaged = match self.damages.is_empty() {
                true => "",
                false => "they are damaged, or ",
            };
            warnings.push(format!(
                "{} events were read from the kernel and are not here: {damaged}another reader took \
                 them (a snapshot?), or files are missing",
                self.missing
            ));
        }
        warnings
    }

    /// An error if parts of the trace are damaged or missing.
    pub fn verdict(&self) -> Result<(), Damaged> {
        let mut parts = Vec::new();
        if !self.damages.is_empty() {
            parts.push(self.damages.to_string());
        }
        if self.missing > 0 {
            parts.push(format!("{} events are missing", self.missing));
        }
        match parts.as_slice() {
            [] => Ok(()),
            parts => Err(Damaged(parts.join(", "))),
        }
    }
}
