// SPDX-License-Identifier: GPL-2.0

//! The call stacks of a trace's events, as a tree: for a flame graph.
//!
//! From the root: the event, the name of the thread, its user stack from the outermost caller on, its
//! kernel stack.

use ctf::{Event, Value};
use std::collections::HashMap;

/// At most so many nodes. What has no place counts for its caller.
const NODES: usize = 100_000;

/// What a node stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Frame {
    /// An event, by its place among the events.
    Event(u32),
    /// Threads of this name.
    Thread(Vec<u8>),
    Address(u64),
}

/// A node of the tree.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The place of the node below it; none of the events.
    pub parent: Option<u32>,
    /// The place of its label.
    pub label: u32,
    /// How many stacks end here.
    pub count: u64,
}

/// The tree.
#[derive(Debug, Default)]
pub struct Stacks {
    /// Each behind its parent.
    pub nodes: Vec<Node>,
    places: HashMap<(Option<u32>, u32), u32>,
    labels: HashMap<Frame, u32>,
    /// Stacks that did not fit in whole.
    pub cut: u64,
}

impl Stacks {
    /// A record of the event at this place, of a thread of this name.
    pub fn add(&mut self, event: &Event<'_>, place: u32, comm: &[u8]) {
        let mut addresses = Vec::new();
        for context in ["callstack_user", "callstack_kernel"] {
            let context = event.class.context(context);
            if let Some(Value::Integers(stack)) = context.and_then(|place| event.context(place)) {
                let begin = addresses.len();
                addresses.extend(stack.filter_map(|address| match address {
                    // Tracers end a stack so.
                    Value::Unsigned(0 | u64::MAX) => None,
                    Value::Unsigned(address) => Some(Frame::Address(address)),
                    _ => None,
                }));
                addresses[begin..].reverse();
            }
        }
        if addresses.is_empty() {
            return;
        }
        let mut last = None;
        let frames = [Frame::Event(place), Frame::Thread(comm.to_vec())];
        for frame in frames.into_iter().chain(addresses) {
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

    /// The node of a frame above another; none if there is no place for it.
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

    /// The labels by place, of a trace with these events.
    pub fn labels(&self, events: &[String]) -> Vec<String> {
        let mut labels: Vec<_> = self.labels.iter().collect();
        labels.sort_unstable_by_key(|(_, place)| **place);
        let text = |frame: &Frame| match frame {
            Frame::Event(place) => events[*place as usize].clone(),
            Frame::Thread(comm) => String::from_utf8_lossy(comm).into_owned(),
            Frame::Address(address) => format!("{address:#x}"),
        };
        labels.into_iter().map(|(frame, _)| text(frame)).collect()
    }
}
