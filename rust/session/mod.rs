// SPDX-License-Identifier: GPL-2.0

//! A session: which events are recorded, into what channel, and whether they are now.
//!
//! ```text
//!   created --start--> active --stop--> stopped --start--> active ...
//! ```
//!
//! From a start to its stop is one *trace*, with an identity and buffers of its own. The last
//! trace's packets stay readable until the next start.

mod metadata;
mod numbers;
mod pattern;
mod probes;
mod selection;
mod trace;
mod tracepoints;

use crate::channel::config::{Config, Refusal};
use crate::channel::time::ClockKind;
use crate::channel::Channel;
use crate::event;
use crate::sys::debugfs::text::Text;
use crate::sys::errno::enodata;
use crate::sys::hotplug::Hotplug;
use crate::sys::signal;
use crate::sys::wait::WaitQueue;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::{new_mutex, Arc, Mutex};
use numbers::Numbers;
use pattern::{Names, Pattern};
pub(crate) use selection::{Enabled, Selection};
use trace::{Recording, Trace};
pub(crate) use tracepoints::Tracepoints;

/// A session. Everything here may sleep.
#[pin_data]
pub(crate) struct Session {
    name: &'static str,
    hotplug: Arc<Hotplug<Channel>>,
    tracepoints: Arc<Tracepoints>,
    boot_id: [u8; 36],
    #[pin]
    state: Mutex<State>,
    /// Woken when the metadata's text changes.
    metadata_waiters: Arc<WaitQueue>,
}

struct State {
    config: Config,
    clock: ClockKind,
    selection: Selection,
    /// While active.
    recording: Option<Recording>,
    /// The current trace, or the last one.
    trace: Option<Trace>,
    /// Counts changes of the metadata's text.
    metadata_version: u64,
    /// Why the last refused write was refused.
    error: Option<CString>,
}

