// SPDX-License-Identifier: GPL-2.0

//! Names of the functions in a trace, saved with the trace.

use super::format::{Format, Loss, Now};
use super::pass;
use super::Choice;
use analysis::{bits, key, EventKey};
use ctf::{Event, EventLayout};
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;
use store::Trace;
use symbols::{Names, Place, Servers, Side, Stacks, Symbols};
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
}

/// Saves the names of functions beside the trace in `dir`: functions in call stacks, and functions that events
/// are about. If this machine lacks symbols of a program, the function requests them from `servers`.
pub fn save_names(dir: &Path, servers: Option<Servers>, access: Access) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    let choice = Choice::default();
    let chosen = choice.events(&trace.metadata)?;
    let classes = trace.metadata.streams.iter();
    let layouts = classes.clone().flat_map(|class| class.events.values());
    let code = |layout: &EventLayout| CODE.iter().filter_map(|name| layout.field(name)).collect();
    let mut symbols = Symbols::of(dir, &trace.metadata);
    if let Some(servers) = servers {
        symbols.ask(servers);
    }
    let mut functions = Functions {
        stacks: classes.map(Stacks::of).collect(),
        code: layouts.map(|layout| (key(layout), code(layout))).collect(),
        symbols,
        names: Names::default(),
    };
    let bar = progress::reading(trace.bytes)?;
    let (none, progress) = (&mut io::sink(), |bytes| {
        bar.inc(bytes);
        Ok(())
    });
    pass::read(&trace, &choice, chosen, &mut functions, none, progress)?;
    bar.finish_and_clear();
    Ok(functions.names.save(dir, trace.metadata.uuid, access)?)
}

impl Functions {
    fn kernel(&mut self, code: u64) {
        if let Some(symbol) = self.symbols.kernel(code) {
            if !self.names.kernel.contains(symbol) {
                self.names.kernel.insert(symbol.clone());
            }
        }
    }

    fn user(&mut self, now: &Now<'_>, code: u64) {
        let Some(task) = now.task else {
            return;
        };
        let Some(Place {
            file,
            function: Some(function),
            ..
        }) = self.symbols.user(task.tid, now.ns, code)
        else {
            return;
        };
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
            self.kernel(frame.code());
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
                Side::Kernel => self.kernel(code),
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
