// SPDX-License-Identifier: GPL-2.0

//! View that prints the events of a trace as lines.

use super::arguments::{EventKind, Form};
use super::call_filter::CallFilter;
use super::frames::Frames;
use super::output::Output;
use super::page::Page;
use super::paths::{Paths, Sources};
use super::requests::Shown;
use super::told::Told;
use super::watched::Watched;
use super::who::Who;
use super::Printer;
use crate::condition::is_picked;
use crate::schema::Schema;
use analysis::choice::{Chosen, Part};
use analysis::engine::Engine;
use analysis::frame::lower_bounds;
use analysis::loss::Account;
use analysis::syscalls::{By, Syscalls};
use analysis::uring::Uring;
use analysis::whose::recorded_comm;
use analysis::{key, Analysis, Answer, Catalogue, EventKey, Moment};
use consumer::viewer::View;
use ctf::{Event, EventLayout, Item, Metadata};
use record::compat::Patterns;
use rtrace_input::pattern::Pattern;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io;
use system::printing;
use system::{Error, Result};

/// Events that are left out.
#[derive(Debug, Default)]
pub struct Hidden {
    /// Events of the threads of this process.
    pub process: Option<i64>,
    /// Events before the first call of this name, if the trace has calls of this name.
    pub before: Option<&'static str>,
    /// Calls and events that are recorded only for the lines of other events.
    pub forms: Vec<&'static str>,
    /// Calls of 32-bit programs that these patterns do not choose.
    pub chosen: Option<Patterns>,
}

/// Choice of the events to print.
#[derive(Debug)]
pub struct LineChoice {
    /// Filters of system calls.
    pub filters: Vec<CallFilter>,
    /// Patterns of the events, as `set_event` takes them; all events, if there is none.
    pub picked: Option<Vec<String>>,
    /// The part of the trace: a range of time, and tasks.
    pub part: Part,
    /// Whether lines are printed.
    pub has_lines: bool,
    /// Maximum number of shown bytes that a call moves.
    pub bytes: usize,
    /// Whether the table of system calls is a JSON object.
    pub is_json: bool,
}

impl Default for LineChoice {
    fn default() -> Self {
        Self {
            filters: Vec::new(),
            picked: None,
            part: Part::default(),
            has_lines: true,
            bytes: 0,
            is_json: false,
        }
    }
}

impl LineChoice {
    /// Whether events of this form have lines.
    fn picks(&self, form: &Form, layout: &EventLayout) -> bool {
        let is_call = form.kind != EventKind::Event;
        let Some(picked) = &self.picked else {
            return self.has_lines;
        };
        // The bytes that a call moves belong to its line.
        if matches!(form.told, Some(Told::Moved { .. })) {
            return self.has_lines;
        }
        let patterns = picked.iter().map(|word| Pattern::parse(word));
        let last = patterns
            .rev()
            .find(|pattern| is_picked(pattern, &layout.name, is_call));
        self.has_lines && last.is_some_and(|pattern| pattern.enables)
    }
}

/// Prints the lines of a trace.
pub struct Lines {
    /// `None` once the trace is described.
    output: Option<Output>,
    /// The rows of the table of system calls, if the table is printed.
    summary: Option<usize>,
    hidden: Hidden,
    choice: LineChoice,
    /// Sources of the files that descriptors stand for.
    files: Sources,
    /// The call stacks below the lines, if they are printed, until the trace is described.
    frames: Option<Frames>,
    /// Losses of the trace. The engine has them while the trace is read.
    account: Account,
    described: Option<Described>,
}

/// State that exists once the trace is described.
struct Described {
    page: Page,
    forms: HashMap<EventKey, Form>,
    /// The part of the trace that has lines, once the begin of the trace is known; all of it, if `None`.
    chosen: Option<Chosen>,
    /// Whether requests of io_uring have lines.
    picks_requests: bool,
    /// The current task of each CPU, the files of descriptors, and the table of system calls, if it is printed.
    engine: Engine<Watched>,
}

impl Lines {
    /// Prints to `output`. With `summary`, also prints the table of system calls.
    pub fn new(output: Output, summary: Option<usize>) -> Self {
        Self {
            output: Some(output),
            summary,
            hidden: Hidden::default(),
            choice: LineChoice::default(),
            files: Sources::default(),
            frames: None,
            account: Account::default(),
            described: None,
        }
    }

    /// Leaves out `hidden`.
    pub fn hide(mut self, hidden: Hidden) -> Self {
        self.hidden = hidden;
        self
    }

    /// Prints only the events in `choice`.
    pub fn only(mut self, choice: LineChoice) -> Self {
        self.choice = choice;
        self
    }

    /// Sets the sources of the files that descriptors stand for.
    pub fn files(mut self, sources: Sources) -> Self {
        self.files = sources;
        self
    }

