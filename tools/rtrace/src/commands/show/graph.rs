// SPDX-License-Identifier: GPL-2.0

//! Who looks at a trace and prints its calls of functions as a tree.

use super::arguments::{write_arguments, Form};
use super::output::Output;
use super::tree::{Call, Place, Tree};
use super::who::Who;
use super::Printer;
use analysis::dispatch::Dispatch;
use analysis::head::Extent;
use analysis::loss::{Lost, DAMAGED};
use analysis::syscalls::Syscalls;
use analysis::{integer, key, Catalogue, EventKey};
use consumer::viewer::View;
use ctf::{Event, EventLayout, Item, Metadata, Value};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use symbols::Symbols;
use system::Result;

/// The names of the events.
const ENTRY: &str = "funcgraph_entry";
const EXIT: &str = "funcgraph_exit";
const FUNCTION: &str = "function";

/// Prints a trace.
pub struct Graph {
    output: Output,
    /// The trace's, if it is one in files.
    dir: Option<PathBuf>,
    lost: Lost,
    extent: Extent,
    /// What the threads of this process do is left out.
    hidden: Option<i64>,
    described: Option<Described>,
}

/// What there is when the trace is described.
struct Described {
    tree: Tree,
    symbols: Symbols,
    kinds: HashMap<EventKey, Kind>,
    /// Who runs where.
    dispatch: Dispatch<Syscalls>,
    /// The CPUs, by stream.
    cpus: HashMap<usize, u32>,
}

/// What an event is, and where its fields are.
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
    Other(Form),
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
            _ => Self::Other(Form::new(layout, metadata)),
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
            lost: Lost::default(),
            extent: Extent::default(),
            hidden: None,
            described: None,
        }
    }

    /// The same, without what the threads of a process do.
    pub fn hide(mut self, process: i64) -> Self {
        self.hidden = Some(process);
        self
    }

    /// The same, of the trace in a directory, of which this is known.
    pub fn of(mut self, dir: &Path, lost: Lost) -> Self {
        self.dir = Some(dir.to_owned());
        self.lost = lost;
        self
    }
}

impl Printer for Graph {
    fn lost(&self) -> &Lost {
        &self.lost
    }
}

impl View for Graph {
    fn describe(&mut self, metadata: &Metadata) -> Result<()> {
        let output = &mut self.output.text;
        let described = self.described.get_or_insert_with(|| {
            Tree::head(output);
            Described {
                tree: Tree::default(),
                symbols: match &self.dir {
                    Some(dir) => Symbols::of(dir, metadata),
                    None => Symbols::running(metadata),
                },
                kinds: HashMap::new(),
                dispatch: Dispatch::new(&Catalogue::new(metadata), Vec::new()),
                cpus: HashMap::new(),
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
        let out = &mut self.output.text;
        match item {
            Item::Packet(packet) => {
                let header = packet.at.header;
                self.extent
                    .add(header.timestamp_begin, header.timestamp_end);
                described.cpus.insert(stream, header.cpu_id);
                described.dispatch.packet(stream, packet);
                let missing = self.lost.packet(stream, packet);
                // It begins where they are missing.
                if packet.packets_lost > 0 || packet.events_lost > 0 {
                    described.tree.lose(out);
                }
                if missing.any() {
                    out.push_str(&format!("{missing}\n"));
                }
            }
            Item::Whole { timestamp } => described.dispatch.whole(stream, *timestamp),
            Item::Event(event) => {
                self.lost.event(stream);
                described.event(out, self.hidden, stream, event);
            }
            Item::Damaged { damage, timestamp } => {
                self.lost.damage(damage);
                described.dispatch.lose_from(stream, *timestamp);
                described.tree.lose(out);
                out.push_str(&format!("{DAMAGED}\n"));
            }
            Item::End { partial } => {
                if self.lost.is_cut(*partial) {
                    described.dispatch.cut(stream);
                    described.tree.lose(out);
                }
            }
        }
        self.output.write_block()
    }

    fn pause(&mut self, _time: u64) -> Result<()> {
        if let Some(described) = &mut self.described {
            described.tree.settle_all(&mut self.output.text);
        }
        self.output.write()
    }

    fn end(&mut self) -> Result<()> {
        if let Some(mut described) = self.described.take() {
            described.tree.settle_all(&mut self.output.text);
        }
        self.output.write()
    }
}

impl Described {
    fn event(&mut self, out: &mut String, hidden: Option<i64>, stream: usize, event: &Event<'_>) {
        let Some(happened) = self.dispatch.happen(stream, event) else {
            return;
        };
        let who = Who::of(self.dispatch.schedule().task(&happened));
        if hidden.is_some() && who.pid == hidden {
            return;
        }
        let (Some(kind), Some(&cpu)) = (self.kinds.get(&key(event.layout)), self.cpus.get(&stream))
        else {
            return;
        };
        let place = Place { cpu, who: &who };
        let symbols = &self.symbols;
        let name = |field| name(symbols, address(event.value(field)));
        let call = |function, depth| Call {
            function: address(event.value(function)),
            depth: integer(event.value(depth)).map_or(0, |depth| depth as u32),
        };
        match kind {
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

/// The function that an address is in, or the address.
fn name(symbols: &Symbols, address: u64) -> String {
    match symbols.kernel(address) {
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
