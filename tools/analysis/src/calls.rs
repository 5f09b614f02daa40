// SPDX-License-Identifier: GPL-2.0

//! System calls of some names, entry and exit as one: what was asked for, and what came of it.

use super::begun::Begun;
use super::schedule::Schedule;
use super::schedule_events::Switch;
use super::syscalls::{self, CallName};
use super::tasks::Life;
use super::whose::Owner;
use super::{bits, integer, key, text, Catalogue, EventKey, Moment};
use ctf::Event;

/// Arguments that are looked at, at most.
const ARGUMENTS: usize = 3;

/// A system call to look at.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<C> {
    /// Its name.
    pub name: &'static str,
    /// What it is for who wants it.
    pub does: C,
    /// The names of integer arguments, in the order in which they are wanted; empty where the call has
    /// none there.
    pub arguments: [&'static str; ARGUMENTS],
    /// The name of an argument that is a text, if one is wanted.
    pub text: Option<&'static str>,
}

/// The system calls of a trace that are looked at.
#[derive(Debug)]
pub struct Calls<C: 'static> {
    wanted: &'static [Wanted<C>],
    events: Vec<(EventKey, Kind<C>)>,
    open: Begun<(), Entry<C>>,
}

/// What an event is, and what is where in it.
#[derive(Clone, Copy, Debug)]
struct Kind<C> {
    call: Which<C>,
    edge: Edge,
}

/// Which call an event is of.
#[derive(Clone, Copy, Debug)]
enum Which<C> {
    /// The one that does this.
    Own(C),
    /// The one whose number is in this field; its arguments have numbers, too.
    OfNumber(usize),
}

#[derive(Clone, Copy, Debug)]
enum Edge {
    Entry {
        arguments: [Option<usize>; ARGUMENTS],
        text: Option<usize>,
    },
    Exit {
        ret: usize,
    },
}

/// What the entry of a call said.
#[derive(Clone, Debug)]
pub struct Entry<C> {
    /// What it does.
    pub does: C,
    /// Who made it.
    pub owner: Owner,
    /// Which of those that had the owner's id.
    pub life: Life,
    /// The thread that made it.
    pub tid: i64,
    /// The name of its process, if that is known.
    pub comm: Option<Vec<u8>>,
    /// The values of the wanted arguments; a signed one as its 64 bits.
    pub arguments: [Option<u64>; ARGUMENTS],
    /// The value of the wanted text.
    pub text: Option<Vec<u8>>,
}

/// A call that has returned.
#[derive(Debug)]
pub struct Call<C> {
    /// What it does.
    pub does: C,
    /// What it returned.
    pub ret: i64,
    /// What its entry said; none if that is not known.
    pub entry: Option<Entry<C>>,
    /// When it began, in clock ticks, if that is known.
    pub since: u64,
    /// Clock ticks from then on.
    pub ticks: u64,
}

impl<C: Copy + PartialEq> Calls<C> {
    /// Those of `wanted` that the trace has, if any of them is complete and it is known who made it.
    pub fn new(catalogue: &Catalogue<'_>, all: &'static [Wanted<C>]) -> Option<Self> {
        let mut events = Vec::new();
        for wanted in all {
            let layout = |edge| catalogue.event(&format!("syscall_{edge}_{}", wanted.name));
            let (Some(entry), Some(exit)) = (layout("entry"), layout("exit")) else {
                continue;
            };
            let Some(ret) = exit.field("ret") else {
                continue;
            };
            let edges = [
                Edge::Entry {
                    arguments: wanted.arguments.map(|name| entry.field(name)),
                    text: wanted.text.and_then(|name| entry.field(name)),
                },
                Edge::Exit { ret },
            ];
            for (layout, edge) in [entry, exit].into_iter().zip(edges) {
                if catalogue.knows_thread(layout) {
                    let call = Which::Own(wanted.does);
                    events.push((key(layout), Kind { call, edge }));
                }
            }
        }
        if events.is_empty() {
            return None;
        }
        // The events of 32-bit programs.
        for name in [
            "compat_syscall_entry_unknown",
            "compat_syscall_exit_unknown",
        ] {
            let Some(layout) = catalogue.event(name) else {
                continue;
            };
            let edge = match syscalls::edge(layout) {
                Some((CallName::OfNumber(id), syscalls::Edge::Entry)) => {
                    let (arguments, text) = ([None; ARGUMENTS], None);
                    Some((id, Edge::Entry { arguments, text }))
                }
                Some((CallName::OfNumber(id), syscalls::Edge::Exit { ret, .. })) => {
                    Some((id, Edge::Exit { ret }))
                }
                _ => None,
            };
            if let Some((id, edge)) = edge.filter(|_| catalogue.knows_thread(layout)) {
                let call = Which::OfNumber(id);
                events.push((key(layout), Kind { call, edge }));
            }
        }
        Some(Self {
            wanted: all,
            events,
            open: Begun::default(),
        })
    }

