// SPDX-License-Identifier: GPL-2.0

//! `rtrace export chrome`: the JSON of Chrome's trace events.
//!
//! Tracks:
//! - two for each CPU: the tasks that ran, and the interrupts whose entry and exit were recorded;
//! - one for each thread, with its system calls.
//!
//! Every other event is an instant on the track of its thread or of its CPU. The exporter writes a slice when
//! the slice ends: the format requires no order.

mod json;

use super::format::{Format, Loss, Now};
use analysis::interrupts::{Interrupt, Interrupts};
use analysis::schedule::{Schedule, Span};
use analysis::schedule_events::Activity;
use analysis::syscalls::{Open, Pairs, Seen};
use analysis::tasks::Life;
use analysis::{key, Catalogue, EventKey};
use ctf::{Clock, Event, Metadata};
use json::{Entry, Fields, Track};
use serde::Serialize;
use serde_json::{json, Value};
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use system::printing::Line;
use terminal::harmless_json;

/// Process id of the CPUs' tracks: larger than the kernel's largest process id (`PID_MAX_LIMIT`).
const CPUS: i64 = (1 << 22) + 1;

/// Number added to an id each time that the kernel reuses it: 10000321 is the second thread with the id 321.
const AGAIN: i64 = 10_000_000;

/// Writes trace events.
pub struct Chrome {
    head: Value,
    clock: Clock,
    /// `sched_switch`, if it is chosen. Without it, the CPUs' tracks have no tasks.
    switch: Option<EventKey>,
    /// The events of interrupts.
    interrupts: HashSet<EventKey>,
    syscalls: Pairs<Call>,
    /// By thread or process id: its last life, and the number of lives before.
    lives: HashMap<i64, (Life, i64)>,
    /// The names of the tracks that have one.
    names: HashMap<Track, Vec<u8>>,
    is_first: bool,
}

/// A system call that has not ended.
struct Call {
    track: Track,
    args: Value,
}

impl Chrome {
    /// For a trace with this description, and these chosen events.
    pub fn new(metadata: &Metadata, chosen: &HashSet<EventKey>) -> Self {
        let catalogue = Catalogue::new(metadata);
        Self {
            head: json!(metadata.env),
            clock: metadata.clock,
            switch: catalogue
                .event("sched_switch")
                .map(key)
                .filter(|key| chosen.contains(key)),
            interrupts: Interrupts::new(&catalogue).events().into_iter().collect(),
            syscalls: Pairs::new(catalogue.events()),
            lives: HashMap::new(),
            names: HashMap::new(),
            is_first: true,
        }
    }

    fn put<A: Serialize>(&mut self, entry: &Entry<'_, A>, out: &mut dyn Write) -> io::Result<()> {
        let gap: &[u8] = if self.is_first { b"\n" } else { b",\n" };
        self.is_first = false;
        out.write_all(gap)?;
        out.write_all(harmless_json(serde_json::to_string(entry)?).as_bytes())
    }

    /// Names a track unless it has this name already; `kind` says whether a thread or a process has the name.
    fn name(
        &mut self,
        kind: &str,
        track: Track,
        name: &[u8],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let known = self.names.entry(track).or_default();
        if known == name {
            return Ok(());
        }
        name.clone_into(known);
        let args = json!({ "name": Line(name).to_string() });
        self.put(&Entry::about(kind, track, args), out)
    }

    /// Returns the track of a CPU's tasks or interrupts.
    fn cpu(&mut self, cpu: u32, of_interrupts: bool, out: &mut dyn Write) -> io::Result<Track> {
        let track = (CPUS, CPUS + 2 * i64::from(cpu) + i64::from(of_interrupts));
        if !self.names.contains_key(&track) {
            self.name("process_name", (CPUS, 0), b"CPUs", out)?;
            let what = if of_interrupts { " interrupts" } else { "" };
            self.name(
                "thread_name",
                track,
                format!("CPU {cpu}{what}").as_bytes(),
                out,
            )?;
        }
        Ok(track)
    }

    /// Returns the track of the current event: the track of its thread, or else of its CPU.
    fn track(&mut self, now: &Now<'_>, out: &mut dyn Write) -> io::Result<Track> {
        let Some(task) = now.task.filter(|task| task.tid != 0) else {
            return self.cpu(now.cpu, false, out);
        };
        let process = task.process.unwrap_or(task.tid);
        let track = (
            self.id(process, now.schedule.life(process)),
            self.id(task.tid, task.life),
        );
        if let Some(comm) = task.comm {
            if process == task.tid {
                self.name("process_name", (track.0, 0), comm, out)?;
            }
            self.name("thread_name", track, comm, out)?;
        }
        Ok(track)
    }

    /// Returns the id of a process or thread in the file. A reused id gets another id in the file.
    fn id(&mut self, id: i64, life: Life) -> i64 {
        let (last, before) = self.lives.entry(id).or_insert((life, 0));
        if *last != life {
            (*last, *before) = (life, *before + 1);
        }
        id + *before * AGAIN
    }

