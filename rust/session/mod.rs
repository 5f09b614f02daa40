// SPDX-License-Identifier: GPL-2.0

//! A session: which events are recorded, into what channel, and whether they are now.
//!
//! ```text
//!   created --start--> active --stop--> stopped --start--> active ...
//! ```
//!
//! From a start to its stop is one *trace*, with an identity and buffers of its own. The last
//! trace's packets stay readable until readers have seen their end, somebody frees them, or the
//! next start.
//!
//! Two locks. `control` is held by who changes the session, from the first look to the end: a
//! start and a stop attach and detach probes under it, which takes long. `state` is held for
//! moments: to look, and to put a finished change in place. So nobody who only looks waits for
//! a start or a stop. `control` is taken before `state`.

mod metadata;
mod numbers;
mod probes;
mod selection;
mod trace;
mod tracepoints;

use crate::channel::clock::ClockKind;
use crate::channel::config::{Config, Refusal};
use crate::channel::Channel;
use crate::event;
use crate::input::pattern::Pattern;
use crate::sys::debugfs::text::Text;
use crate::sys::errno::enodata;
use crate::sys::hotplug::Hotplug;
use crate::sys::signal;
use crate::sys::wait::WaitQueue;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::lock::{mutex::MutexBackend, Guard};
use kernel::sync::{new_mutex, Arc, Mutex};
use numbers::Numbers;
pub(crate) use selection::{Enabled, Selection};
use trace::Recording;
pub(crate) use trace::Trace;
pub(crate) use tracepoints::Tracepoints;

/// A session. Everything here may sleep.
#[pin_data]
pub(crate) struct Session {
    name: &'static str,
    /// What [`reset`](Self::reset) goes back to.
    defaults: Config,
    hotplug: Arc<Hotplug<Channel>>,
    tracepoints: Arc<Tracepoints>,
    boot_id: [u8; 36],
    #[pin]
    control: Mutex<()>,
    #[pin]
    state: Mutex<State>,
    /// Woken when the metadata's text changes.
    metadata_waiters: Arc<WaitQueue>,
}

struct State {
    settings: Settings,
    selection: Selection,
    phase: Phase,
    /// Counts changes of the metadata's text.
    metadata_version: u64,
    /// Why the last refused write was refused.
    error: Option<CString>,
}

/// What a trace is recorded with.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    /// The channel's.
    pub(crate) config: Config,
    /// The clock.
    pub(crate) clock: ClockKind,
}

/// Where a session is in its life.
enum Phase {
    /// Not started yet.
    Created,
    /// A trace is being recorded.
    Active {
        trace: Arc<Trace>,
        recording: Arc<Recording>,
    },
    /// The last trace is over.
    Stopped { trace: Arc<Trace> },
}

impl Session {
    /// Makes a session with nothing enabled.
    pub(crate) fn new(
        name: &'static str,
        defaults: Config,
        hotplug: Arc<Hotplug<Channel>>,
        tracepoints: Arc<Tracepoints>,
        boot_id: [u8; 36],
    ) -> Result<Arc<Self>> {
        let metadata_waiters = Arc::pin_init(WaitQueue::new(), GFP_KERNEL)?;
        let state = State {
            settings: Settings::new(defaults),
            selection: Selection::new(event::count())?,
            phase: Phase::Created,
            metadata_version: 1,
            error: None,
        };
        Arc::pin_init(
            pin_init!(Self {
                name,
                defaults,
                hotplug,
                tracepoints,
                boot_id,
                control <- new_mutex!(()),
                state <- new_mutex!(state),
                metadata_waiters,
            }),
            GFP_KERNEL,
        )
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The events that can be recorded on this kernel, in the order of their ids.
    pub(crate) fn available(&self) -> impl Iterator<Item = event::Event> + '_ {
        event::all().filter(|event| self.tracepoints.has(event))
    }

