// SPDX-License-Identifier: GPL-2.0

//! The events that a merge returns. It only counts the other events, in the threads that decode.

use crate::event::FoundEvent;
use crate::layouts::EventLayout;
use crate::metadata::{Metadata, StreamClass};
use std::sync::Arc;

/// The events to return, by the number of their class and their index in it.
#[derive(Debug)]
pub(super) struct Selection {
    classes: Vec<Vec<bool>>,
}

impl Selection {
    /// The events for which `is_wanted` returns true. [`None`]: all events.
    pub fn of(metadata: &Metadata, is_wanted: impl Fn(&EventLayout) -> bool) -> Option<Arc<Self>> {
        let classes = metadata.streams.iter();
        let classes = classes.map(|class| class.events.values().map(&is_wanted).collect());
        let classes: Vec<Vec<bool>> = classes.collect();
        let is_all = classes.iter().flatten().all(|is_wanted| *is_wanted);
        (!is_all).then(|| Arc::new(Self { classes }))
    }
}

/// The selection of one stream.
#[derive(Debug, Default)]
pub(super) struct Selected {
    /// [`None`]: all events.
    selection: Option<Arc<Selection>>,
    /// The class of the stream.
    class: usize,
    /// The number of skipped events, by their index in the class.
    skipped: Vec<u64>,
}

impl Selected {
    /// Applies a selection to the stream, of which no event was read.
    pub fn select(&mut self, selection: Option<Arc<Selection>>) {
        self.selection = selection;
    }

    /// Sets the class of the stream, at a packet.
    pub fn begin(&mut self, class: u32) {
        self.class = class as usize;
    }

    /// Returns whether an event is selected. Counts it otherwise.
    #[inline]
    pub fn takes(&mut self, found: &FoundEvent) -> bool {
        let Some(selection) = &self.selection else {
            return true;
        };
        let place = found.layout as usize;
        let class = selection.classes.get(self.class);
        if class.and_then(|class| class.get(place)) != Some(&false) {
            return true;
        }
        if self.skipped.len() <= place {
            self.skipped.resize(place + 1, 0);
        }
        self.skipped[place] += 1;
        false
    }

    /// The skipped events by id, with their numbers.
    pub fn skipped(&self, class: Option<&StreamClass>) -> Vec<(u32, u64)> {
        let counts = (0..).zip(&self.skipped).filter(|(_, &count)| count > 0);
        let counts = counts.filter_map(|(place, &count)| {
            let layout = class?.events.at(place)?;
            Some((layout.id, count))
        });
        counts.collect()
    }
}
