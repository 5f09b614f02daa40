// SPDX-License-Identifier: GPL-2.0

//! A session: the events to record, the channels that get them, and whether it records now.
//!
//! ```text
//!   created --start--> active --stop--> stopped --start--> active ...
//! ```
//!
//! A *trace* lasts from a start to the next stop. It has an identity and buffers of its own. The last trace's
//! packets stay readable until readers have seen their end, a user frees them, or the next start.
//!
//! Sessions are independent: each attaches its own probes to the kernel's tracepoints.
//!
//! There are two locks; `control` is taken before `state`:
//! - `control` is held during a change of the session, from the first check to the end. A start and a stop
//!   attach and detach probes under it, which takes long.
//! - `state` is held for moments: to read it, and to store a finished change.
//!
//! So code that only reads never waits for a start or a stop.
//!
//! The functions of [`Session`] are in this file (start, stop, channels), and in three folders:
//! - `choice`: settings, and the chosen events, tasks and functions;
//! - `recording`: the trace, from the start to the last reader;
//! - `reactions`: triggers and maps.

mod choice;
mod dynamic;
mod list;
mod modules;
mod programs;
mod reactions;
mod recording;

use crate::abi;
use crate::channel::clock::ClockKind;
use crate::channel::config::Config;
use crate::channel::dump::Listing;
use crate::channel::stopper::Stopper;
use crate::channel::{Channel, Ways};
use crate::context::user_stack::UserStacks;
use crate::event::awaited::AllAwaited;
use crate::event::registry::Registry;
use crate::probe::builtin::BuiltinProbes;
use crate::probe::map::Map;
use crate::probe::tasks::{Following, Tasks};
use crate::source::attached::AttachedProbes;
use crate::source::aux;
use crate::source::latency::timer::Timers;
use crate::source::rings::Rings;
use crate::source::sampled::Frequency;
use crate::source::session::SessionSources;
use crate::sys::debugfs::text::{Text, TextChanges};
use crate::sys::errno::enodata;
use crate::sys::hotplug::Hotplug;
use crate::sys::perf::Arrivals;
use crate::sys::turn::Turn;
use choice::{perf, ChannelSettings, Filters, FunctionChoice, Settings, TaskChoice};
pub(crate) use choice::{ChannelId, Enabled, Regions, Selection, Setting};
use core::fmt::Write;
pub(crate) use dynamic::{EventFiles, FilesPlace};
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::{new_mutex, Arc, Mutex};
pub(crate) use list::{DeferredWork, Sessions, Worker};
pub(crate) use modules::Follower;
pub(crate) use programs::RegisteredEvent;
use reactions::{Maps, Triggers};
use recording::{EventNumbers, Recording};
pub(crate) use recording::{HiddenAddresses, Leaps, Lines, Trace, TraceChannel};

/// Objects that all sessions share.
pub(crate) struct SessionsShared {
    /// All events.
    pub(crate) registry: Arc<Registry>,
    /// Events of modules.
    pub(crate) awaited: Arc<AllAwaited>,
    /// Notifies channels of CPU hotplug.
    pub(crate) hotplug: Arc<Hotplug<Channel>>,
    /// Notifies counters and samplers of CPU hotplug.
    pub(crate) perf_hotplug: Arc<Hotplug<Arrivals>>,
    /// Notifies maps of CPU hotplug.
    pub(crate) map_hotplug: Arc<Hotplug<Map>>,
    /// Notifies of CPU hotplug the timers whose latency is measured.
    pub(crate) timer_hotplug: Arc<Hotplug<Timers>>,
    /// Settings of a new channel, and of each channel after a reset.
    pub(crate) defaults: Config,
    /// Stacks of programs.
    pub(crate) user_stacks: Arc<UserStacks>,
    /// Identity of the clock in a trace.
    pub(crate) boot_id: [u8; 36],
    /// Executes the requests of triggers.
    pub(crate) worker: Arc<Worker>,
    /// Leaps of the clocks for which no trace has a marker yet.
    pub(crate) leaps: Arc<Leaps>,
    /// Executes the deferred work for modules.
    pub(crate) follower: Arc<Follower>,
    /// Creates and removes the files of events.
    pub(crate) files: Arc<FilesPlace>,
    /// The buffers, for programs that read a dump.
    pub(crate) listing: Arc<Listing>,
    /// Reserved memory that sessions use.
    pub(crate) regions: Arc<Regions>,
    /// Rings of programs.
    pub(crate) rings: Arc<Rings>,
}

