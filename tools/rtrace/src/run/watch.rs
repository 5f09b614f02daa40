// SPDX-License-Identifier: GPL-2.0

//! Waiting for what `--until` and `--snapshot-on` name, while a recording goes on.

use crate::options::Conditions;
use crate::run::condition::{Condition, Happened};
use crate::run::kernel_log::KernelLog;
use anyhow::Context;
use control::{Session, Trigger, Triggered};
use rtrace_input::trigger::Action;
use std::os::fd::{AsFd, BorrowedFd};

/// What is watched.
#[derive(Debug)]
pub struct Watch {
    session: Session,
    triggered: Option<Triggered>,
    /// How often snapshots were asked for by triggers, as far as it was told.
    snapshots: u64,
    log: Option<KernelLog>,
}

impl Watch {
    /// Has the session, which is not active, tell of events, and watches from now on.
    pub fn new(conditions: &Conditions, session: &Session) -> anyhow::Result<Self> {
        conditions.apply(session)?;
        let has_events = conditions.has_events();
        let mut all = conditions.until.iter().chain(&conditions.snapshot_on);
        let has_log = all.any(|condition| matches!(condition, Condition::Log(_)));
        Ok(Self {
            session: session.clone(),
            triggered: has_events.then(|| Triggered::open(session)).transpose()?,
            snapshots: 0,
            log: has_log.then(KernelLog::open).transpose()?,
        })
    }

    /// What is readable when there may be something to [`look`](Self::look) at.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let triggered = self.triggered.iter().map(AsFd::as_fd);
        triggered.chain(self.log.iter().map(AsFd::as_fd))
    }

    /// The session is about to start: what its triggers asked for before does not matter.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        if let Some(triggered) = &mut self.triggered {
            self.snapshots = asked(&triggered.read()?.unwrap_or_default()).1;
        }
        Ok(())
    }

    /// Watches no more.
    pub fn end(&mut self) {
        self.triggered = None;
        self.log = None;
    }

    /// What has happened of `conditions`, those that it was made with, since it was looked at the last
    /// time, if something has. If the recording `is_over`, no packets are waited for.
    pub fn look(
        &mut self,
        conditions: &Conditions,
        is_over: bool,
    ) -> anyhow::Result<Option<Happened>> {
        if let Some(triggered) = &mut self.triggered {
            let Some(triggers) = triggered.read()? else {
                // Somebody has destroyed the session.
                self.triggered = None;
                return Ok(None);
            };
            for trigger in triggers.iter().filter(|trigger| trigger.fired > 0) {
                // The stop may not be whole yet. Where packets are to come it may not have begun.
                let is_end = match action(trigger) {
                    Some(Action::TraceOff) => true,
                    Some(Action::TraceOffAfter) => is_over || !self.session.is_active()?,
                    _ => false,
                };
                if is_end {
                    return Ok(Some(Happened::End(said(trigger))));
                }
            }
            let (last, snapshots) = asked(&triggers);
            if snapshots > self.snapshots {
                self.snapshots = snapshots;
                return Ok(Some(Happened::Snapshot(last)));
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
}

impl Conditions {
    /// What a signal means, if it is waited for.
    pub fn signal(&self, number: i32) -> Option<Happened> {
        self.find(
            |condition| matches!(condition, Condition::Signal(signal) if signal.as_raw() == number),
            || format!("signal {number}"),
        )
    }

    /// What it means that the command ended like this, if a failure is waited for.
    pub fn failure(&self, code: u8) -> Option<Happened> {
        if code == 0 {
            return None;
        }
        self.find(Condition::is_failure, || {
            format!("the command ended with status {code}")
        })
    }

    /// What a condition is for; the end, if it is for both.
    fn find(
        &self,
        is_it: impl Fn(&Condition) -> bool,
        what: impl FnOnce() -> String,
    ) -> Option<Happened> {
        if self.until.iter().any(&is_it) {
            Some(Happened::End(what()))
        } else {
            let is_there = self.snapshot_on.iter().any(is_it);
            is_there.then(|| Happened::Snapshot(what()))
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

/// How often snapshots were asked for, and by what event.
fn asked(triggers: &[Trigger]) -> (String, u64) {
    let is_asking = |trigger: &&Trigger| action(trigger) == Some(Action::Snapshot);
    let asking = triggers.iter().filter(is_asking);
    let fired = asking.clone().map(|trigger| trigger.fired).sum();
    let events: Vec<_> = asking
        .filter(|trigger| trigger.fired > 0)
        .map(said)
        .collect();
    (events.join(", "), fired)
}

fn said(trigger: &Trigger) -> String {
    match trigger.text.split_once(" if ") {
        Some((_, filter)) => format!("{} if {filter}", trigger.event),
        None => trigger.event.clone(),
    }
}
