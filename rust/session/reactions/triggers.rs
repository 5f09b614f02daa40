// SPDX-License-Identifier: GPL-2.0

//! Triggers of a session: actions of events, whether the session records the events or not.
//!
//! A trigger is attached from its definition until its removal, independent of starts and stops. A worker that
//! all sessions share executes the requests of triggers. It calls a session without any lock held: a start and
//! a stop take `control`, and a change of triggers waits for running probes with `control` held.

use super::standing::StandingTrigger;
use crate::event::Event;
use crate::input::filter::error::Error as WrongFilter;
use crate::input::filter::parse::Parser;
use crate::input::pattern::Pattern;
use crate::input::trigger::{Action, TriggerFilter, TriggerLine};
use crate::probe::builtin::Builtin;
use crate::probe::filter::Refusal;
use crate::probe::trigger::{self, Trigger};
use crate::probe::Probe;
use crate::session::choice::patterns::matches;
use crate::session::{RegisteredEvent, Session, Sessions};
use crate::source::attached::AttachedProbes;
use crate::source::probe_list::NewProbe;
use crate::source::sampled::Frequency;
use crate::sys::debugfs::text::TextChanges;
use crate::sys::privilege::{self, Rights};
use crate::sys::signal;
use crate::sys::work::Ask;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Maximum number of triggers of a session.
const MAX_TRIGGERS: usize = 8192;

/// Triggers, in the order of their definition. The lists are replaced, never changed, so a reader sees
/// consistent lists.
pub(in crate::session) struct Triggers {
    /// The triggers at events.
    pub(super) placed: KVVec<Placed>,
    /// The triggers for events of programs that are registered later.
    pub(super) standing: KVVec<Arc<StandingTrigger>>,
}

/// A trigger and its event.
pub(super) struct Placed {
    pub(super) event: Arc<Event>,
    pub(super) trigger: Arc<Trigger>,
}

impl Triggers {
    /// An empty list.
    pub(in crate::session) const NONE: Self = Self {
        placed: KVVec::new(),
        standing: KVVec::new(),
    };

    fn len(&self) -> usize {
        self.placed.len() + self.standing.len()
    }

    pub(super) fn of<'a>(&'a self, event: &'a Event) -> impl Iterator<Item = &'a Trigger> {
        let at_event = self
            .placed
            .iter()
            .filter(|placed| placed.event.id() == event.id());
        at_event.map(|placed| &*placed.trigger)
    }

    /// Whether a standing trigger would set this one again.
    pub(super) fn is_standing(&self, placed: &Placed) -> bool {
        let mut standing = self.standing.iter();
        standing.any(|standing| {
            standing.picks(&placed.event)
                && standing
                    .trigger()
                    .is_ok_and(|trigger| placed.trigger.does(&trigger))
        })
    }

    /// These triggers except the ones that `drops` and `ends` select, followed by `more` and `standing`.
    fn changed(
        &self,
        more: &[Placed],
        standing: Option<&Arc<StandingTrigger>>,
        drops: impl Fn(&Placed) -> bool,
        ends: impl Fn(&StandingTrigger) -> bool,
    ) -> Result<Self> {
        let mut changed = Self {
            placed: KVVec::with_capacity(self.placed.len() + more.len(), GFP_KERNEL)?,
            standing: KVVec::with_capacity(self.standing.len() + 1, GFP_KERNEL)?,
        };
        let kept = self.placed.iter().filter(|placed| !drops(placed));
        for Placed { event, trigger } in Iterator::chain(kept, more) {
            let (event, trigger) = (event.clone(), trigger.clone());
            changed.placed.push(Placed { event, trigger }, GFP_KERNEL)?;
        }
        let kept = self.standing.iter().filter(|standing| !ends(standing));
        for standing in Iterator::chain(kept, standing) {
            changed.standing.push(standing.clone(), GFP_KERNEL)?;
        }
        Ok(changed)
    }

