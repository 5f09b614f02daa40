// SPDX-License-Identifier: GPL-2.0

//! Changes that the events of a trace make to its schedule.

use super::{Schedule, Span};
use crate::key;
use crate::schedule_events::{Exec, Rename, ScheduleKind, Switch};
use crate::tasks::Thread;
use crate::whose::{Own, Task};
use ctf::Event;

/// Meaning of an event for all views.
#[derive(Clone, Copy, Debug)]
pub struct Happened<'a> {
    /// Index of the event's CPU.
    pub cpu: usize,
    /// The switch of the CPU, if the event is one.
    pub switch: Option<Switch<'a>>,
    /// The process whose other threads have ended, because it executes a program.
    pub exec: Option<i64>,
    /// Thread, process and name that the event gives for its task.
    own: Own<'a>,
}

impl Schedule {
    /// Applies an event of a CPU to the schedule. Adds the spans that end with it to `spans`.
    pub fn event<'a>(
        &mut self,
        event: &Event<'a>,
        cpu: usize,
        spans: &mut Vec<Span>,
    ) -> Happened<'a> {
        self.forget_ended();
        self.ended_wait = None;
        let layout = event.layout;
        let whose = self.whose.get(layout.stream_id as usize);
        let own = whose.map(|whose| whose.read(event)).unwrap_or_default();
        if let Some(tid) = own.tid.filter(|tid| *tid != 0) {
            self.may_become(cpu, tid, event.timestamp, spans);
            let thread = self.tasks.thread(tid);
            if let Some(comm) = own.comm {
                thread.shows(comm);
            }
            if let Some(pid) = own.pid {
                self.tasks.belongs(tid, pid);
            }
            if self.is_of_cgroups && layout.name.starts_with("syscall_") {
                self.tasks.thread(tid).is_chosen = true;
            }
        }
        let mut happened = Happened {
            cpu,
            switch: None,
            exec: None,
            own: Own {
                tid: own.tid.or_else(|| self.running(cpu)),
                ..own
            },
        };
        if let Some(kind) = self.events.get(&key(layout)).copied() {
            // An event that lacks a field changes nothing.
            let _ = self.take(kind, event, own.tid, &mut happened, spans);
        }
        happened
    }

    /// Applies an event that the schedule is read from. `said` is the thread that the event itself records.
    fn take<'a>(
        &mut self,
        kind: ScheduleKind,
        event: &Event<'a>,
        said: Option<i64>,
        happened: &mut Happened<'a>,
        spans: &mut Vec<Span>,
    ) -> Option<()> {
        let (cpu, time) = (happened.cpu, event.timestamp);
        let own = &mut happened.own;
        match kind {
            ScheduleKind::Switch(fields) => {
                let mut switch = fields.read(event)?;
                self.may_become(cpu, switch.prev_tid, time, spans);
                self.may_exchange(cpu, &switch, time, spans);
                for (tid, comm) in [
                    (switch.prev_tid, switch.prev_comm),
                    (switch.next_tid, switch.next_comm),
                ] {
                    // The idle tasks of all CPUs have the id 0.
                    if tid != 0 {
                        self.tasks.thread(tid).shows(comm);
                    }
                }
                if self.cpus[cpu].broken == 0 {
                    let before = self.running(cpu);
                    switch.instead_of = before.filter(|tid| *tid != switch.prev_tid);
                    self.switch(&switch, cpu, time, spans);
                }
                if switch.left.is_end() {
                    self.tasks.ends(switch.prev_tid);
                }
                // The schedule knows only the thread that runs after the switch.
                if said.is_none() {
                    own.tid = Some(switch.prev_tid);
                }
                own.comm = own.comm.or(Some(switch.prev_comm));
                happened.switch = Some(switch);
            }
            ScheduleKind::Wake(fields) => {
                let task = fields.read(event)?;
                // The waker reads the name on another CPU, where it may be about to change.
                let thread = self.tasks.thread(task.tid);
                if thread.comm().is_empty() {
                    thread.call(task.comm);
                }
                if self.broken == 0 {
                    self.wake(task.tid, time, spans);
                }
            }
            ScheduleKind::Fork(fields) => {
                let fork = fields.read(event)?;
                let (tid, process) = fork.child;
                if let Some(process) = fork.parent.1 {
                    self.tasks.belongs(fork.parent.0, process);
                }
                // A thread of the same process has the same parent.
                let parent = match process == fork.parent.1 {
                    true if process.is_none() => None,
                    true => self.parent(fork.parent.0),
                    false => fork.parent.1,
                };
                let parents = self.tasks.get(fork.parent.0);
                let is_chosen = parents.is_some_and(|parent| parent.is_chosen);
                let child = self.tasks.made(tid);
                child.is_chosen = is_chosen;
                child.parent = parent;
                child.call(fork.child_comm);
                if let Some(process) = process {
                    self.tasks.belongs(tid, process);
                }
            }
            ScheduleKind::Exec(fields) => {
                let Exec { tid, old_tid, comm } = fields.read(event)?;
                if old_tid != tid && self.running(cpu) != Some(tid) {
                    self.becomes(cpu, old_tid, tid, time, spans);
                }
                // After the exec the thread is the first thread of its process.
                self.tasks.belongs(tid, tid);
                let thread = self.tasks.thread(tid);
                // If a program is executed by its descriptor, its name is not known before an event shows it.
                match own.comm {
                    Some(comm) => thread.call(comm),
                    None if thread.is_renamed => {}
                    None => thread.call(comm.unwrap_or_default()),
                }
                thread.is_renamed = false;
                own.tid = Some(tid);
                happened.exec = Some(tid);
            }
            ScheduleKind::Rename(fields) => {
                let Rename { tid, old, new } = fields.read(event)?;
                self.may_become(cpu, tid, time, spans);
                let thread = self.tasks.thread(tid);
                thread.rename(old, new);
                if said.is_none() {
                    own.tid = self.running(cpu);
                }
                if own.tid == Some(tid) {
                    own.comm = Some(old);
                }
            }
            ScheduleKind::Exit(fields) => {
                let task = fields.read(event)?;
                let thread = self.tasks.thread(task.tid);
                thread.shows(task.comm);
                thread.is_exiting = true;
            }
            ScheduleKind::State(fields) => {
                let state = fields.read(event)?;
                self.tasks.belongs(state.tid, state.process);
                let thread = self.tasks.thread(state.tid);
                thread.parent = Some(state.parent);
                thread.shows(state.comm);
            }
        }
        Some(())
    }

    /// Returns the task that an event happened to.
    pub fn task<'a>(&'a self, happened: &Happened<'a>) -> Option<Task<'a>> {
        let Own { tid, pid, comm } = happened.own;
        let tid = tid?;
        let thread = self.tasks.get(tid);
        Some(Task {
            tid,
            serial: thread.map(|thread| thread.serial),
            life: thread.map_or(0, |thread| thread.life),
            process: pid.or_else(|| thread?.process),
            comm: comm.or_else(|| thread.map(Thread::comm).filter(|comm| !comm.is_empty())),
        })
    }

    /// Handles an event of the thread `tid` on a CPU. If `tid` has ended, or is about to, and another thread of its
    /// process runs there, that thread has taken the id. The running thread executes a program, and the event of
    /// the exec follows later.
    fn may_become(&mut self, cpu: usize, tid: i64, time: u64, spans: &mut Vec<Span>) {
        if let Some(old) = self.running(cpu).filter(|old| *old != tid && *old != 0) {
            let ends = self.tasks.get(tid).is_none_or(|thread| thread.is_exiting);
            if ends && self.process(old) == Some(tid) {
                self.becomes(cpu, old, tid, time, spans);
            }
        }
    }

    /// Handles a switch from the first thread of a process that has another id now: while it ended, another thread that
    /// executes a program has exchanged ids with it (fs/exec.c: de_thread()).
    fn may_exchange(&mut self, cpu: usize, switch: &Switch<'_>, time: u64, spans: &mut Vec<Span>) {
        let old = switch.prev_tid;
        let Some(pid) = self.running(cpu).filter(|pid| *pid != old) else {
            return;
        };
        if switch.left.is_end() && self.process(old) == Some(pid) {
            let runs = (0..self.cpus.len()).find(|cpu| self.running(*cpu) == Some(old));
            self.change_id(cpu, pid, old, time, spans);
            match runs {
                Some(runs) => self.becomes(runs, old, pid, time, spans),
                None => self.tasks.becomes(old, pid),
            }
        }
    }
}