/// A session. All functions may sleep.
#[pin_data]
pub(crate) struct Session {
    name: CString,
    shared: Arc<SessionsShared>,
    #[pin]
    control: Mutex<()>,
    /// Taken while a channel is added. `control` is taken within it.
    #[pin]
    adding: Turn,
    #[pin]
    state: Mutex<State>,
    /// The tasks whose events are recorded.
    tasks: Arc<Tasks>,
    /// Updates these tasks at forks and exits.
    #[pin]
    following: Mutex<Option<Following>>,
    sources: SessionSources,
    /// Changes of the metadata.
    metadata_changes: TextChanges,
    /// Stops the recording in contexts that cannot take `control`.
    stopper: Arc<Stopper>,
    /// Records markers and other built-in events.
    builtins: Arc<BuiltinProbes>,
    #[pin]
    trigger_probes: Mutex<AttachedProbes>,
    /// Changes of the triggers' counters.
    trigger_changes: TextChanges,
    /// The gates that stop the probes of triggers.
    closed: Ways,
}

struct State {
    settings: Settings,
    phase: Phase,
    triggers: Arc<Triggers>,
    maps: Arc<Maps>,
    /// Reason why the last refused write was refused.
    error: Option<CString>,
}

/// Phase of a session's life.
enum Phase {
    /// The session was not started yet.
    Created,
    /// A trace is being recorded.
    Active {
        trace: Arc<Trace>,
        recording: Arc<Recording>,
    },
    /// The last trace is over.
    Stopped { trace: Arc<Trace> },
    /// The last trace is over, and no other will follow.
    Destroyed { trace: Option<Arc<Trace>> },
}

impl Session {
    /// Creates a session with one channel and no enabled event.
    fn new(name: &str, shared: Arc<SessionsShared>) -> Result<Arc<Self>> {
        let name = CString::try_from_fmt(fmt!("{name}"))?;
        let tasks = Arc::new(Tasks::new(), GFP_KERNEL)?;
        let sources = SessionSources::new(&shared.timer_hotplug)?;
        let trigger_probes = AttachedProbes::new(&sources);
        let (metadata_changes, trigger_changes) = (TextChanges::new()?, TextChanges::new()?);
        let stopper = Arc::new(Stopper::new(shared.worker.clone()), GFP_KERNEL)?;
        let builtins = Arc::new(BuiltinProbes::new(), GFP_KERNEL)?;
        let closed = Ways::closed().ok_or(ENOMEM)?;
        let state = State {
            settings: Settings::new(shared.defaults, abi::names::FIRST_CHANNEL)?,
            phase: Phase::Created,
            triggers: Arc::new(Triggers::NONE, GFP_KERNEL)?,
            maps: Arc::new(Maps::NONE, GFP_KERNEL)?,
            error: None,
        };
        Arc::pin_init(
            pin_init!(Self {
                name,
                shared,
                control <- new_mutex!(()),
                adding <- Turn::new(),
                state <- new_mutex!(state),
                tasks,
                sources,
                following <- new_mutex!(None),
                metadata_changes,
                stopper,
                builtins,
                trigger_probes <- new_mutex!(trigger_probes),
                trigger_changes,
                closed,
            }),
            GFP_KERNEL,
        )
    }

    /// The session's name.
    pub(crate) fn name(&self) -> &str {
        self.name.to_str().unwrap_or("")
    }

    /// The session's own sources.
    pub(crate) fn sources(&self) -> &SessionSources {
        &self.sources
    }