impl Session {
    /// Makes a session with nothing enabled.
    pub(crate) fn new(
        name: &'static str,
        config: Config,
        hotplug: Arc<Hotplug<Channel>>,
        tracepoints: Arc<Tracepoints>,
        boot_id: [u8; 36],
    ) -> Result<Arc<Self>> {
        let selection = Selection::new(event::count())?;
        let metadata_waiters = Arc::pin_init(WaitQueue::new(), GFP_KERNEL)?;
        let state = State {
            config,
            clock: ClockKind::best(),
            selection,
            recording: None,
            trace: None,
            metadata_version: 1,
            error: None,
        };
        Arc::pin_init(
            pin_init!(Self {
                name,
                hotplug,
                tracepoints,
                boot_id,
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
        self.state.lock().recording.is_some()
    }

    /// Begins a trace; nothing to do if the session is active. If no event is enabled, enables
    /// the default ones first.
    ///
    /// On failure (`ENOMEM`) nothing has changed, but that the last trace's packets may be gone.
    pub(crate) fn start(&self) -> Result {
        let mut state = self.state.lock();
        if state.recording.is_some() {
            return Ok(());
        }
        let mut selection = state.selection.try_clone()?;
        if selection.is_empty() {
            for event in self.available().filter(event::Event::is_default) {
                selection.set(event.id(), true);
            }
        }
        let started = match Recording::start(self, &state, &selection) {
            // The last trace's buffers may be what the new one's need.
            Err(ENOMEM) if state.trace.is_some() => {
                state.trace = None;
                Recording::start(self, &state, &selection)
            }
            started => started,
        };
        let (recording, trace) = started.inspect_err(|&error| {
            if error == ENOMEM {
                state.refuse(fmt!(
                    "enable: no memory for the buffers (see subbuf_size, subbuf_count)"
                ));
            }
        })?;
        state.selection = selection;
        state.recording = Some(recording);
        state.trace = Some(trace);
        self.metadata_changed(&mut state);
        Ok(())
    }

    /// Ends the trace: no record is taken, all that were are in packets, and readers see the
    /// end. Nothing to do if the session is not active.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        if let Some(recording) = state.recording.take() {
            recording.stop();
        }
    }

    /// Enables or disables the events that `pick` picks; in an active trace at once.
    pub(crate) fn set_enabled(
        &self,
        mut pick: impl FnMut(&event::Event) -> bool,
        enabled: bool,
    ) -> Result {
        let mut state = self.state.lock();
        let mut selection = state.selection.try_clone()?;
        for event in self.available().filter(|event| pick(event)) {
            selection.set(event.id(), enabled);
        }
        self.select(&mut state, selection)
    }

    /// Enables and disables by patterns, as the `set_event` file takes them, beginning with none
    /// if they `replace` what is enabled. All or nothing.
    pub(crate) fn set_by_patterns(&self, patterns: &str, replace: bool) -> Result {
        let mut patterns = Pattern::parse(patterns)?;
        let mut state = self.state.lock();
        let mut selection = if replace {
            Selection::new(event::count())?
        } else {
            state.selection.try_clone()?
        };
        for event in self.available() {
            // With thousands of patterns this takes its time.
            if signal::is_killed() {
                return Err(EINTR);
            }
            let names = Names::new(&event)?;
            for pattern in &mut patterns {
                if pattern.matches(&names) {
                    selection.set(event.id(), pattern.enables);
                    pattern.picked = true;
                }
            }
        }
        if let Some(pattern) = patterns.iter().find(|pattern| !pattern.picked) {
            let word = pattern.word;
            return Err(state.refuse(fmt!("set_event: '{word}' matches no event")));
        }
        self.select(&mut state, selection)
    }

    fn select(&self, state: &mut State, selection: Selection) -> Result {
        if let (Some(_), Some(trace)) = (&state.recording, &mut state.trace) {
            // Described before they are recorded: without it a reader can do nothing with a record.
            if trace.describe(&selection) {
                self.metadata_changed(state);
            }
        }
        if let (Some(recording), Some(trace)) = (&mut state.recording, &state.trace) {
            recording.select(self, &selection, trace.numbers())?;
        }
        state.selection = selection;
        Ok(())
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
        let selection = self.state.lock().selection.try_clone()?;
        Ok(self
            .available()
            .filter(move |event| selection.has(event.id())))
    }

    /// The channel's settings.
    pub(crate) fn config(&self) -> Config {
        self.state.lock().config
    }

    /// Changes the channel's settings, for the next trace. `EBUSY` while active.
    pub(crate) fn configure(
        &self,
        file: &str,
        change: impl FnOnce(Config) -> Result<Config, Refusal>,
    ) -> Result {
        let mut state = self.state.lock();
        state.must_be_stopped(file)?;
        match change(state.config) {
            Ok(config) => state.config = config,
            Err(refusal) => return Err(state.refuse(fmt!("{file}: {refusal}"))),
        }
        Ok(())
    }

    /// The clock of the next trace, or of the active one.
    pub(crate) fn clock(&self) -> ClockKind {
        self.state.lock().clock
    }

    /// Chooses the clock by name. `EBUSY` while active.
    pub(crate) fn set_clock(&self, name: &str) -> Result {
        let mut state = self.state.lock();
        state.must_be_stopped("clock")?;
        match ClockKind::by_name(name) {
            Some(clock) => state.clock = clock,
            None if ClockKind::NAMES.contains(&name) => {
                return Err(state.refuse(fmt!(
                    "clock: '{name}' is not constant, or not in step, on this machine"
                )))
            }
            None => return Err(state.refuse(fmt!("clock: there is no clock '{name}'"))),
        }
        Ok(())
    }

    /// The channel of the current trace, or of the last one. `ENODATA` before the first.
    pub(crate) fn channel(&self) -> Result<Arc<Channel>> {
        let state = self.state.lock();
        let trace = state.trace.as_ref().ok_or_else(enodata)?;
        Ok(trace.channel().clone())
    }

    /// Writes the metadata of the current trace, or of the last one.
    pub(crate) fn write_metadata(&self, out: &mut Text) -> Result {
        let state = self.state.lock();
        let trace = state.trace.as_ref().ok_or_else(enodata)?;
        trace.write_metadata(out).map_err(|_| ENOMEM)
    }

    /// A number that changes when the metadata does, and who waits for that.
    pub(crate) fn metadata_changes(&self) -> (u64, &WaitQueue) {
        (self.state.lock().metadata_version, &self.metadata_waiters)
    }

    fn metadata_changed(&self, state: &mut State) {
        state.metadata_version = state.metadata_version.wrapping_add(1);
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

impl State {
    fn must_be_stopped(&mut self, file: &str) -> Result {
        if self.recording.is_some() {
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
