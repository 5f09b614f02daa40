// SPDX-License-Identifier: GPL-2.0

//! The events that a merge returns. It only counts the other events, in the threads that decode.

use crate::found::FoundEvent;
use crate::layouts::EventLayout;
use crate::metadata::{Metadata, StreamClass};
use std::sync::Arc;

/// The events of one kind that a merge returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Every event.
    Each,
    /// An event whose contexts differ from those of the event that was returned before it in its packet.
    NewContexts,
    /// No event.
    Never,
}

/// The events to return, by the number of their class and their index in it.
#[derive(Debug)]
pub(super) struct Selection {
    classes: Vec<Vec<Wanted>>,
}

impl Selection {
    /// The events that `wanted` chooses. [`None`]: all events.
    pub fn of(metadata: &Metadata, wanted: impl Fn(&EventLayout) -> Wanted) -> Option<Arc<Self>> {
        let classes = metadata.streams.iter();
        let classes = classes.map(|class| class.events.values().map(&wanted).collect());
        let classes: Vec<Vec<Wanted>> = classes.collect();
        let mut all = classes.iter().flatten();
        let is_all = all.all(|wanted| *wanted == Wanted::Each);
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
    /// The contexts of the event that was returned last in the packet.
    contexts: Option<Vec<u8>>,
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
        self.contexts = None;
    }

    /// Returns whether an event, which was found in `bytes`, is selected. Counts it otherwise.
    #[inline]
    pub fn takes(&mut self, found: &FoundEvent, bytes: &[u8]) -> bool {
        let Some(selection) = &self.selection else {
            return true;
        };
        let place = found.layout as usize;
        let class = selection.classes.get(self.class);
        let wanted = class.and_then(|class| class.get(place));
        let is_taken = match wanted {
            Some(Wanted::Never) => false,
            Some(Wanted::NewContexts) => self.contexts.as_deref() != found.contexts(bytes),
            Some(Wanted::Each) | None => true,
        };
        if is_taken {
            self.keep(found.contexts(bytes));
            return true;
        }
        if self.skipped.len() <= place {
            self.skipped.resize(place + 1, 0);
        }
        self.skipped[place] += 1;
        false
    }

    /// Keeps the contexts of a selected event.
    fn keep(&mut self, contexts: Option<&[u8]>) {
        let kept = self.contexts.get_or_insert_default();
        kept.clear();
        kept.extend_from_slice(contexts.unwrap_or_default());
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