    /// Prints call stacks below the lines.
    pub fn frames(mut self, frames: Option<Frames>) -> Self {
        self.frames = frames;
        self
    }

    /// Sets the known losses of a trace in files.
    pub fn with(mut self, account: Account) -> Self {
        self.account = account;
        self
    }

    fn begin(&mut self, metadata: &Metadata, output: Output) -> Result<Described> {
        let catalogue = Catalogue::new(metadata);
        let summary = self
            .summary
            .map(|_| Syscalls::new(&catalogue, By::Call))
            .transpose()
            .map_err(io::Error::other)
            .map_err(Error::system("--summary"))?;
        let paths = Paths::new(&catalogue, self.files);
        let mut page = Page::new(output, metadata.clock, self.choice.bytes);
        page.frames = self.frames.take();
        Ok(Described {
            page,
            forms: HashMap::new(),
            chosen: None,
            picks_requests: false,
            engine: Engine::new(
                &catalogue,
                std::mem::take(&mut self.account),
                vec![Box::new(Watched::new(&catalogue, paths, summary))],
            ),
        })
    }
}

impl Printer for Lines {
    fn account(&self) -> &Account {
        &self.account
    }
}

impl View for Lines {
    fn describe(&mut self, metadata: &Metadata) -> Result<()> {
        if let Some(output) = self.output.take() {
            self.described = Some(self.begin(metadata, output)?);
        }
        let Some(described) = &mut self.described else {
            return Ok(());
        };
        let has_stacks = described.page.frames.is_some();
        let classes = metadata.streams.iter();
        let layouts = classes.flat_map(|class| class.events.values());
        let forms = layouts.map(|layout| {
            let mut form = Form::new(layout, metadata);
            if has_stacks {
                form.hide_stacks();
            }
            form.is_picked = self.choice.picks(&form, layout);
            form.filter(layout, metadata, &self.choice.filters)?;
            Ok((key(layout), form))
        });
        described.forms = forms.collect::<Result<_>>()?;
        described.find_requests();
        let mut forms = described.forms.values();
        let before = self.hidden.before;
        self.hidden.before = before.filter(|name| forms.any(|form| form.is_begin_of(name)));
        Ok(())
    }

    fn item(&mut self, stream: usize, item: &Item<'_>) -> Result<()> {
        let Some(described) = &mut self.described else {
            return Ok(());
        };
        if let Item::Event(event) = item {
            let Page { frames, clock, .. } = &mut described.page;
            if let Some(frames) = frames {
                frames.renew(clock)?;
            }
            described.event(&mut self.hidden, &self.choice, stream, event);
            return described.page.output.write_block();
        }
        let losses = described.engine.item(stream, item).to_vec();
        described.show_open_requests();
        let Described { page, engine, .. } = described;
        match item {
            Item::Packet(_) => page.reach(engine.extent().begin()),
            Item::Whole { timestamp } | Item::Damaged { timestamp, .. } => page.reach(*timestamp),
            Item::Event(_) | Item::End { .. } => {}
        }
        if !losses.is_empty() {
            // The first call of that name may be among the missing events.
            self.hidden.before = None;
        }
        let chosen = described.chosen.as_ref();
        losses
            .iter()
            .filter(|loss| loss.any() && self.choice.has_lines)
            .filter(|loss| chosen.is_none_or(|chosen| chosen.overlaps(loss.from, loss.to)))
            .for_each(|loss| page.note(loss));
        described.page.output.write_block()
    }

    fn pause(&mut self, _time: u64) -> Result<()> {
        match &mut self.described {
            Some(described) => {
                described.page.frames.iter_mut().for_each(Frames::pause);
                described.page.output.write()
            }
            None => Ok(()),
        }
    }

    fn end(&mut self) -> Result<()> {
        let Some(mut described) = self.described.take() else {
            return Ok(());
        };
        for watched in described.engine.parts().1 {
            watched.open_requests();
        }
        described.show_open_requests();
        let Described {
            mut page, engine, ..
        } = described;
        page.end();
        let begin = page.output.text.len();
        let out = &mut page.output.text;
        let end = engine.extent().end();
        let ended = engine.end(end);
        self.account = ended.account;
        for analysis in ended.analyses {
            let answer = analysis.answer(ended.extent.ticks());
            if self.choice.is_json {
                out.push_str(&object(&*answer).map_err(no_json)?);
                continue;
            }
            answer
                .text(out, self.summary.unwrap_or(0))
                .map_err(no_text)?;
            if self.summary.is_some() && self.account.any() {
                lower_bounds(out).map_err(no_text)?;
            }
        }
        if !self.choice.has_lines && out[begin..].starts_with('\n') {
            // Without lines, the table needs no empty line before it.
            out.remove(begin);
        }
        page.output.write()
    }
}

