// SPDX-License-Identifier: GPL-2.0

//! System calls of given names. Entry and exit are one call, with its arguments and its result.

use super::schedule::Schedule;
use super::schedule_events::Switch;
use super::syscalls::{self, CallName, Pairs};
use super::tasks::Life;
use super::whose::Owner;
use super::{bits, key, text, Catalogue, EventKey, Moment};
use ctf::Event;

/// Maximum number of arguments that are read.
const ARGUMENTS: usize = 3;

/// A system call to follow.
#[derive(Clone, Copy, Debug)]
pub struct FollowedCall<C> {
    /// Name of the call.
    pub name: &'static str,
    /// Meaning of the call for the analysis.
    pub does: C,
    /// Names of integer arguments, in the order in which the analysis needs them. The name is empty if the
    /// call has no such argument.
    pub arguments: [&'static str; ARGUMENTS],
    /// Name of a string argument, if the analysis needs one.
    pub text: Option<&'static str>,
}

/// The followed system calls of a trace.
#[derive(Debug)]
pub struct Calls<C: 'static> {
    wanted: &'static [FollowedCall<C>],
    events: Vec<(EventKey, Kind<C>)>,
    pairs: Pairs<Entry<C>>,
}

/// Kind of an event, with the indexes of its fields.
#[derive(Clone, Copy, Debug)]
struct Kind<C> {
    call: Which<C>,
    /// The arguments of an entry; `None` for an exit.
    entry: Option<Fields>,
}

/// The call of an event.
#[derive(Clone, Copy, Debug)]
enum Which<C> {
    /// The call with this meaning.
    Own(C),
    /// The call whose number is in this field. Its arguments have numbers instead of names.
    OfNumber(usize),
    /// The call that the thread has begun.
    OfBegin,
}

/// Indexes of the fields with the wanted arguments.
#[derive(Clone, Copy, Debug, Default)]
struct Fields {
    arguments: [Option<usize>; ARGUMENTS],
    text: Option<usize>,
}

/// Values from the entry of a call.
#[derive(Clone, Debug)]
pub struct Entry<C> {
    /// Meaning of the call.
    pub does: C,
    /// Process or thread that made the call.
    pub owner: Owner,
    /// Life of the owner's id.
    pub life: Life,
    /// The thread that made it.
    pub tid: i64,
    /// Life of its id.
    pub tid_life: Life,
    /// Name of the thread's process, if it is known.
    pub comm: Option<Vec<u8>>,
    /// Values of the wanted arguments. A signed value is stored as its 64 bits.
    pub arguments: [Option<u64>; ARGUMENTS],
    /// Value of the wanted string.
    pub text: Option<Vec<u8>>,
}

/// A call that has returned.
#[derive(Debug)]
pub struct Call<C> {
    /// Meaning of the call.
    pub does: C,
    /// Return value.
    pub ret: i64,
    /// Values from the entry; `None` if the entry is not known.
    pub entry: Option<Entry<C>>,
    /// Time of the begin in clock ticks; the time of the exit if the begin is not known.
    pub since: u64,
    /// Duration in clock ticks; 0 if the begin is not known.
    pub ticks: u64,
}

