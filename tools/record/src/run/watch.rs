// SPDX-License-Identifier: GPL-2.0

//! Watch for the conditions of `--until` and `--snapshot-on` during a recording.

use crate::run::condition::{Condition, Conditions, Happened};
use crate::run::kernel_log::KernelLog;
use crate::run::map_limit::MapWatch;
use anyhow::Context;
use control::{Firing, Session, Trigger, Triggered};
use rtrace_input::trigger::Action;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use system::time;
use terminal::{date, printable};

/// Watched sources: triggers, the kernel log and maps.
#[derive(Debug)]
pub struct Watch {
    session: Session,
    triggered: Option<Triggered>,
    /// How often triggers had requested a snapshot when that was last reported, by event and trigger. Events of programs
    /// with different fields can have the same name: also by the number among the same ones.
    requested: HashMap<(String, String, usize), u64>,
    log: Option<KernelLog>,
    maps: Option<MapWatch>,
}

impl Watch {
    /// Sets the triggers of the session, which is not active, and begins to watch.
    pub fn new(conditions: &Conditions, session: &Session) -> anyhow::Result<Self> {
        conditions.apply(session)?;
        let has_events = conditions.has_events();
        let mut all = conditions.until.iter().chain(&conditions.snapshot_on);
        let limits = all.clone().filter_map(|condition| match condition {
            Condition::Map(limit) => Some(limit.clone()),
            _ => None,
        });
        let limits: Vec<_> = limits.collect();
        let has_log = all.any(|condition| matches!(condition, Condition::Log(_)));
        Ok(Self {
            session: session.clone(),
            triggered: has_events.then(|| Triggered::open(session)).transpose()?,
            requested: HashMap::new(),
            log: has_log.then(KernelLog::open).transpose()?,
            maps: (!limits.is_empty())
                .then(|| MapWatch::new(limits, session))
                .transpose()?,
        })
    }

    /// File descriptors that become readable when [`look`](Self::look) may find something.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let triggered = self.triggered.iter().map(AsFd::as_fd);
        let log = self.log.iter().map(AsFd::as_fd);
        let maps = self.maps.iter().map(MapWatch::fd);
        triggered.chain(log).chain(maps)
    }

    /// Must be called just before the session starts. Earlier requests of its triggers do not count.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        if let Some(triggered) = &mut self.triggered {
            let triggers = triggered.read()?.unwrap_or_default();
            self.requested(&triggers);
        }
        Ok(())
    }

    /// Stops watching.
    pub fn end(&mut self) {
        self.triggered = None;
        self.log = None;
        self.maps = None;
    }

    /// Returns a condition that occurred since the last call, if there is one. `conditions` are those given to `new`.
    /// If the recording `is_over`, packets after an event are not waited for.
    pub fn look(
        &mut self,
        conditions: &Conditions,
        is_over: bool,
    ) -> anyhow::Result<Option<Happened>> {
        if let Some(triggered) = &mut self.triggered {
            let Some(triggers) = triggered.read()? else {
                // The session was destroyed.
                self.triggered = None;
                return Ok(None);
            };
            for trigger in triggers.iter().filter(|trigger| trigger.fired > 0) {
                // The stop may be incomplete. If packets are to follow the event, the stop may not have begun.
                let is_end = match action(trigger) {
                    Some(Action::TraceOff) => true,
                    Some(Action::TraceOffAfter) => is_over || !self.session.is_active()?,
                    _ => false,
                };
                if is_end {
                    return Ok(Some(Happened::End(said(trigger))));
                }
            }
            let requested = self.requested(&triggers);
            if !requested.is_empty() {
                let what: Vec<_> = requested.iter().map(said).collect();
                return Ok(Some(Happened::Snapshot(what.join(", "), requested)));
            }
        }
        if let Some(maps) = &mut self.maps {
            if let Some((limit, keys)) = maps.look(&self.session)? {
                let is_it = |condition: &Condition| matches!(condition, Condition::Map(known) if *known == limit);
                let of = if keys.is_empty() {
                    String::new()
                } else {
                    format!(" ({keys})")
                };
                return Ok(conditions.find(is_it, || format!("{limit}{of}")));
            }
        }
        let Some(log) = &mut self.log else {
            return Ok(None);
        };
        while let Some(line) = log.line().context("cannot read the kernel log")? {
            let found = conditions.find(
                |condition| matches!(condition, Condition::Log(regex) if regex.is_match(&line)),
                || format!("kernel log: {line}"),
            );
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The triggers that requested a snapshot since the last call.
    fn requested(&mut self, triggers: &[Trigger]) -> Vec<Trigger> {
        let is_asking = |trigger: &&Trigger| action(trigger) == Some(Action::Snapshot);
        let (mut requested, mut same) = (Vec::new(), HashMap::new());
        for trigger in triggers.iter().filter(is_asking) {
            let number = same.entry((&trigger.event, &trigger.text)).or_insert(0);
            *number += 1;
            let key = (trigger.event.clone(), trigger.text.clone(), *number);
            let before = self.requested.insert(key, trigger.fired).unwrap_or(0);
            if trigger.fired != before && trigger.fired > 0 {
                requested.push(trigger.clone());
            }
        }
        requested
    }
}

impl Conditions {
    /// The condition for a signal, if there is one.
    pub fn signal(&self, number: i32) -> Option<Happened> {
        self.find(
            |condition| matches!(condition, Condition::Signal(signal) if signal.as_raw() == number),
            || format!("signal {number}"),
        )
    }

    /// The condition for a command that ended with `code`, if there is one.
    pub fn failure(&self, code: u8) -> Option<Happened> {
        if code == 0 {
            return None;
        }
        self.find(Condition::is_failure, || {
            format!("the command ended with status {code}")
        })
    }

    /// The effect of a condition: the end, or a snapshot. If the condition is for both: the end.
    fn find(
        &self,
        is_it: impl Fn(&Condition) -> bool,
        what: impl FnOnce() -> String,
    ) -> Option<Happened> {
        if self.until.iter().any(&is_it) {
            Some(Happened::End(what()))
        } else {
            let is_there = self.snapshot_on.iter().any(is_it);
            is_there.then(|| Happened::Snapshot(what(), Vec::new()))
        }
    }
}

fn action(trigger: &Trigger) -> Option<Action> {
    Some(
        rtrace_input::trigger::TriggerLine::parse(&trigger.text)
            .ok()?
            .action,
    )
}

/// The event of a trigger that fired, its filter, and by which thread it fired when.
fn said(trigger: &Trigger) -> String {
    let mut said = trigger.event.clone();
    if let Some((_, filter)) = trigger.text.split_once(" if ") {
        said.extend([" if ", filter]);
    }
    let Some(last) = &trigger.last else {
        return said;
    };
    let Firing { time, pid, tid, .. } = last;
    said.push_str(&format!(", by {} ({pid})", printable(&last.comm)));
    if pid != tid {
        said.push_str(&format!(", thread {tid}"));
    }
    let at = date::time_of_day(time::since_epoch(*time));
    format!("{said}, at {at}")
}