    /// Writes the slice of a system call that is over at `ns`. If the call has no exit, `why` has the reason.
    fn close(
        &mut self,
        open: Open<Call>,
        ns: u64,
        why: Option<&str>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Call { track, mut args } = open.what;
        if let Some(why) = why {
            args["end"] = why.into();
        }
        let name = self.syscalls.names()[open.name].clone();
        let since = self.clock.nanoseconds(open.since);
        self.put(&Entry::slice(&name, track, (since, ns), &args), out)
    }

    fn close_all(
        &mut self,
        calls: Vec<Open<Call>>,
        ns: u64,
        why: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut calls = calls.into_iter();
        calls.try_for_each(|call| self.close(call, ns, Some(why), out))
    }

    /// Writes the entry or exit of a system call.
    fn call(
        &mut self,
        seen: Seen<Call>,
        event: &Event<'_>,
        now: &Now<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let track = self.track(now, out)?;
        if let Some(cut) = seen.cut {
            let has_other = seen.is_entry || seen.ret.is_some();
            let why = match has_other {
                true => "not recorded",
                false => "no result",
            };
            self.close(cut, now.ns, Some(why), out)?;
        }
        if let Some(mut begun) = seen.begun {
            begun.what.args["ret"] = seen.ret.into();
            return self.close(begun, now.ns, None, out);
        }
        let edge = match (seen.is_entry, seen.ret) {
            (true, _) => {
                let args = serde_json::to_value(Fields(event))?;
                let not_begun = self.syscalls.begin(seen.name, Call { track, args }, now);
                if not_begun.is_none() {
                    return Ok(());
                }
                "entry"
            }
            (false, Some(_)) => "exit",
            (false, None) => return Ok(()),
        };
        let name = format!("{} ({edge})", self.syscalls.names()[seen.name]);
        self.put(&Entry::instant(&name, track, now.ns, Fields(event)), out)
    }
}

impl Format for Chrome {
    fn begin(&mut self, _ns: u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"otherData\":")?;
        out.write_all(harmless_json(self.head.to_string()).as_bytes())?;
        out.write_all(b",\"traceEvents\":[")
    }

    fn event(&mut self, event: &Event<'_>, now: &Now<'_>, out: &mut dyn Write) -> io::Result<()> {
        let key = key(event.layout);
        if let Some(switch) = now.switch {
            let [lost, ended] = self.syscalls.switch(&switch, now);
            self.close_all(lost, now.ns, "lost", out)?;
            // A thread that exits does not return from its last call.
            self.close_all(ended, now.ns, "the thread ended", out)?;
        }
        // The tracks of the CPU already show these events.
        if self.switch == Some(key) || self.interrupts.contains(&key) {
            return Ok(());
        }
        if let Some(seen) = self.syscalls.event(event, now) {
            return self.call(seen, event, now, out);
        }
        let track = self.track(now, out)?;
        let entry = Entry::instant(&event.layout.name, track, now.ns, Fields(event));
        self.put(&entry, out)
    }

    fn loss(&mut self, loss: &Loss, out: &mut dyn Write) -> io::Result<()> {
        let track = self.cpu(loss.cpu, false, out)?;
        let mut args = json!({ "events": loss.events, "packets": loss.packets });
        if loss.damaged > 0 {
            args["damaged_bytes"] = loss.damaged.into();
        }
        self.put(
            &Entry::instant(&loss.to_string(), track, loss.ns, args),
            out,
        )
    }

    fn span(&mut self, span: &Span, schedule: &Schedule, out: &mut dyn Write) -> io::Result<()> {
        let (Some(cpu), Activity::Running, true) = (span.cpu, span.state, self.switch.is_some())
        else {
            return Ok(());
        };
        if span.tid == 0 {
            return Ok(());
        }
        let track = self.cpu(schedule.number(cpu), false, out)?;
        let comm = schedule.comm(span.tid).unwrap_or(b"?");
        let range = (
            self.clock.nanoseconds(span.from),
            self.clock.nanoseconds(span.to),
        );
        let args = json!({ "tid": span.tid, "pid": schedule.process(span.tid) });
        let name = Line(comm).to_string();
        self.put(&Entry::slice(&name, track, range, args), out)
    }

    fn interrupt(
        &mut self,
        interrupt: &Interrupt<'_>,
        schedule: &Schedule,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let track = self.cpu(schedule.number(interrupt.cpu), true, out)?;
        let to = interrupt.from.saturating_add(interrupt.ticks);
        let range = [interrupt.from, to].map(|time| self.clock.nanoseconds(time));
        let source = interrupt.source;
        let kind = if source.is_hard { "irq" } else { "softirq" };
        let args = json!({ kind: source.number });
        let entry = Entry::slice(&source.name, track, range.into(), args);
        self.put(&entry, out)
    }

    fn lost(&mut self, ns: u64, schedule: &Schedule, out: &mut dyn Write) -> io::Result<()> {
        let lost = self.syscalls.lost(schedule);
        self.close_all(lost, ns, "lost", out)
    }

    fn end(&mut self, ns: u64, out: &mut dyn Write) -> io::Result<()> {
        let rest = self.syscalls.rest();
        self.close_all(rest, ns, "behind the end", out)?;
        out.write_all(b"\n]}\n")
    }
}
