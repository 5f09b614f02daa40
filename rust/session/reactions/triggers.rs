// SPDX-License-Identifier: GPL-2.0

//! Triggers of a session: actions of events, whether the session records the events or not.
//!
//! A trigger is attached from its definition until its removal, independent of starts and stops. A worker that
//! all sessions share executes the requests of triggers. It calls a session without any lock held: a start and
//! a stop take `control`, and a change of triggers waits for running probes with `control` held.

use crate::event::Event;
use crate::input::hist::HIST;
use crate::input::pattern::Pattern;
use crate::input::trigger as input;
use crate::input::trigger::Action;
use crate::probe::builtin::Builtin;
use crate::probe::filter::Refusal;
use crate::probe::trigger::{self, Trigger};
use crate::probe::Probe;
use crate::session::choice::patterns::matches;
use crate::session::{Session, Sessions};
use crate::source::attached::AttachedProbes;
use crate::source::probe_list::NewProbe;
use crate::source::sampled::Frequency;
use crate::sys::debugfs::text::{Text, TextChanges};
use crate::sys::privilege::{self, Rights};
use crate::sys::signal;
use crate::sys::work::Ask;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Maximum number of triggers of a session.
const MAX_TRIGGERS: usize = 8192;

/// Triggers, in the order of their definition. The list is replaced, never changed, so a reader sees a
/// consistent list.
pub(in crate::session) struct Triggers(KVVec<Placed>);

/// A trigger and its event.
struct Placed {
    event: Arc<Event>,
    trigger: Arc<Trigger>,
}

impl Triggers {
    /// An empty list.
    pub(in crate::session) const NONE: Self = Self(KVVec::new());

    fn of<'a>(&'a self, event: &'a Event) -> impl Iterator<Item = &'a Trigger> {
        let at_event = self
            .0
            .iter()
            .filter(|placed| placed.event.id() == event.id());
        at_event.map(|placed| &*placed.trigger)
    }

    /// These triggers except the ones that `drops` selects, followed by `more`.
    fn changed(&self, more: &[Placed], drops: impl Fn(&Placed) -> bool) -> Result<Self> {
        let mut triggers = KVVec::with_capacity(self.0.len() + more.len(), GFP_KERNEL)?;
        let kept = self.0.iter().filter(|placed| !drops(placed));
        for Placed { event, trigger } in Iterator::chain(kept, more) {
            let (event, trigger) = (event.clone(), trigger.clone());
            triggers.push(Placed { event, trigger }, GFP_KERNEL)?;
        }
        Ok(Self(triggers))
    }