impl<C: Copy + PartialEq> Calls<C> {
    /// Finds the calls of `all` in the trace. Returns `None` if no call has both entry and exit with a
    /// known thread.
    pub fn new(catalogue: &Catalogue<'_>, all: &'static [FollowedCall<C>]) -> Option<Self> {
        let mut events = Vec::new();
        let mut layouts = Vec::new();
        let known = |name: &str| {
            let layout = catalogue.event(name);
            layout.filter(|layout| catalogue.knows_thread(layout))
        };
        let common = known(syscalls::COMMON_EXIT);
        for wanted in all {
            let layout = |edge| known(&format!("syscall_{edge}_{}", wanted.name));
            let (entry, exit) = (layout("entry"), layout("exit"));
            let Some(entry) = entry.filter(|_| exit.or(common).is_some()) else {
                continue;
            };
            let fields = Fields {
                arguments: wanted.arguments.map(|name| entry.field(name)),
                text: wanted.text.and_then(|name| entry.field(name)),
            };
            let exit = exit.map(|exit| (exit, None));
            for (layout, entry) in [(entry, Some(fields))].into_iter().chain(exit) {
                let call = Which::Own(wanted.does);
                events.push((key(layout), Kind { call, entry }));
                layouts.push(layout);
            }
        }
        if events.is_empty() {
            return None;
        }
        // Events of 32-bit programs, and the end of every call.
        let compat = [
            "compat_syscall_entry_unknown",
            "compat_syscall_exit_unknown",
        ];
        for layout in compat.into_iter().filter_map(known).chain(common) {
            let call = match syscalls::edge(layout) {
                Some((CallName::OfNumber(id), edge)) => Some((Which::OfNumber(id), edge)),
                Some((CallName::OfBegin, edge)) => Some((Which::OfBegin, edge)),
                _ => None,
            };
            if let Some((call, edge)) = call {
                let entry = matches!(edge, syscalls::Edge::Entry).then(Fields::default);
                events.push((key(layout), Kind { call, entry }));
                layouts.push(layout);
            }
        }
        Some(Self {
            wanted: all,
            events,
            pairs: Pairs::new(layouts.into_iter()),
        })
    }

    /// Returns the events that the calls are read from. `event` identifies each by its index in this list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.events.iter().map(|(key, _)| *key)
    }

    /// Returns the number of these events.
    pub fn count(&self) -> usize {
        self.events.len()
    }

    /// Returns whether the trace has a call for which `has` returns true.
    pub fn any(&self, has: impl Fn(C) -> bool) -> bool {
        let mut calls = self.events.iter().map(|(_, kind)| kind.call);
        calls.any(|call| matches!(call, Which::Own(does) if has(does)))
    }

    /// Processes an event. Returns the call that the event completes.
    pub fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) -> Option<Call<C>> {
        let Kind { call, entry } = self.events[which].1;
        let seen = self.pairs.event(event, now)?;
        let (does, entry) = match call {
            Which::Own(does) => (does, entry),
            Which::OfNumber(id) => self.of_number(id, entry, event)?,
            Which::OfBegin => (seen.begun.as_ref()?.what.does, None),
        };
        let Some(fields) = entry else {
            let begun = seen.begun;
            let since = begun.as_ref().map_or(now.time, |begun| begun.since);
            return Some(Call {
                does,
                ret: seen.ret?,
                since,
                ticks: now.time.saturating_sub(since),
                entry: begun.map(|begun| begun.what),
            });
        };
        let (tid, owner) = (now.tid()?, now.owner());
        let entry = Entry {
            does,
            owner,
            life: now.schedule.life_of(owner),
            tid,
            tid_life: now.schedule.life(tid),
            comm: now.process_comm(owner).map(<[u8]>::to_vec),
            arguments: fields.arguments.map(|at| bits(event.value(at?))),
            text: fields
                .text
                .and_then(|at| text(event.value(at)))
                .map(<[u8]>::to_vec),
        };
        self.pairs.begin(seen.name, entry, now);
        None
    }

    /// Returns the meaning of the call whose number is in the field `id`, with the fields of its arguments.
    fn of_number(
        &self,
        id: usize,
        entry: Option<Fields>,
        event: &Event<'_>,
    ) -> Option<(C, Option<Fields>)> {
        let number = CallName::OfNumber(id);
        let name = number.of(event);
        let name = match name.strip_prefix("compat_")? {
            "fcntl64" => "fcntl",
            name => name,
        };
        let wanted = self.wanted.iter().find(|wanted| wanted.name == name)?;
        let fields = entry.map(|_| Fields {
            arguments: wanted.arguments.map(|argument| {
                let place = decode::position(name, argument)?;
                event.layout.field(&format!("arg{place}"))
            }),
            text: None,
        });
        Some((wanted.does, fields))
    }

    /// Returns the entries of the calls that have not returned.
    pub fn open(&self) -> impl Iterator<Item = &Entry<C>> {
        self.pairs.open()
    }

    /// Handles a switch of a CPU.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.pairs.switch(switch, now);
    }

    /// Handles a loss: events of a CPU may be missing from now on.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.pairs.lost(schedule);
    }
}
