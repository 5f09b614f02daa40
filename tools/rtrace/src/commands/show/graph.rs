// SPDX-License-Identifier: GPL-2.0

//! View that prints the calls of functions of a trace as a tree.

use super::argument::write_arguments;
use super::arguments::Form;
use super::lines::no_text;
use super::output::Output;
use super::tree::{FunctionCall, Place, Tree};
use super::who::Who;
use super::Printer;
use analysis::choice::{Chosen, Part};
use analysis::durations::{accuracy, Durations, COARSE_ERROR, HEADINGS};
use analysis::engine::Engine;
use analysis::frame::lower_bounds;
use analysis::loss::Account;
use analysis::syscalls::Syscalls;
use analysis::text::{more, table};
use analysis::{integer, key, Catalogue, EventKey};
use consumer::viewer::View;
use ctf::{Clock, Event, EventLayout, Item, Metadata, Value};
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use symbols::Symbols;
use system::Result;
use terminal::{duration, printable};

/// Names of the events, without the subsystem.
const ENTRY: &str = "funcgraph_entry";
const EXIT: &str = "funcgraph_exit";
const FUNCTION: &str = "function";

/// Prints the calls of functions of a trace.
pub struct Graph {
    output: Output,
    /// The directory of the trace, if the trace is in files.
    dir: Option<PathBuf>,
    /// Losses of the trace. The engine has them while the trace is read.
    account: Account,
    /// The process whose threads are left out.
    hidden: Option<i64>,
    /// The part of the trace that is shown.
    choice: Part,
    /// Durations by function, and the number of rows, if a table is printed instead of the tree.
    summary: Option<(HashMap<String, Durations>, usize)>,
    described: Option<Described>,
}

/// State that exists once the trace is described.
struct Described {
    clock: Clock,
    tree: Tree,
    symbols: Symbols,
    kinds: HashMap<EventKey, Kind>,
    /// The current task of each CPU.
    engine: Engine<Syscalls>,
    /// The part of the trace that is shown, once the begin of the trace is known; all of it, if `None`.
    chosen: Option<Chosen>,
}

/// Type of an event, with the numbers of its fields.
enum Kind {
    Entry {
        function: usize,
        depth: usize,
    },
    Exit {
        function: usize,
        depth: usize,
        duration: usize,
    },
    /// A function was called.
    Function {
        ip: usize,
        parent: usize,
    },
    Other(Box<Form>),
}

impl Kind {
    fn new(layout: &EventLayout, metadata: &Metadata) -> Self {
        let graph = layout.field("func").zip(layout.field("depth"));
        let function = layout.field("ip").zip(layout.field("parent_ip"));
        let bare = layout.name.rsplit(':').next();
        match (bare, graph, function, layout.field("duration")) {
            (Some(ENTRY), Some((function, depth)), ..) => Self::Entry { function, depth },
            (Some(EXIT), Some((function, depth)), _, Some(duration)) => Self::Exit {
                function,
                depth,
                duration,
            },
            (Some(FUNCTION), _, Some((ip, parent)), _) => Self::Function { ip, parent },
            _ => Self::Other(Box::new(Form::new(layout, metadata))),
        }
    }
}

/// Whether a trace has calls of functions.
pub fn is_in(metadata: &Metadata) -> bool {
    let classes = metadata.streams.iter();
    let mut layouts = classes.flat_map(|class| class.events.values());
    layouts.any(|layout| !matches!(Kind::new(layout, metadata), Kind::Other(_)))
}

impl Graph {
    /// Prints to `output`.
    pub fn new(output: Output) -> Self {
        Self {
            output,
            dir: None,
            account: Account::default(),
            hidden: None,
            choice: Part::default(),
            summary: None,
            described: None,
        }
    }

    /// Leaves out the events of the threads of a process.
    pub fn hide(mut self, process: i64) -> Self {
        self.hidden = Some(process);
        self
    }

    /// Prints only the calls in `choice`.
    pub fn only(mut self, choice: Part) -> Self {
        self.choice = choice;
        self
    }

    /// Prints a table of functions with `rows` rows instead of the tree.
    pub fn summary(mut self, rows: Option<usize>) -> Self {
        self.summary = rows.map(|rows| (HashMap::new(), rows));
        self
    }

    /// Sets the directory of the trace and its known losses.
    pub fn of(mut self, dir: &Path, account: Account) -> Self {
        self.dir = Some(dir.to_owned());
        self.account = account;
        self
    }
}

impl Printer for Graph {
    fn account(&self) -> &Account {
        &self.account
    }
}

impl View for Graph {
    fn describe(&mut self, metadata: &Metadata) -> Result<()> {
        let (output, account) = (&mut self.output.text, &mut self.account);
        let described = self.described.get_or_insert_with(|| {
            if self.summary.is_none() {
                Tree::head(output);
            }
            Described {
                clock: metadata.clock,
                tree: Tree::default(),
                symbols: match &self.dir {
                    Some(dir) => Symbols::of(dir, metadata),
                    None => Symbols::running(metadata),
                },
                kinds: HashMap::new(),
                chosen: None,
                engine: Engine::new(
                    &Catalogue::new(metadata),
                    std::mem::take(account),
                    Vec::new(),
                ),
            }
        });
        let classes = metadata.streams.iter();
        let layouts = classes.flat_map(|class| class.events.values());
        described.kinds = layouts
            .map(|layout| (key(layout), Kind::new(layout, metadata)))
            .collect();
        Ok(())
    }

