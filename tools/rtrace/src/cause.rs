// SPDX-License-Identifier: GPL-2.0

//! The event that caused a snapshot.

use crate::condition::{is_picked, Condition, Values};
use crate::finder::{Finder, Source};
use analysis::choice::Part;
use analysis::syscalls::edge;
use analysis::{key, pass, Analysis, Answer, Catalogue, EventKey, Moment, Nothing, SendAnalysis};
use control::Trigger;
use ctf::{Clock, Event};
use export::Line;
use rtrace_input::pattern::Pattern;
use rtrace_input::trigger::TriggerLine;
use std::path::Path;
use store::Trace;
use terminal::{date, printable};

/// The newest event in a snapshot at which a trigger fires, as a line: time, thread, name and fields. [`None`]: the
/// snapshot has none, because the event is not recorded.
pub fn newest(dir: &Path, trigger: &Trigger) -> anyhow::Result<Option<String>> {
    let trace = Trace::open(dir)?;
    let catalogue = Catalogue::new(&trace.metadata);
    let mut line = None;
    let newest = Newest::new(trigger, &catalogue, &mut line);
    if newest.keys.is_empty() {
        return Ok(None);
    }
    let analyses = vec![Box::new(newest) as SendAnalysis<'_>];
    pass::read(dir, &trace, &catalogue, analyses, &Part::default(), |_| ())?;
    Ok(line)
}

/// A search for the newest event at which a trigger fires.
struct Newest<'a> {
    keys: Vec<EventKey>,
    at: Vec<AtEvent>,
    clock: Clock,
    line: &'a mut Option<String>,
}

/// An event at which a trigger fires.
struct AtEvent {
    /// Its form as text.
    line: Line,
    /// The trigger's filter, and the places of its values.
    filter: Option<(Condition, Vec<Source>)>,
}

impl<'a> Newest<'a> {
    fn new(trigger: &Trigger, catalogue: &Catalogue<'_>, line: &'a mut Option<String>) -> Self {
        let pattern = Pattern::parse(&trigger.event);
        let parsed = TriggerLine::parse(&trigger.text).ok();
        let filter = parsed.and_then(|trigger| trigger.filter);
        let (mut keys, mut at) = (Vec::new(), Vec::new());
        for layout in catalogue.events() {
            let names = [&layout.name, decode::event_in_kernel(&layout.name)];
            let is_call = edge(layout).is_some();
            if !names.iter().any(|name| is_picked(&pattern, name, is_call)) {
                continue;
            }
            let finder = Finder { layout, catalogue };
            // As in the kernel: a trigger is not set at events without the fields of its filter.
            let Ok(filter) = filter
                .map(|part| finder.filter(part.expression))
                .transpose()
            else {
                continue;
            };
            keys.push(key(layout));
            at.push(AtEvent {
                line: Line::named(layout),
                filter,
            });
        }
        Self {
            keys,
            at,
            clock: catalogue.metadata().clock,
            line,
        }
    }
}

impl Analysis for Newest<'_> {
    fn events(&self) -> Vec<EventKey> {
        self.keys.clone()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let AtEvent { line: form, filter } = &self.at[which];
        if let Some((condition, sources)) = filter {
            let values = sources.iter().map(|source| source.held(event, now));
            if !condition.wants(&Values(values.collect())) {
                return;
            }
        }
        let time = i64::try_from(self.clock.since_epoch(now.time)).unwrap_or(i64::MAX);
        let comm = now.comm().map(String::from_utf8_lossy);
        let comm = comm.map_or_else(|| "?".to_owned(), |comm| printable(&comm));
        let tid = now
            .tid()
            .map_or_else(|| "?".to_owned(), |tid| tid.to_string());
        let mut line = format!("{} {comm}/{tid} ", date::time_of_day(time));
        // Writing to a String cannot fail.
        let _ = form.write(event, &mut line);
        *self.line = Some(line);
    }

    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        Box::new(Nothing)
    }
}
