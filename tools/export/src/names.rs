// SPDX-License-Identifier: GPL-2.0

//! Names of the functions in a trace, saved with the trace.

use super::format::{Format, Loss, Now};
use super::nameless::Nameless;
use super::pass;
use super::Choice;
use analysis::{bits, key, EventKey};
use ctf::{Event, EventLayout};
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;
use store::{maps, Trace};
use symbols::{Frame, Names, Place, Recorded, Servers, Side, Stacks, Symbols};
use system::access::Access;
use terminal::progress;

/// Fields with addresses of code: a called function, its caller, or the instruction that a sample interrupted.
const CODE: [&str; 3] = ["func", "parent_ip", "ip"];

/// Gathers functions.
struct Functions {
    /// Stacks by stream class.
    stacks: Vec<Stacks>,
    /// The fields of events that are addresses of code.
    code: HashMap<EventKey, Vec<usize>>,
    symbols: Symbols,
    names: Names,
    nameless: Nameless,
}

/// Saves the names of functions beside the trace in `dir`, which has its mappings and maps already: functions in call
/// stacks, and functions that events are about. `recorded` has the code of the time of the recording; without it, only functions of
/// the running kernel have names. If this machine lacks symbols of a program, the function requests them from `servers`.
/// Returns what is missing.
pub fn save_names(
    dir: &Path,
    recorded: Option<&Recorded>,
    servers: Option<Servers>,
    access: Access,
) -> anyhow::Result<Nameless> {
    let trace = Trace::open(dir)?;
    let choice = Choice::default();
    let chosen = choice.events(&trace.metadata)?;
    let classes = trace.metadata.streams.iter();
    let layouts = classes.clone().flat_map(|class| class.events.values());
    let code = |layout: &EventLayout| -> Vec<usize> {
        CODE.iter().filter_map(|name| layout.field(name)).collect()
    };
    let code: HashMap<_, _> = layouts.map(|layout| (key(layout), code(layout))).collect();
    let has_code = code.values().any(|fields| !fields.is_empty());
    if recorded.is_none() && !has_code && Stacks::of_all(&trace.metadata).is_none() {
        return Ok(Nameless::default());
    }
    let mut symbols = match recorded {
        Some(recorded) => Symbols::recorded(dir, &trace.metadata, recorded)?,
        None => Symbols::of(dir, &trace.metadata),
    };
    if let Some(servers) = servers {
        symbols.ask(servers);
    }
    let mut functions = Functions {
        stacks: classes.map(Stacks::of).collect(),
        code,
        symbols,
        names: Names::default(),
        nameless: Nameless::default(),
    };
    let bar = progress::reading(trace.bytes)?;
    let (none, progress) = (&mut io::sink(), |bytes| {
        bar.inc(bytes);
        Ok(())
    });
    pass::read(&trace, &choice, chosen, &mut functions, none, progress)?;
    bar.finish_and_clear();
    for table in maps::read(dir, trace.metadata.uuid)? {
        for stack in table.user_stacks() {
            for frame in Frame::of_user(stack) {
                functions.of_thread(stack.pid.into(), u64::MAX, frame.code());
            }
        }
    }
    functions.names.save(dir, trace.metadata.uuid, access)?;
    Ok(functions.nameless)
}

impl Functions {
    fn kernel(&mut self, ns: u64, code: u64) {
        if let Some((image, symbol)) = self.symbols.image(ns, code) {
            let functions = self
                .names
                .kernel
                .entry((image.from, image.until))
                .or_default();
            if !functions.contains(symbol) {
                functions.insert(symbol.clone());
            }
        }
    }

    fn user(&mut self, now: &Now<'_>, code: u64) {
        if let Some(task) = now.task {
            self.of_thread(task.tid, now.ns, code);
        }
    }

    fn of_thread(&mut self, tid: i64, ns: u64, code: u64) {
        let Some(Place {
            file,
            function,
            offset,
            inlined,
            is_gone,
        }) = self.symbols.user(tid, ns, code)
        else {
            return;
        };
        self.nameless.add(file, function.is_some(), is_gone);
        let Some(function) = function else {
            if is_gone && !self.names.gone.contains(file) {
                self.names.gone.insert(file.clone());
            }
            return;
        };
        if !inlined.is_empty() {
            let known = match self.names.inlined.get_mut(file) {
                Some(known) => known,
                None => self.names.inlined.entry(file.clone()).or_default(),
            };
            known.entry(offset).or_insert_with(|| inlined.to_vec());
        }
        let functions = match self.names.files.get_mut(file) {
            Some(functions) => functions,
            None => self.names.files.entry(file.clone()).or_default(),
        };
        if !functions.contains(function) {
            functions.insert(function.clone());
        }
    }
}

impl Format for Functions {
    fn event(&mut self, event: &Event<'_>, now: &Now<'_>, _out: &mut dyn Write) -> io::Result<()> {
        let stacks = self.stacks[event.layout.stream_id as usize];
        for frame in stacks.frames(event, Side::Kernel) {
            self.kernel(now.ns, frame.code());
        }
        for frame in stacks.frames(event, Side::User) {
            self.user(now, frame.code());
        }
        let fields = self.code.get(&key(event.layout));
        let fields = fields.into_iter().flatten();
        let code: Vec<_> = fields
            .filter_map(|field| bits(event.value(*field)))
            .collect();
        for code in code {
            match Side::of(code) {
                Side::Kernel => self.kernel(now.ns, code),
                Side::User => self.user(now, code),
            }
        }
        Ok(())
    }

    /// Losses are not saved.
    fn loss(&mut self, _loss: &Loss, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