    /// The events that they are made from. Each is known by its place in this list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.events.iter().map(|(key, _)| *key)
    }

    /// Whether the trace has a call for which this holds.
    pub fn any(&self, has: impl Fn(C) -> bool) -> bool {
        let mut calls = self.events.iter().map(|(_, kind)| kind.call);
        calls.any(|call| matches!(call, Which::Own(does) if has(does)))
    }

    /// One of these events; if a call returns with it, which.
    pub fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) -> Option<Call<C>> {
        let Kind { call, edge } = self.events[which].1;
        let (does, edge) = match call {
            Which::Own(does) => (does, edge),
            Which::OfNumber(id) => match self.of_number(id, edge, event) {
                Some(found) => found,
                None => {
                    // It is in another call now.
                    let doer = now.doer();
                    doer.and_then(|doer| self.open.end(doer, &(), now));
                    return None;
                }
            },
        };
        match edge {
            Edge::Entry {
                arguments,
                text: at,
            } => {
                let (tid, owner) = (now.tid()?, now.owner());
                let entry = Entry {
                    does,
                    owner,
                    life: now.schedule.life_of(owner),
                    tid,
                    comm: now.process_comm(owner).map(<[u8]>::to_vec),
                    arguments: arguments.map(|at| bits(event.value(at?))),
                    text: at.and_then(|at| text(event.value(at))).map(<[u8]>::to_vec),
                };
                self.open.begin(now.doer()?, (), entry, now);
                None
            }
            Edge::Exit { ret } => {
                let ret = integer(event.value(ret))?;
                let ended = now.doer().and_then(|doer| self.open.end(doer, &(), now));
                let ended = ended.filter(|ended| ended.what.does == does);
                Some(Call {
                    does,
                    ret,
                    since: ended.as_ref().map_or(now.time, |ended| ended.since),
                    ticks: ended.as_ref().map_or(0, |ended| ended.ticks),
                    entry: ended.map(|ended| ended.what),
                })
            }
        }
    }

    /// The kind of the call whose number is in the field `id`, and where its arguments are.
    fn of_number(&self, id: usize, edge: Edge, event: &Event<'_>) -> Option<(C, Edge)> {
        let number = CallName::OfNumber(id);
        let name = number.of(event);
        let name = match name.strip_prefix("compat_")? {
            "fcntl64" => "fcntl",
            name => name,
        };
        let wanted = self.wanted.iter().find(|wanted| wanted.name == name)?;
        let edge = match edge {
            Edge::Entry { .. } => Edge::Entry {
                arguments: wanted.arguments.map(|argument| {
                    let place = decode::position(name, argument)?;
                    event.layout.field(&format!("arg{place}"))
                }),
                text: None,
            },
            exit => exit,
        };
        Some((wanted.does, edge))
    }

    /// What the entries of calls said that have not returned.
    pub fn open(&self) -> impl Iterator<Item = &Entry<C>> {
        self.open.open().map(|(_, entry)| entry)
    }

    /// A CPU has switched.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.open.switch(switch, now);
    }

    /// Events may be missing on a CPU from here on.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.open.lost(schedule);
    }
}