    /// Whether records are taken.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Active { .. })
    }

    /// Begins a trace; nothing to do if the session is active. If no event is enabled, enables
    /// the default ones first.
    ///
    /// On failure (`ENOMEM`) nothing has changed, but that the last trace's packets may be gone.
    pub(crate) fn start(&self) -> Result {
        let _control = self.control.lock();
        let (settings, mut selection, last) = {
            let state = self.state.lock();
            if let Phase::Active { .. } = state.phase {
                return Ok(());
            }
            let last = state.phase.trace().cloned();
            (state.settings, state.selection.try_clone()?, last)
        };
        if selection.is_empty() {
            selection = self.default_selection()?;
        }
        let started = match (trace::start(self, &settings, &selection), last) {
            // The last trace's buffers may be what the new one's need.
            (Err(ENOMEM), Some(last)) => {
                last.free()?;
                trace::start(self, &settings, &selection)
            }
            (started, _) => started,
        };
        let mut state = self.state.lock();
        let (trace, recording) = started.inspect_err(|&error| {
            if error == ENOMEM {
                state.refuse(fmt!(
                    "enable: no memory for the buffers (see subbuf_size, subbuf_count)"
                ));
            }
        })?;
        state.selection = selection;
        let last = core::mem::replace(&mut state.phase, Phase::Active { trace, recording });
        self.metadata_changed(state);
        // Its buffers take a while.
        drop(last);
        Ok(())
    }

    /// Ends the trace: no record is taken, all that were are in packets, and readers see the
    /// end. Nothing to do if the session is not active.
    pub(crate) fn stop(&self) {
        let _control = self.control.lock();
        if let Some((trace, recording)) = self.active() {
            recording.stop();
            self.state.lock().phase = Phase::Stopped { trace };
        }
    }

    /// The trace that is being recorded. It goes on as long as `control` is held.
    fn active(&self) -> Option<(Arc<Trace>, Arc<Recording>)> {
        match &self.state.lock().phase {
            Phase::Active { trace, recording } => Some((trace.clone(), recording.clone())),
            _ => None,
        }
    }

    /// Frees the buffers of the last trace, and what nobody has read of it. `EBUSY` while active.
    pub(crate) fn free_buffers(&self) -> Result {
        let _control = self.control.lock();
        let last = {
            let mut state = self.state.lock();
            state.must_be_stopped("free_buffer")?;
            state.phase.trace().cloned()
        };
        last.map_or(Ok(()), |trace| trace.free())
    }

    /// Goes back to the default settings, with no event enabled. `EBUSY` while active.
    pub(crate) fn reset(&self) -> Result {
        let _control = self.control.lock();
        let selection = Selection::new(event::count())?;
        let mut state = self.state.lock();
        state.must_be_stopped("reset")?;
        state.settings = Settings::new(self.defaults);
        state.selection = selection;
        Ok(())
    }

    fn default_selection(&self) -> Result<Selection> {
        let mut selection = Selection::new(event::count())?;
        for event in self.available().filter(event::Event::is_default) {
            selection.set(event.id(), true);
        }
        Ok(selection)
    }

    /// Enables or disables the events that `pick` picks; in an active trace at once.
    pub(crate) fn set_enabled(
        &self,
        mut pick: impl FnMut(&event::Event) -> bool,
        enabled: bool,
    ) -> Result {
        let _control = self.control.lock();
        let mut selection = self.selection()?;
        for event in self.available().filter(|event| pick(event)) {
            selection.set(event.id(), enabled);
        }
        self.select(selection)
    }

    /// Enables and disables by patterns, as the `set_event` file takes them, beginning with none
    /// if they `replace` what is enabled. All or nothing.
    pub(crate) fn set_by_patterns(&self, patterns: &str, replace: bool) -> Result {
        let _control = self.control.lock();
        let mut selection = if replace {
            Selection::new(event::count())?
        } else {
            self.selection()?
        };
        for word in patterns.split_ascii_whitespace() {
            let pattern = Pattern::parse(word);
            let mut is_match = false;
            for event in self.available() {
                // With thousands of patterns, or one that is very long, this takes its time.
                if signal::is_killed() {
                    return Err(EINTR);
                }
                let mut names = event.names();
                if names.any(|(subsystem, name)| pattern.matches(subsystem, name)) {
                    selection.set(event.id(), pattern.enables);
                    is_match = true;
                }
            }
            if !is_match {
                return Err(self.refuse(fmt!("set_event: '{word}' matches no event")));
            }
        }
        self.select(selection)
    }

    /// Has `selection` recorded, at once if a trace is being recorded. `control` is held.
    fn select(&self, selection: Selection) -> Result {
        if let Some((trace, recording)) = self.active() {
            // Described before they are recorded: without it a reader can do nothing with a record.
            let (numbers, grown) = trace.describe(&selection)?;
            if grown {
                self.metadata_changed(self.state.lock());
            }
            recording.select(self, &selection, &numbers)?;
        }
        self.state.lock().selection = selection;
        Ok(())
    }

    fn selection(&self) -> Result<Selection> {
        self.state.lock().selection.try_clone()
    }

    /// How many of the events that `pick` picks are enabled.
    pub(crate) fn enabled(&self, mut pick: impl FnMut(&event::Event) -> bool) -> Enabled {
        let state = self.state.lock();
        self.available()
            .filter(|event| pick(event))
            .map(|event| state.selection.has(event.id()))
            .collect()
    }

    /// The events that are enabled, in the order of their ids.
    pub(crate) fn enabled_events(&self) -> Result<impl Iterator<Item = event::Event> + '_> {
        let selection = self.selection()?;
        Ok(self
            .available()
            .filter(move |event| selection.has(event.id())))
    }

    /// How many events are enabled, and how many are if nothing is chosen, if these are others
    /// or none is enabled.
    pub(crate) fn differing_events(&self) -> Result<Option<(usize, usize)>> {
        let (selection, defaults) = (self.selection()?, self.default_selection()?);
        let differ = !selection.is_empty() && selection != defaults;
        Ok(differ.then(|| (selection.len(), defaults.len())))
    }

    /// The settings of the next trace, or of the active one.
    pub(crate) fn settings(&self) -> Settings {
        self.state.lock().settings
    }

    /// What [`reset`](Self::reset) goes back to.
    pub(crate) fn default_settings(&self) -> Settings {
        Settings::new(self.defaults)
    }

    /// Changes the channel's settings, for the next trace. `EBUSY` while active.
    pub(crate) fn configure(
        &self,
        file: &str,
        change: impl FnOnce(Config) -> Result<Config, Refusal>,
    ) -> Result {
        let _control = self.control.lock();
        let mut state = self.state.lock();
        state.must_be_stopped(file)?;
        match change(state.settings.config) {
            Ok(config) => state.settings.config = config,
            Err(refusal) => return Err(state.refuse(fmt!("{file}: {refusal}"))),
        }
        Ok(())
    }

    /// Chooses the clock by name. `EBUSY` while active.
    pub(crate) fn set_clock(&self, name: &str) -> Result {
        let _control = self.control.lock();
        let mut state = self.state.lock();
        state.must_be_stopped("clock")?;
        match ClockKind::by_name(name) {
            Some(clock) => state.settings.clock = clock,
            None if ClockKind::NAMES.contains(&name) => {
                return Err(state.refuse(fmt!(
                    "clock: '{name}' is not constant, or not in step, on this machine"
                )))
            }
            None => return Err(state.refuse(fmt!("clock: there is no clock '{name}'"))),
        }
        Ok(())
    }

    /// The current trace, or the last one. `ENODATA` before the first.
    pub(crate) fn trace(&self) -> Result<Arc<Trace>> {
        self.state.lock().phase.trace().cloned().ok_or_else(enodata)
    }

    /// A number that changes when the metadata does, and who waits for that.
    pub(crate) fn metadata_changes(&self) -> (u64, &WaitQueue) {
        (self.state.lock().metadata_version, &self.metadata_waiters)
    }

    fn metadata_changed(&self, mut state: Guard<'_, State, MutexBackend>) {
        state.metadata_version = state.metadata_version.wrapping_add(1);
        drop(state);
        self.metadata_waiters.wake_all();
    }

    /// Writes why the last refused write was refused.
    pub(crate) fn write_error(&self, out: &mut Text) -> core::fmt::Result {
        match &self.state.lock().error {
            Some(error) => writeln!(out, "{}", error.to_str().unwrap_or("?")),
            None => Ok(()),
        }
    }

    /// Notes that what was written to `file` was refused, and returns the error for it.
    pub(crate) fn refuse(&self, why: core::fmt::Arguments<'_>) -> Error {
        self.state.lock().refuse(why)
    }
}

impl Settings {
    /// Those with `config`, and the best clock.
    fn new(config: Config) -> Self {
        Self {
            config,
            clock: ClockKind::best(),
        }
    }
}

impl Phase {
    /// The current trace, or the last one.
    fn trace(&self) -> Option<&Arc<Trace>> {
        match self {
            Self::Created => None,
            Self::Active { trace, .. } | Self::Stopped { trace } => Some(trace),
        }
    }
}

impl State {
    fn must_be_stopped(&mut self, file: &str) -> Result {
        if let Phase::Active { .. } = self.phase {
            self.refuse(fmt!(
                "{file}: the session is active (echo 0 > enable first)"
            ));
            return Err(EBUSY);
        }
        Ok(())
    }

    fn refuse(&mut self, why: core::fmt::Arguments<'_>) -> Error {
        // Without memory for the text the errno must do.
        self.error = CString::try_from_fmt(why).ok();
        EINVAL
    }
}
