// SPDX-License-Identifier: GPL-2.0

//! The triggers of a session: what events bring about, whether it records them or not.
//!
//! They are attached from when they are written until they are taken away; starts and stops do not
//! matter. What they ask for is done by the work that all sessions share, without any lock that who
//! changes triggers holds: a start and a stop take `control`, which is held where probes are waited
//! for.

use super::{Session, Sessions};
use crate::event::Event;
use crate::input::filter::error::Error as WrongFilter;
use crate::input::pattern::Pattern;
use crate::input::trigger as input;
use crate::input::trigger::Action;
use crate::probe::builtin::Builtin;
use crate::probe::filter::Refusal;
use crate::probe::trigger::{self, Trigger};
use crate::probe::Probe;
use crate::source::attached::AttachedProbes;
use crate::source::probe_list::NewProbe;
use crate::source::sampled::Frequency;
use crate::sys::debugfs::text::{Text, TextChanges};
use crate::sys::work::Ask;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Triggers, in the order in which they were written. Replaced, never changed: who looks has the
/// list as it was at one moment.
pub(super) struct Triggers(KVVec<Placed>);

/// A trigger, and where it is.
struct Placed {
    event: Arc<Event>,
    trigger: Arc<Trigger>,
}

impl Triggers {
    /// None.
    pub(super) const NONE: Self = Self(KVVec::new());

    fn of<'a>(&'a self, event: &'a Event) -> impl Iterator<Item = &'a Trigger> {
        let at_event = self
            .0
            .iter()
            .filter(|placed| placed.event.id() == event.id());
        at_event.map(|placed| &*placed.trigger)
    }

    /// These and those of `more`, but for those that `drops` picks.
    fn changed(&self, more: &[Placed], drops: impl Fn(&Placed) -> bool) -> Result<Self> {
        let mut triggers = KVVec::with_capacity(self.0.len() + more.len(), GFP_KERNEL)?;
        let kept = self.0.iter().filter(|placed| !drops(placed));
        for Placed { event, trigger } in Iterator::chain(kept, more) {
            let (event, trigger) = (event.clone(), trigger.clone());
            triggers.push(Placed { event, trigger }, GFP_KERNEL)?;
        }
        Ok(Self(triggers))
    }

    /// Detaches the probes of all other triggers, and waits until none of them runs. May sleep.
    fn keep(&self, probes: &mut AttachedProbes) {
        probes.keep(|probe| {
            let mut triggers = self.0.iter().map(|known| &known.trigger);
            let wanted = probe.trigger();
            wanted.is_some_and(|wanted| triggers.any(|known| Arc::ptr_eq(known, wanted)))
        });
    }
}

impl Placed {
    /// Attaches a probe that hands the event's records to the trigger. May sleep.
    fn attach(&self, frequency: Frequency, to: &mut AttachedProbes) -> Result {
        let probe = Probe::of_trigger(self.trigger.clone())?;
        let new = NewProbe {
            probe: Arc::new(probe, GFP_KERNEL)?,
            channel: None,
            frequency,
        };
        self.event.source().attach(new, to)
    }
}

impl Session {
    /// Sets a trigger at the events that `pattern` picks, or takes it away (`!`); see
    /// [`trigger_events`](Self::trigger_events).
    pub(crate) fn set_trigger(&self, file: &str, pattern: &str, trigger: &str) -> Result {
        let pattern = Pattern::parse(pattern);
        if !pattern.enables {
            return Err(self.refuse(fmt!(
                "{file}: '!' stands in front of the action that is taken away"
            )));
        }
        self.ask_for(file, &pattern)?;
        let is_picked = |event: &Event| {
            let mut names = event.names();
            names.any(|(subsystem, name)| pattern.matches(subsystem, name))
        };
        self.trigger_events(file, is_picked, trigger)
    }