    /// Whether a trace is being recorded.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Active { .. })
    }

    /// Starts a trace. Does nothing if the session is active. If no event is enabled, first enables the default
    /// ones in the first channel.
    ///
    /// On failure nothing changes, except that the last trace's packets may be gone (`ENOMEM`, or if they are
    /// in reserved memory). Errors:
    /// - `ENOSPC`: the processor has no counter left for samples.
    /// - `EAGAIN`: too many probes of earlier traces are still in use.
    /// - `ENOENT`: the session was destroyed.
    pub(crate) fn start(&self) -> Result {
        self.shared.look_for_perf_events()?;
        let _control = self.control.lock();
        // A trigger may have stopped the recording already. The session then completes that stop first.
        self.finish_stopped();
        let (mut settings, last) = {
            let mut state = self.state.lock();
            match state.phase {
                Phase::Active { .. } => return Ok(()),
                Phase::Destroyed { .. } => return Err(ENOENT),
                Phase::Created | Phase::Stopped { .. } => {}
            }
            let last = state.phase.trace().cloned();
            state.settings.clock = state.settings.clock.if_reliable();
            (state.settings.try_clone()?, last)
        };
        if settings
            .channels()
            .all(|(_, channel)| channel.has_no_event())
        {
            settings.channel_mut(ChannelId::FIRST)?.selection = self.default_selection()?;
        }
        for (_, channel) in settings.channels() {
            self.check_source("enable", channel)?;
        }
        if let Some(last) = &last {
            last.leave_regions(&settings)?;
        }
        let started = match (recording::start(self, &settings), last) {
            // The new trace may need the memory of the last trace's buffers.
            (Err(ENOMEM), Some(last)) => {
                last.free()?;
                recording::start(self, &settings)
            }
            (started, _) => started,
        };
        let mut state = self.state.lock();
        let (trace, recording) = started.inspect_err(|&error| {
            let why = match error {
                ENOMEM => "no memory for the buffers (see subbuf_size, subbuf_count)",
                ENOSPC => "the processor has no counter left for profile:profile_cycles",
                EPERM => perf::NOT_PERMITTED,
                EAGAIN => {
                    "too many probes are held by tasks that wait for their memory (see waiting)"
                }
                error => match aux::refusal(error) {
                    Some(why) => why,
                    None => return,
                },
            };
            state.refuse(fmt!("enable: {why}"));
        })?;
        state.settings = settings;
        let last = core::mem::replace(&mut state.phase, Phase::Active { trace, recording });
        drop(state);
        self.metadata_changes.announce();
        // Freeing the last trace's buffers takes a while, so it is done without the lock.
        drop(last);
        Ok(())
    }

    /// Ends the trace: no record is accepted any more, all records are in packets, and readers see the end.
    /// Does nothing if the session is not active.
    pub(crate) fn stop(&self) {
        let _control = self.control.lock();
        self.stop_recording();
    }

    /// As [`stop`](Self::stop); the session cannot be started again. A reader with an open stream can continue.
    fn destroy(&self) {
        let _control = self.control.lock();
        self.stop_recording();
        // If memory is short, triggers and maps stay until the session is freed.
        let _ = self.clear_triggers();
        let _ = self.clear_maps();
        let mut state = self.state.lock();
        let trace = state.phase.trace().cloned();
        state.phase = Phase::Destroyed { trace };
        drop(state);
        // Waiting readers see that no other change will follow.
        self.metadata_changes.announce();
        self.trigger_changes.announce();
    }

    /// Stops the recording, if there is one. `control` must be held.
    fn stop_recording(&self) {
        if let Some((trace, recording)) = self.active() {
            recording.stop();
            self.state.lock().phase = Phase::Stopped { trace };
        }
    }

    /// The trace that is being recorded. While the caller holds `control`, the trace stays active.
    fn active(&self) -> Option<(Arc<Trace>, Arc<Recording>)> {
        match &self.state.lock().phase {
            Phase::Active { trace, recording } => Some((trace.clone(), recording.clone())),
            _ => None,
        }
    }

    /// Counts the events that the kernel has missed until now. May sleep.
    pub(crate) fn count_missed(&self) {
        if let Some((_, recording)) = self.active() {
            recording.count_missed();
        }
    }

    /// Frees the buffers of the last trace, even if they were not read. `EBUSY` while active.
    pub(crate) fn free_buffers(&self) -> Result {
        let _control = self.control.lock();
        let last = {
            let mut state = self.state.lock();
            state.must_be_stopped("free_buffer")?;
            state.phase.trace().cloned()
        };
        last.map_or(Ok(()), |trace| trace.free())
    }

    /// Adds a channel with the default settings and no event. First calls `publish`, which creates its files; the
    /// caller removes them after a failure. Errors: `EBUSY` while active, `EEXIST`, `EINVAL` if the name is invalid,
    /// `ENOSPC` if there are too many channels, `EINTR` if a signal came while another channel was added.
    pub(crate) fn add_channel(
        &self,
        name: &str,
        publish: impl FnOnce(ChannelId) -> Result,
    ) -> Result {
        // `control` is released meanwhile: a reader of the directory can delay the creation of files without limit.
        let _adding = self.adding.take()?;
        if let Some(why) = crate::input::name::refusal(name) {
            return Err(self.refuse(fmt!("create_channel: {why}")));
        }
        let next = self.change_channels(name, |settings| settings.next(name))?;
        publish(next)?;
        self.change_channels(name, |settings| settings.add(name, self.shared.defaults))?;
        Ok(())
    }

    /// Calls `change` with the settings of the stopped session, to add the channel `name`.
    fn change_channels<R>(
        &self,
        name: &str,
        change: impl FnOnce(&mut Settings) -> Result<R>,
    ) -> Result<R> {
        let _control = self.control.lock();
        let mut state = self.state.lock();
        state.must_be_stopped("create_channel")?;
        change(&mut state.settings).inspect_err(|&error| {
            match error {
                EEXIST => state.refuse(fmt!("create_channel: channel '{name}' exists already")),
                ENOSPC => state.refuse(fmt!(
                    "create_channel: the session has {} channels, which is the limit",
                    ChannelId::MAX
                )),
                error => error,
            };
        })
    }

    /// Whether the session was destroyed.
    pub(crate) fn is_destroyed(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Destroyed { .. })
    }

    /// The channels.
    pub(crate) fn channels(&self) -> impl Iterator<Item = ChannelId> {
        ChannelId::first(self.state.lock().settings.channels().count())
    }

    /// The name of a channel.
    pub(crate) fn channel_name(&self, channel: ChannelId) -> Result<Arc<CString>> {
        self.look(channel, |channel| channel.name.clone())
    }

    /// Settings of a channel, for the active trace or the next one.
    pub(crate) fn config(&self, channel: ChannelId) -> Result<Config> {
        self.look(channel, |channel| channel.config)
    }

    fn look<R>(&self, channel: ChannelId, at: impl FnOnce(&ChannelSettings) -> R) -> Result<R> {
        Ok(at(self.state.lock().settings.channel(channel)?))
    }

    /// The clock of the active trace or the next one.
    pub(crate) fn clock(&self) -> ClockKind {
        let state = self.state.lock();
        match state.phase {
            Phase::Active { .. } => state.settings.clock,
            _ => state.settings.clock.if_reliable(),
        }
    }

    /// Selects the clock of the next trace by name. `control` is held.
    fn set_clock(&self, name: &str) -> Result {
        let clock = ClockKind::by_name(name);
        self.state.lock().settings.clock = clock.ok_or_else(|| {
            if ClockKind::NAMES.contains(&name) {
                return self.refuse(fmt!(
                    "clock: '{name}' is not constant on this machine, or differs between its CPUs"
                ));
            }
            self.refuse(fmt!("clock: there is no clock '{name}'"))
        })?;
        Ok(())
    }

    /// Sampling frequency.
    pub(crate) fn sample_frequency(&self) -> Frequency {
        self.state.lock().settings.sample_frequency
    }

    /// The current trace, or the last one. `ENODATA` before the first.
    pub(crate) fn trace(&self) -> Result<Arc<Trace>> {
        self.state.lock().phase.trace().cloned().ok_or_else(enodata)
    }

    /// Stacks of programs.
    pub(crate) fn user_stacks(&self) -> &Arc<UserStacks> {
        &self.shared.user_stacks
    }

    /// Changes of the metadata.
    pub(crate) fn metadata_changes(&self) -> &TextChanges {
        &self.metadata_changes
    }

    /// Writes the reason why the last refused write was refused.
    pub(crate) fn write_error(&self, out: &mut Text) -> core::fmt::Result {
        match &self.state.lock().error {
            Some(error) => writeln!(out, "{}", error.to_str().unwrap_or("?")),
            None => Ok(()),
        }
    }

    /// Notes why a write to a file was refused, and returns the error for it.
    pub(crate) fn refuse(&self, why: core::fmt::Arguments<'_>) -> Error {
        self.state.lock().refuse(why)
    }

    /// Notes that a file was closed within an item, which has no effect.
    pub(crate) fn refuse_unfinished(&self, file: &str, item: &str) {
        self.refuse(fmt!(
            "{file}: closed before the end of '{item}', which has no effect"
        ));
    }
}

impl Phase {
    /// The current trace, or the last one.
    fn trace(&self) -> Option<&Arc<Trace>> {
        match self {
            Self::Created => None,
            Self::Active { trace, .. } | Self::Stopped { trace } => Some(trace),
            Self::Destroyed { trace } => trace.as_ref(),
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
        // Without memory for the text, only the error number remains.
        self.error = CString::try_from_fmt(why).ok();
        EINVAL
    }
}