    /// Detaches the probes of all triggers that are not in this list, and waits until none of them runs. May sleep.
    fn keep(&self, probes: &mut AttachedProbes) {
        probes.keep(|probe| {
            let mut triggers = self.placed.iter().map(|known| &known.trigger);
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
    /// Sets a trigger at the events that match `pattern`, or removes it (`!`). If the pattern is one of programs' events,
    /// the trigger is also set at those that are registered later. See [`trigger_events`](Self::trigger_events).
    pub(crate) fn set_trigger(
        &self,
        file: &str,
        pattern: &str,
        trigger: &str,
        rights: Rights,
    ) -> Result {
        let (text, pattern) = (pattern, Pattern::parse(pattern));
        if !pattern.enables {
            return Err(self.refuse(fmt!(
                "{file}: write '!' before the action to delete, not before the pattern"
            )));
        }
        self.ask_for(file, &pattern, rights)?;
        let is_picked = |event: &Event| matches(&pattern, event);
        let standing = pattern.is_of_programs().then_some(text);
        self.trigger_events(file, is_picked, standing, trigger, rights)
    }

    /// Sets a trigger at the events that `pick` selects, or removes it (`!`), in one step. If there are several
    /// events, the trigger is set at those that have the fields of its filter; there must be at least one. With the
    /// pattern `standing`, the trigger also stands for events that are registered later, and there need not be one. On
    /// failure nothing changes. Errors: `EEXIST` if there is a trigger with the same effect, `ENOENT` if there
    /// is none to remove, `EPERM` if the event is perf's, `ENOSPC` if there are too many triggers. May sleep.
    pub(crate) fn trigger_events(
        &self,
        file: &str,
        pick: impl Fn(&Event) -> bool,
        standing: Option<&str>,
        text: &str,
        rights: Rights,
    ) -> Result {
        let text = text.trim();
        let wrong = |shown: core::fmt::Arguments<'_>| {
            self.refuse(fmt!("{file}: the trigger is wrong\n{shown}"))
        };
        let mut parsed = TriggerLine::parse(text)
            .map_err(|error| wrong(format_args!("{}", error.shown(text))))?;
        // The session's own name has the same meaning as no name.
        parsed.session = parsed.session.filter(|name| *name != self.name());
        let is_present = self.available().known().any(|event| pick(event));
        if !is_present && standing.is_none() {
            return Err(self.refuse(fmt!("{file}: the pattern matches no event")));
        }
        let _control = self.control.lock();
        let known = self.triggers();
        let stands =
            |known: &StandingTrigger| standing.is_some_and(|pattern| known.does(pattern, &parsed));
        if parsed.removes {
            let goes = |placed: &Placed| pick(&placed.event) && placed.trigger.does(&parsed);
            if !known.placed.iter().any(goes) && !known.standing.iter().any(|known| stands(known)) {
                self.refuse(fmt!("{file}: there is no such trigger"));
                return Err(ENOENT);
            }
            let kept = known.changed(&[], None, goes, stands)?;
            self.replace_triggers(Arc::new(kept, GFP_KERNEL)?);
            return Ok(());
        }
        if known.standing.iter().any(|known| stands(known)) {
            self.refuse(fmt!(
                "{file}: the pattern already has a trigger with this action"
            ));
            return Err(EEXIST);
        }
        self.must_take_triggers(file, &parsed)?;
        let (mut new, mut refusal) = (KVVec::new(), None);
        self.for_each_picked(pick, |event| {
            self.check_rights(event, rights)?;
            let placed = match self.placed(event, &parsed, rights) {
                Ok(placed) => placed,
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
            Ok(new.push(placed, GFP_KERNEL)?)
        })?;
        if known.len() + new.len() + usize::from(standing.is_some()) > MAX_TRIGGERS {
            self.refuse(fmt!(
                "{file}: the session would have more than {MAX_TRIGGERS} triggers, which is the limit"
            ));
            return Err(ENOSPC);
        }
        match refusal {
            _ if !new.is_empty() => {}
            None if !is_present => {
                // Without an event, only the form of the filter can be checked.
                let wrong_filter = parsed.filter.and_then(first_error);
                if let Some(error) = wrong_filter {
                    return Err(wrong(format_args!("{}", error.shown(text))));
                }
            }
            Some(Refusal::Wrong(error)) => {
                return Err(wrong(format_args!("{}", error.shown(text))));
            }
            _ => {
                return Err(self.refuse(fmt!(
                    "{file}: the event's records are too long for a filter"
                )))
            }
        }
        let standing = standing.map(|pattern| StandingTrigger::new(pattern, &parsed, rights));
        self.add_triggers(known, &new, standing.transpose()?.as_ref(), parsed.action)
    }

    /// Sets the standing triggers at new events. A trigger whose filter does not fit an event is not set there. On failure
    /// nothing changes. `control` must be held. May sleep.
    pub(in crate::session) fn trigger_programs(&self, events: &[RegisteredEvent]) -> Result {
        for standing in &self.triggers().standing {
            let Ok(parsed) = standing.trigger() else {
                continue;
            };
            let known = self.triggers();
            let mut new = KVVec::new();
            for RegisteredEvent { event, .. } in events {
                let has_it = || known.of(event).any(|trigger| trigger.does(&parsed));
                if !standing.picks(event) || has_it() {
                    continue;
                }
                match self.placed(event, &parsed, standing.rights()) {
                    Ok(placed) => new.push(placed, GFP_KERNEL)?,
                    Err(Refusal::Memory) => return Err(ENOMEM),
                    Err(Refusal::Wrong(_) | Refusal::TooLong) => {}
                }
            }
            if known.len() + new.len() > MAX_TRIGGERS {
                return Err(ENOSPC);
            }
            if !new.is_empty() {
                self.add_triggers(known, &new, None, parsed.action)?;
            }
        }
        Ok(())
    }

    /// A trigger at an event, not attached, for a file with these rights. May sleep.
    fn placed(
        &self,
        event: &Arc<Event>,
        parsed: &TriggerLine<'_>,
        rights: Rights,
    ) -> Result<Placed, Refusal> {
        let filter = parsed.filter;
        let filter = filter.map(|filter| event.filter(filter.expression, filter.at, rights));
        let services = trigger::Services {
            stopper: self.stopper.clone(),
            builtins: self.builtins.clone(),
            worker: self.shared.worker.clone(),
            closed: self.closed.clone(),
        };
        let trigger = Trigger::new(parsed, filter.transpose()?, services);
        Ok(Placed {
            event: event.clone(),
            trigger: trigger.map_err(|_| Refusal::Memory)?,
        })
    }

    /// Attaches `new` triggers with this action, and adds them and a standing one to the `known`. On failure nothing
    /// changes. `control` must be held. May sleep.
    fn add_triggers(
        &self,
        known: Arc<Triggers>,
        new: &[Placed],
        standing: Option<&Arc<StandingTrigger>>,
        action: Action,
    ) -> Result {
        let triggers = known.changed(new, standing, |_| false, |_| false)?;
        let triggers = Arc::new(triggers, GFP_KERNEL)?;
        // Done before the first event fires, so that a stop by the trigger has an effect.
        if let Some((trace, recording)) = self.active() {
            recording.arm()?;
            if let Some(builtin) = trigger::builtin(action) {
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
    fn must_take_triggers(&self, file: &str, parsed: &TriggerLine<'_>) -> Result {
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
    pub(super) fn triggers(&self) -> Arc<Triggers> {
        self.state.lock().triggers.clone()
    }

    /// Whether an event has a trigger that no standing one would set again.
    pub(in crate::session) fn has_own_trigger(&self, event: &Event) -> bool {
        let triggers = self.triggers();
        let mut placed = triggers.placed.iter();
        placed.any(|placed| placed.event.id() == event.id() && !triggers.is_standing(placed))
    }

    /// Removes the triggers of a deleted event. Without memory they stay, and never fire. `control` must be held. May
    /// sleep.
    pub(in crate::session) fn forget_triggers(&self, event: &Event) {
        let known = self.triggers();
        if known.of(event).next().is_none() {
            return;
        }
        let goes = |placed: &Placed| placed.event.id() == event.id();
        if let Ok(kept) = known.changed(&[], None, goes, |_| false) {
            if let Ok(kept) = Arc::new(kept, GFP_KERNEL) {
                self.replace_triggers(kept);
            }
        }
    }

    /// Number of triggers, those included that stand for later events.
    pub(crate) fn trigger_count(&self) -> usize {
        self.triggers().len()
    }

    /// The built-in events that triggers record.
    pub(in crate::session) fn builtins_of_triggers(&self) -> impl Iterator<Item = Builtin> {
        let triggers = self.triggers();
        Builtin::ALL.into_iter().filter(move |wanted| {
            let placed = triggers.placed.iter();
            let placed = placed.map(|placed| placed.trigger.action());
            let standing = triggers.standing.iter().map(|standing| standing.trigger());
            let standing = standing.flatten().map(|trigger| trigger.action);
            let mut actions = Iterator::chain(placed, standing);
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
        for Placed { trigger, .. } in &self.triggers().placed {
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
}

/// The first error in the form of a filter.
fn first_error(filter: TriggerFilter<'_>) -> Option<WrongFilter> {
    let mut elements = Parser::new(filter.expression);
    let error = elements.find_map(|element| element.err())?;
    let at = error.at + filter.at;
    Some(WrongFilter { at, ..error })
}