    /// Detaches the probes of all triggers that are not in this list, and waits until none of them runs. May sleep.
    fn keep(&self, probes: &mut AttachedProbes) {
        probes.keep(|probe| {
            let mut triggers = self.0.iter().map(|known| &known.trigger);
            // A loop in a loop. It must end, whatever signals there are.
            let _ = signal::go_on();
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
        privilege::may_trace()?;
        self.event.source().attach(new, to)
    }
}

impl Session {
    /// Sets a trigger at the events that match `pattern`, or removes it (`!`). See
    /// [`trigger_events`](Self::trigger_events).
    pub(crate) fn set_trigger(
        &self,
        file: &str,
        pattern: &str,
        trigger: &str,
        rights: Rights,
    ) -> Result {
        let pattern = Pattern::parse(pattern);
        if !pattern.enables {
            return Err(self.refuse(fmt!(
                "{file}: write '!' before the action to delete, not before the pattern"
            )));
        }
        self.ask_for(file, &pattern, rights)?;
        let is_picked = |event: &Event| matches(&pattern, event);
        self.trigger_events(file, is_picked, trigger, rights)
    }

    /// Sets a trigger at the events that `pick` selects, or removes it (`!`), in one step. If there are several
    /// events, the trigger is set at those that have the fields of its filter; there must be at least one. On
    /// failure nothing changes. Errors: `EEXIST` if there is a trigger with the same effect, `ENOENT` if there
    /// is none to remove, `EPERM` if the event is perf's, `ENOSPC` if there are too many triggers. May sleep.
    pub(crate) fn trigger_events(
        &self,
        file: &str,
        pick: impl Fn(&Event) -> bool,
        text: &str,
        rights: Rights,
    ) -> Result {
        let text = text.trim();
        let wrong = |shown: core::fmt::Arguments<'_>| {
            self.refuse(fmt!("{file}: the trigger is wrong\n{shown}"))
        };
        let mut parsed = input::TriggerLine::parse(text)
            .map_err(|error| wrong(format_args!("{}", error.shown(text))))?;
        // The session's own name has the same meaning as no name.
        parsed.session = parsed.session.filter(|name| *name != self.name());
        if !self.available().known().any(|event| pick(event)) {
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
            self.replace_triggers(Arc::new(known.changed(&[], goes)?, GFP_KERNEL)?);
            return Ok(());
        }
        self.must_take_triggers(file, &parsed)?;
        let (mut new, mut refusal) = (KVVec::new(), None);
        self.for_each_picked(pick, |event| {
            self.check_rights(event, rights)?;
            let filter = parsed.filter;
            let filter = filter.map(|filter| event.filter(filter.expression, filter.at, rights));
            let filter = match filter.transpose() {
                Ok(filter) => filter,
                Err(Refusal::Memory) => return Err(ENOMEM),
                Err(refused) => {
                    refusal.get_or_insert(refused);
                    return Ok(());
                }
            };
            if known.of(event).any(|trigger| trigger.does(&parsed)) {
                let (subsystem, name) = (event.subsystem(), event.name());
                self.refuse(fmt!(
                    "{file}: {subsystem}:{name} already has a trigger with this action"
                ));
                return Err(EEXIST);
            }
            let services = trigger::Services {
                stopper: self.stopper.clone(),
                builtins: self.builtins.clone(),
                worker: self.shared.worker.clone(),
                closed: self.closed.clone(),
            };
            if known.0.len() + new.len() >= MAX_TRIGGERS {
                self.refuse(fmt!(
                    "{file}: the session would have more than {MAX_TRIGGERS} triggers, which is the limit"
                ));
                return Err(ENOSPC);
            }
            let trigger = Trigger::new(&parsed, filter, services)?;
            let event = event.clone();
            Ok(new.push(Placed { event, trigger }, GFP_KERNEL)?)
        })?;
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
        let triggers = Arc::new(known.changed(&new, |_| false)?, GFP_KERNEL)?;
        // Done before the first event fires, so that a stop by the trigger has an effect.
        if let Some((trace, recording)) = self.active() {
            recording.arm()?;
            if let Some(builtin) = trigger::builtin(parsed.action) {
                self.begin_builtin(builtin, &trace, &recording);
            }
        }
        let mut probes = self.trigger_probes.lock();
        let frequency = self.sample_frequency();
        let mut attach = |placed: &Placed| {
            signal::go_on()?;
            placed.attach(frequency, &mut probes)
        };
        let attached = new.iter().try_for_each(&mut attach);
        drop(probes);
        // After a failure these detach the probes that were attached.
        self.replace_triggers(if attached.is_ok() { triggers } else { known });
        attached?;
        // The trigger may have fired and queued the worker before the worker could find the trigger. So queue it again.
        self.shared.worker.ask();
        Ok(())
    }

    /// Checks that the session that a parsed trigger names exists.
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

    /// Removes all triggers. Their pending requests are dropped, except a stop of the session. `control` must
    /// be held. May sleep.
    pub(in crate::session) fn clear_triggers(&self) -> Result {
        if self.trigger_count() != 0 {
            self.replace_triggers(Arc::new(Triggers::NONE, GFP_KERNEL)?);
        }
        Ok(())
    }

    /// Removes all triggers.
    pub(crate) fn remove_triggers(&self) -> Result {
        let _control = self.control.lock();
        self.clear_triggers()
    }

    /// Replaces the triggers by these, whose probes are attached, and detaches all other probes. `control` must be held.
    /// May sleep.
    fn replace_triggers(&self, triggers: Arc<Triggers>) {
        let before = core::mem::replace(&mut self.state.lock().triggers, triggers.clone());
        triggers.keep(&mut self.trigger_probes.lock());
        drop(before);
        self.trigger_changes.announce();
    }

    /// The triggers.
    fn triggers(&self) -> Arc<Triggers> {
        self.state.lock().triggers.clone()
    }

    /// Whether an event has a trigger.
    pub(in crate::session) fn has_trigger(&self, event: &Event) -> bool {
        self.triggers().of(event).next().is_some()
    }

    /// Number of triggers.
    pub(crate) fn trigger_count(&self) -> usize {
        self.triggers().0.len()
    }

    /// The built-in events that triggers record.
    pub(in crate::session) fn builtins_of_triggers(&self) -> impl Iterator<Item = Builtin> {
        let triggers = self.triggers();
        Builtin::ALL.into_iter().filter(move |wanted| {
            let mut actions = triggers.0.iter().map(|placed| placed.trigger.action());
            actions.any(|action| trigger::builtin(action) == Some(*wanted))
        })
    }

    /// Executes the requests of this session's triggers. No lock may be held. May sleep.
    pub(in crate::session) fn act(&self, sessions: &Sessions) {
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
                    // The other actions are done, counted or recorded already, or are for a program that waits.
                    _ => {}
                }
                Ok(())
            });
        }
        if any {
            self.trigger_changes.announce();
        }
    }

    /// Ends the recording if a trigger has stopped it. Returns whether a trigger has. `control` must be held.
    pub(in crate::session) fn finish_stopped(&self) -> bool {
        let is_stopped = self.stopper.is_stopped();
        if is_stopped {
            self.stop_recording();
        }
        is_stopped
    }

    /// Changes of the triggers' counters.
    pub(crate) fn trigger_changes(&self) -> &TextChanges {
        &self.trigger_changes
    }

    /// Writes the triggers and histograms of an event, one per line, in the form in which they can be set again.
    pub(crate) fn write_triggers_of(&self, event: &Event, out: &mut Text) -> Result {
        let has_hists = self.write_hist_lines(event, out)?;
        let triggers = self.triggers();
        let mut of_event = triggers.of(event).peekable();
        if of_event.peek().is_none() && !has_hists {
            // The text that ftrace shows if an event has no trigger.
            out.write_str("# Available triggers:\n#")?;
            let mut actions = Action::ALL.into_iter();
            actions.try_for_each(|action| write!(out, " {}", action.name()))?;
            writeln!(out, " {HIST}")?;
        }
        of_event.try_for_each(|trigger| writeln!(out, "{trigger}"))?;
        Ok(())
    }

    /// Writes all triggers, each after its event.
    pub(crate) fn write_triggers(&self, out: &mut Text) -> Result {
        for Placed { event, trigger } in &self.triggers().0 {
            let (subsystem, name) = (event.subsystem(), event.name());
            writeln!(out, "{subsystem}:{name} {}", **trigger)?;
        }
        Ok(())
    }

    /// Writes the counters of the triggers: a line of names, and a line for each trigger.
    pub(crate) fn write_triggered(&self, out: &mut Text) -> Result {
        out.write_str("fired merged failed time pid comm event trigger\n")?;
        for Placed { event, trigger } in &self.triggers().0 {
            let counts = trigger.counts();
            writeln!(
                out,
                "{} {} {} {} {} {} {}:{} {}",
                counts.fired,
                counts.merged,
                counts.failed,
                counts.time,
                counts.pid,
                Word(&counts.comm),
                event.subsystem(),
                event.name(),
                **trigger
            )?;
        }
        Ok(())
    }
}

/// A text as one word: a character that would end the word, or that has no picture, is `\ooo`, as in /proc/mounts.
/// An empty text is `-`.
struct Word<'a>(&'a [u8]);

impl core::fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut bytes = self.0.iter().take_while(|byte| **byte != 0).peekable();
        if bytes.peek().is_none() {
            return f.write_char('-');
        }
        bytes.try_for_each(|byte| match byte {
            b'!'..=b'~' if *byte != b'\\' => f.write_char((*byte).into()),
            _ => write!(f, "\\{byte:03o}"),
        })
    }
}