    /// Sets a trigger at the events that `pick` picks, or takes it away (`!`), at once. Where several
    /// events are picked it is set at those that have what its filter names; there must be one. On
    /// failure nothing has changed. `EEXIST`: there is one that does the same; `ENOENT`: there is
    /// none to take away; `EPERM`: the event is perf's. May sleep.
    pub(crate) fn trigger_events(
        &self,
        file: &str,
        pick: impl Fn(&Event) -> bool,
        text: &str,
    ) -> Result {
        let text = text.trim();
        let wrong = |shown: core::fmt::Arguments<'_>| {
            self.refuse(fmt!("{file}: the trigger is wrong\n{shown}"))
        };
        let mut parsed = input::TriggerLine::parse(text)
            .map_err(|error| wrong(format_args!("{}", error.shown(text))))?;
        // Its own is the one that is meant anyway.
        parsed.session = parsed.session.filter(|name| *name != self.name());
        let available = self.available();
        let mut picked = available.known().filter(|event| pick(event)).peekable();
        if picked.peek().is_none() {
            return Err(self.refuse(fmt!("{file}: the pattern matches no event")));
        }
        let _control = self.control.lock();
        let known = self.triggers();
        if parsed.removes {
            let goes = |placed: &Placed| pick(&placed.event) && placed.trigger.does(&parsed);
            if !known.0.iter().any(goes) {
                self.refuse(fmt!("{file}: there is no such trigger"));
                return Err(ENOENT);
            }
            self.replace_triggers(known.changed(&[], goes)?)?;
            return Ok(());
        }
        self.must_take_triggers(file, &parsed)?;
        let (mut new, mut refusal) = (KVVec::new(), None);
        for event in picked {
            if self.withholds(event) {
                return Err(EPERM);
            }
            let filter = parsed.filter.map(|filter| {
                event
                    .filter(filter.expression)
                    .map_err(|refusal| match refusal {
                        Refusal::Wrong(wrong) => Refusal::Wrong(WrongFilter {
                            at: wrong.at + filter.at,
                            ..wrong
                        }),
                        other => other,
                    })
            });
            let filter = match filter.transpose() {
                Ok(filter) => filter,
                Err(Refusal::Memory) => return Err(ENOMEM),
                Err(refused) => {
                    refusal = refusal.or(Some(refused));
                    continue;
                }
            };
            if known.of(event).any(|trigger| trigger.does(&parsed)) {
                let (subsystem, name) = (event.subsystem(), event.name());
                self.refuse(fmt!(
                    "{file}: {subsystem}:{name} has a trigger that does this"
                ));
                return Err(EEXIST);
            }
            let means = trigger::Means {
                stopper: self.stopper.clone(),
                builtins: self.builtins.clone(),
                worker: self.shared.worker.clone(),
            };
            let trigger = Trigger::new(&parsed, filter, means)?;
            let event = event.clone();
            new.push(Placed { event, trigger }, GFP_KERNEL)?;
        }
        match refusal {
            _ if !new.is_empty() => {}
            Some(Refusal::Wrong(error)) => {
                return Err(wrong(format_args!("{}", error.shown(text))));
            }
            _ => {
                return Err(self.refuse(fmt!(
                    "{file}: the event's records are too long for a filter"
                )))
            }
        }
        let triggers = known.changed(&new, |_| false)?;
        // Before the first can fire: what it stops is known then.
        if let Some((trace, recording)) = self.active() {
            recording.arm()?;
            if let Some(builtin) = trigger::builtin(parsed.action) {
                self.begin_builtin(builtin, &trace, &recording);
            }
        }
        let mut probes = self.trigger_probes.lock();
        let frequency = self.sample_frequency();
        let mut attach = |placed: &Placed| placed.attach(frequency, &mut probes);
        if let Err(error) = new.iter().try_for_each(&mut attach) {
            known.keep(&mut probes);
            return Err(error);
        }
        drop(probes);
        self.replace_triggers(triggers)?;
        // Who has fired already has asked when the worker could not find it.
        self.shared.worker.ask();
        Ok(())
    }

    /// Whether a trigger that was parsed can be one of this session.
    fn must_take_triggers(&self, file: &str, parsed: &input::TriggerLine<'_>) -> Result {
        let sessions = self.shared.worker.data().get_arc();
        let is_there = |name| sessions.is_some_and(|sessions| sessions.find(name).is_some());
        match parsed.session {
            Some(name) if !is_there(name) => {
                Err(self.refuse(fmt!("{file}: there is no session '{name}'")))
            }
            _ => Ok(()),
        }
    }

    /// Takes all triggers away. What they asked for and is not done yet is not done any more, but
    /// that the session stops. `control` is held. May sleep.
    pub(super) fn clear_triggers(&self) -> Result {
        if self.trigger_count() != 0 {
            self.replace_triggers(Triggers::NONE)?;
        }
        Ok(())
    }

    /// Takes all triggers away.
    pub(crate) fn remove_triggers(&self) -> Result {
        let _control = self.control.lock();
        self.clear_triggers()
    }

    /// Has these triggers, whose probes are attached, and no others. `control` is held.
    fn replace_triggers(&self, triggers: Triggers) -> Result {
        let triggers = Arc::new(triggers, GFP_KERNEL)?;
        let before = core::mem::replace(&mut self.state.lock().triggers, triggers.clone());
        triggers.keep(&mut self.trigger_probes.lock());
        drop(before);
        self.trigger_changes.announce();
        Ok(())
    }

    /// The triggers.
    fn triggers(&self) -> Arc<Triggers> {
        self.state.lock().triggers.clone()
    }

    /// How many triggers there are.
    pub(crate) fn trigger_count(&self) -> usize {
        self.triggers().0.len()
    }

    /// The built-in events that triggers record.
    pub(super) fn builtins_of_triggers(&self) -> impl Iterator<Item = Builtin> {
        let triggers = self.triggers();
        Builtin::ALL.into_iter().filter(move |wanted| {
            let mut actions = triggers.0.iter().map(|placed| placed.trigger.action());
            actions.any(|action| trigger::builtin(action) == Some(*wanted))
        })
    }

    /// Does what triggers of this session ask for. Without any lock. May sleep.
    pub(super) fn act(&self, sessions: &Sessions) {
        let mut any = false;
        if self.stopper.is_stopped() {
            let _control = self.control.lock();
            any = self.finish_stopped();
        }
        for Placed { trigger, .. } in &self.triggers().0 {
            any |= trigger.serve(|| {
                let other = trigger.session();
                let other = other.map(|name| sessions.find(name).ok_or(ENOENT));
                match (trigger.action(), other.transpose()?) {
                    (Action::TraceOn, None) => self.start()?,
                    (Action::TraceOn, Some(other)) => other.start()?,
                    (Action::TraceOff, Some(other)) => other.stop(),
                    // That is done, or counted, or recorded, or for who waits.
                    _ => {}
                }
                Ok(())
            });
        }
        if any {
            self.trigger_changes.announce();
        }
    }

    /// Ends the recording if a trigger has stopped it; says whether. `control` is held.
    pub(super) fn finish_stopped(&self) -> bool {
        let is_stopped = self.stopper.is_stopped();
        if is_stopped {
            self.stop_recording();
        }
        is_stopped
    }

    /// Changes of what triggers have done.
    pub(crate) fn trigger_changes(&self) -> &TextChanges {
        &self.trigger_changes
    }

    /// Writes the triggers of an event, one a line, as they can be written again.
    pub(crate) fn write_triggers_of(&self, event: &Event, out: &mut Text) -> Result {
        let triggers = self.triggers();
        let mut of_event = triggers.of(event).peekable();
        if of_event.peek().is_none() {
            // As ftrace.
            out.write_str("# Available triggers:\n#")?;
            let mut actions = Action::ALL.into_iter();
            actions.try_for_each(|action| write!(out, " {}", action.name()))?;
            out.write_str("\n")?;
        }
        of_event.try_for_each(|trigger| writeln!(out, "{trigger}"))?;
        Ok(())
    }

    /// Writes all triggers, each behind its event.
    pub(crate) fn write_triggers(&self, out: &mut Text) -> Result {
        for Placed { event, trigger } in &self.triggers().0 {
            let (subsystem, name) = (event.subsystem(), event.name());
            writeln!(out, "{subsystem}:{name} {}", &**trigger)?;
        }
        Ok(())
    }

    /// Writes what the triggers have done: a line of names, and a line for each.
    pub(crate) fn write_triggered(&self, out: &mut Text) -> Result {
        out.write_str("fired merged failed time event trigger\n")?;
        for Placed { event, trigger } in &self.triggers().0 {
            let counts = trigger.counts();
            writeln!(
                out,
                "{} {} {} {} {}:{} {}",
                counts.fired,
                counts.merged,
                counts.failed,
                counts.time,
                event.subsystem(),
                event.name(),
                &**trigger
            )?;
        }
        Ok(())
    }
}
