// SPDX-License-Identifier: GPL-2.0

//! The call stacks of a trace's events, as a tree: for a flame graph.
//!
//! The path from the root: the event, the name of the thread, its user stack from the outermost caller on, its
//! kernel stack. If the user stack lacks callers, it begins with the reason.

use ctf::{Clock, Event, Metadata};
use std::collections::HashMap;
use std::path::Path;
use symbols::{Place, Side, Symbols};
use system::printing;

/// Maximum number of nodes. A stack without room for a frame counts for the frame's caller.
const NODES: usize = 100_000;

/// Meaning of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Frame {
    /// The event at this place among the events.
    Event(u32),
    /// Threads with this name.
    Thread(Vec<u8>),
    /// A function and its file or module, or the address if the function is not known; or the reason why callers are
    /// missing.
    Code(String),
}

/// The stacks of a trace's events, and the names of the functions in them.
#[derive(Debug)]
struct Source {
    /// Stacks by stream class.
    stacks: Vec<symbols::Stacks>,
    symbols: Symbols,
    clock: Clock,
}

/// A node of the tree.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Place of the parent node. None for nodes of events.
    pub parent: Option<u32>,
    /// Place of the label.
    pub label: u32,
    /// Number of stacks that end at this node.
    pub count: u64,
}

/// The tree.
#[derive(Debug, Default)]
pub struct Stacks {
    /// None if no event has a stack.
    source: Option<Source>,
    /// Nodes; each one follows its parent.
    pub nodes: Vec<Node>,
    places: HashMap<(Option<u32>, u32), u32>,
    labels: HashMap<Frame, u32>,
    /// Number of stacks that are not complete in the tree.
    pub cut: u64,
}

impl Stacks {
    /// For the trace in `dir`.
    pub fn new(dir: &Path, metadata: &Metadata) -> Self {
        let source = symbols::Stacks::of_all(metadata).map(|stacks| Source {
            stacks,
            symbols: Symbols::of(dir, metadata),
            clock: metadata.clock,
        });
        Self {
            source,
            ..Self::default()
        }
    }

    /// Adds the stack of an event: `place` is its place among the events, `comm` the name of its thread.
    pub fn add(&mut self, event: &Event<'_>, place: u32, tid: Option<i64>, comm: &[u8]) {
        let Some(code) = self.source.as_mut().map(|source| source.code(event, tid)) else {
            return;
        };
        if code.is_empty() {
            return;
        }
        let mut last = None;
        let frames = [Frame::Event(place), Frame::Thread(comm.to_vec())];
        for frame in frames.into_iter().chain(code) {
            let Some(node) = self.node(last, frame) else {
                self.cut += 1;
                break;
            };
            last = Some(node);
        }
        if let Some(last) = last {
            self.nodes[last as usize].count += 1;
        }
    }

    /// Returns the node of a frame below its parent. None if the tree is full.
    fn node(&mut self, parent: Option<u32>, frame: Frame) -> Option<u32> {
        let label = self.labels.get(&frame).copied();
        if let Some(place) = label.and_then(|label| self.places.get(&(parent, label))) {
            return Some(*place);
        }
        if self.nodes.len() >= NODES {
            return None;
        }
        let next = self.labels.len() as u32;
        let label = *self.labels.entry(frame).or_insert(next);
        let place = self.nodes.len() as u32;
        self.places.insert((parent, label), place);
        self.nodes.push(Node {
            parent,
            label,
            count: 0,
        });
        Some(place)
    }

    /// Returns the labels by place, for a trace with these events.
    pub fn labels(&self, events: &[String]) -> Vec<String> {
        let mut labels: Vec<_> = self.labels.iter().collect();
        labels.sort_unstable_by_key(|(_, place)| **place);
        let text = |frame: &Frame| match frame {
            Frame::Event(place) => events[*place as usize].clone(),
            Frame::Thread(comm) => printing::text(comm).into_owned(),
            Frame::Code(text) => text.clone(),
        };
        labels.into_iter().map(|(frame, _)| text(frame)).collect()
    }
}

impl Source {
    /// Returns the functions of an event's stack, the outermost caller first. If callers are missing, the first one says
    /// why.
    fn code(&mut self, event: &Event<'_>, tid: Option<i64>) -> Vec<Frame> {
        let Some(stacks) = self.stacks.get(event.layout.stream_id as usize) else {
            return Vec::new();
        };
        let ns = self.clock.nanoseconds(event.timestamp);
        let symbols = &mut self.symbols;
        let mut code: Vec<_> = stacks.cut(event).into_iter().collect();
        for frame in stacks.frames(event, Side::User).rev() {
            let place = tid.and_then(|tid| symbols.user(tid, ns, frame.code()));
            code.push(match place {
                Some(Place {
                    file,
                    function: Some(function),
                    ..
                }) => format!("{} [{}]", function.name, file.name()),
                Some(Place { file, .. }) => format!("[{}]", file.name()),
                None => format!("{:#x}", frame.address),
            });
            if let Some(place) = &place {
                let file = place.file.name();
                let inlined = place.inlined().rev();
                code.extend(inlined.map(|name| format!("{name} [{file}]")));
            }
        }
        for frame in stacks.frames(event, Side::Kernel).rev() {
            code.push(match symbols.kernel(ns, frame.code()) {
                Some(symbol) => {
                    let module = symbol.module.as_deref().unwrap_or("kernel");
                    format!("{} [{module}]", symbol.name)
                }
                None => format!("{:#x} [kernel]", frame.address),
            });
        }
        code.into_iter().map(Frame::Code).collect()
    }
}