    fn item(&mut self, stream: usize, item: &Item<'_>) -> Result<()> {
        let Some(described) = &mut self.described else {
            return Ok(());
        };
        if let Item::Packet(_) = item {
            described.symbols.renew();
        }
        let (mut unprinted, is_tree) = (String::new(), self.summary.is_none());
        let out = match is_tree {
            true => &mut self.output.text,
            false => &mut unprinted,
        };
        if let Item::Event(event) = item {
            if !self.choice.is_all() && described.chosen.is_none() {
                let begin = described.engine.extent().begin();
                let clock = &described.clock;
                described.chosen = Some(Chosen::new(self.choice.clone(), clock, begin));
            }
            let mut durations = self.summary.as_mut().map(|(durations, _)| durations);
            described.event(out, self.hidden, &mut durations, stream, event);
            return self.output.write_block();
        }
        for loss in described.engine.item(stream, item) {
            described.tree.lose(out);
            let mut chosen = described.chosen.iter();
            if loss.any() && chosen.all(|chosen| chosen.overlaps(loss.from, loss.to)) {
                out.push_str(&format!("{loss}\n"));
            }
        }
        if let Item::End { partial, .. } = item {
            if described.engine.account().is_cut(*partial) {
                described.tree.lose(out);
            }
        }
        self.output.write_block()
    }

    fn pause(&mut self, _time: u64) -> Result<()> {
        if let (Some(described), None) = (&mut self.described, &self.summary) {
            described.tree.settle_all(&mut self.output.text);
        }
        self.output.write()
    }

    fn end(&mut self) -> Result<()> {
        if let Some(mut described) = self.described.take() {
            let out = &mut self.output.text;
            if self.summary.is_none() {
                described.tree.settle_all(out);
            }
            let end = described.engine.extent().end();
            self.account = described.engine.end(end).account;
            if let Some((durations, rows)) = self.summary.take() {
                table_of(out, durations, rows).map_err(no_text)?;
                if self.account.any() {
                    lower_bounds(out).map_err(no_text)?;
                }
            }
        }
        self.output.write()
    }
}

impl Described {
    fn event(
        &mut self,
        out: &mut String,
        hidden: Option<i64>,
        durations: &mut Option<&mut HashMap<String, Durations>>,
        stream: usize,
        event: &Event<'_>,
    ) {
        let Some(happened) = self.engine.happen(stream, event) else {
            return;
        };
        let who = Who::of(self.engine.schedule().task(&happened));
        if hidden.is_some() && who.pid == hidden {
            return;
        }
        let mut chosen = self.chosen.iter();
        if chosen.any(|chosen| !who.is_in(chosen, event.timestamp)) {
            return;
        }
        let Some(kind) = self.kinds.get(&key(event.layout)) else {
            return;
        };
        let cpu = self.engine.schedule().number(happened.cpu);
        let place = Place { cpu, who: &who };
        let symbols = &self.symbols;
        let ns = self.clock.nanoseconds(event.timestamp);
        let name = |field| name(symbols, ns, address(event.value(field)));
        let call = |function, depth| FunctionCall {
            function: address(event.value(function)),
            depth: integer(event.value(depth)).map_or(0, |depth| depth as u32),
        };
        match kind {
            Kind::Entry { .. } | Kind::Function { .. } | Kind::Other(_) if durations.is_some() => {}
            Kind::Entry { function, depth } => {
                let call = call(*function, *depth);
                self.tree.begin(out, place, call, name(*function));
            }
            Kind::Exit {
                function,
                depth,
                duration,
            } => {
                let nanoseconds = integer(event.value(*duration)).unwrap_or(0).unsigned_abs();
                let call = call(*function, *depth);
                let name = name(*function);
                if let Some(durations) = durations {
                    let known = durations.entry(name).or_insert_with(Durations::coarse);
                    return known.add(nanoseconds);
                }
                self.tree.end(out, place, call, &name, nanoseconds);
            }
            Kind::Function { ip, parent } => {
                let what = format!("{} <-{}", name(*ip), name(*parent));
                self.tree.note(out, place, what);
            }
            Kind::Other(form) => {
                let mut what = format!("{}: ", form.name(event));
                write_arguments(&mut what, form.arguments(event, &mut |_| None));
                self.tree.note(out, place, what);
            }
        }
    }
}

/// Writes a table of functions, the longest total first.
fn table_of(out: &mut String, durations: HashMap<String, Durations>, rows: usize) -> fmt::Result {
    let mut functions: Vec<_> = durations.into_iter().collect();
    functions.sort_by(|(a, of_a), (b, of_b)| {
        of_b.total_ns().cmp(&of_a.total_ns()).then_with(|| a.cmp(b))
    });
    let heading = format!("{:>10} {:>10} {HEADINGS}  function", "calls", "total");
    table(out, &heading, &functions, rows, |(name, durations)| {
        let (calls, total) = (durations.count(), duration(durations.total_ns()));
        format!(
            "{calls:>10} {total:>10} {}  {}",
            durations.columns(),
            printable(name)
        )
    })?;
    more(out, functions.len(), rows, "functions")?;
    writeln!(out, "\n{}", accuracy(COARSE_ERROR))
}

/// The name of the function at an address then, or the address.
fn name(symbols: &Symbols, ns: u64, address: u64) -> String {
    match symbols.kernel(ns, address) {
        Some(symbol) => symbol.name.clone(),
        None => format!("{address:#x}"),
    }
}

fn address(value: Option<Value<'_>>) -> u64 {
    match value {
        Some(Value::Unsigned(address)) => address,
        Some(Value::Signed(address)) => address as u64,
        _ => 0,
    }
}