impl Described {
    /// Finds the events of which requests of io_uring are read. The requests have lines instead of these events.
    fn find_requests(&mut self) {
        self.picks_requests = false;
        let watched = self.engine.parts().1.iter();
        let uring = watched.filter_map(|watched| watched.uring.as_ref());
        for event in uring.flat_map(Uring::events) {
            if let Some(form) = self.forms.get_mut(&event) {
                self.picks_requests |= form.is_picked;
                form.told = Some(Told::Request);
            }
        }
    }

    /// Writes the lines of the requests whose results are not in the trace.
    fn show_open_requests(&mut self) {
        for shown in self.ended_requests(&Who::default()) {
            self.page.request(&shown, &Who::default(), None);
        }
    }

    /// Writes the lines of the requests that an event ends.
    fn requests(&mut self, who: &Who, event: &Event<'_>) {
        self.page.reach(event.timestamp);
        for shown in self.ended_requests(who) {
            let form = self.forms.get(&key(event.layout));
            self.page
                .request(&shown, who, form.map(|form| (form, event)));
        }
    }

    /// Returns the chosen ones of the requests that have ended. `by` is the thread that ended them.
    fn ended_requests(&mut self, by: &Who) -> Vec<Shown> {
        let watched = self.engine.parts().1.iter_mut();
        let mut ended: Vec<_> = watched
            .flat_map(|watched| watched.requests.drain(..))
            .collect();
        let now = self.page.now();
        let chosen = self.chosen.as_ref();
        ended.retain(|shown| {
            let who = shown.who();
            let who = who.as_ref().unwrap_or(by);
            self.picks_requests && chosen.is_none_or(|chosen| who.is_in(chosen, now))
        });
        ended
    }

    fn event(
        &mut self,
        hidden: &mut Hidden,
        choice: &LineChoice,
        stream: usize,
        event: &Event<'_>,
    ) {
        let Some(form) = self.forms.get(&key(event.layout)) else {
            return;
        };
        let Some(happened) = self.engine.happen(stream, event) else {
            return;
        };
        let mut who = Who::of(self.engine.schedule().task(&happened));
        if who.tid.is_none() {
            let comm = recorded_comm(event).map(printing::text);
            who.comm = comm.map(Cow::into_owned);
        }
        if hidden.before.is_some_and(|name| form.is_begin_of(name)) {
            hidden.before = None;
        }
        if self.chosen.is_none() && !choice.part.is_all() {
            let begin = self.engine.extent().begin();
            self.chosen = Some(Chosen::new(choice.part.clone(), &self.page.clock, begin));
        }
        let mut chosen = self.chosen.iter();
        let is_chosen = chosen.all(|chosen| who.is_in(chosen, event.timestamp));
        let is_own = hidden.process.is_some() && who.pid == hidden.process;
        let is_hidden = hidden.before.is_some() || is_own;
        let is_left_out = hidden.forms.iter().any(|name| form.is_called(name))
            || hidden.chosen.as_ref().is_some_and(|patterns| {
                let compat = form.compat(event);
                compat.is_some_and(|(edge, call)| !patterns.choose_compat(edge, &call))
            });
        let is_printed = !is_hidden && !is_left_out && form.is_picked && is_chosen;
        if !is_hidden || form.kind == EventKind::Event {
            for watched in self.engine.parts().1 {
                watched.is_counted = is_chosen;
            }
            self.engine.analyse(event, &happened);
        }
        if matches!(form.told, Some(Told::Request)) {
            return self.requests(&who, event);
        }
        if let Some(process) = happened.exec {
            self.page.exec(process, &who, event.timestamp);
        }
        if is_printed {
            let owner = who.owner();
            let (schedule, watched) = self.engine.parts();
            let now = Moment::new(schedule, event, &happened);
            let mut all = watched.iter_mut();
            let is_end = all.any(|watched| watched.ends(form.kind, &now));
            self.page.event(form, who, is_end, event, &mut |fd| {
                let mut paths = watched
                    .iter_mut()
                    .filter_map(|watched| watched.paths.as_mut());
                paths.find_map(|paths| paths.file(owner, fd, event.timestamp))
            });
        }
    }
}

/// The table of system calls as a JSON object, as in `rtrace report --syscalls --json`.
fn object(answer: &dyn Answer) -> serde_json::Result<String> {
    let object = serde_json::json!({ "syscalls": answer.json()? });
    Schema::Calls.json(&object, None)
}

/// The error for a table that is no JSON, which cannot happen.
fn no_json(error: serde_json::Error) -> Error {
    Error::system("cannot format")(io::Error::from(error))
}

/// The error for a failed write to a String, which cannot happen.
pub(super) fn no_text(error: fmt::Error) -> Error {
    Error::system("cannot format")(io::Error::other(error))
}
