// SPDX-License-Identifier: GPL-2.0

//! A session: which events are recorded, into what channels, and whether they are now.
//!
//! ```text
//!   created --start--> active --stop--> stopped --start--> active ...
//! ```
//!
//! From a start to its stop is one *trace*, with an identity and buffers of its own. The last
//! trace's packets stay readable until readers have seen their end, somebody frees them, or the
//! next start.
//!
//! Sessions know nothing of each other: each attaches probes of its own to the kernel's
//! tracepoints.
//!
//! Two locks. `control` is held by who changes the session, from the first look to the end: a
//! start and a stop attach and detach probes under it, which takes long. `state` is held for
//! moments: to look, and to put a finished change in place. So nobody who only looks waits for
//! a start or a stop. `control` is taken before `state`.

mod addresses;
mod choice;
mod contexts;
mod cpus;
mod described;
mod dynamic;
mod filters;
mod functions;
mod leaps;
mod lines;
mod list;
mod marker;
mod metadata;
mod modules;
mod numbers;
mod perf;
mod probes;
mod regions;
mod selection;
mod setting;
mod settings;
mod state;
mod table;
mod tasks;
mod trace;
mod triggers;

use crate::abi;
use crate::channel::clock::ClockKind;
use crate::channel::config::Config;
use crate::channel::dump::Listing;
use crate::channel::stopper::Stopper;
use crate::channel::Channel;
use crate::event::awaited::AllAwaited;
use crate::event::registry::Registry;
use crate::probe::builtin::BuiltinProbes;
use crate::probe::tasks::{Following, Tasks};
use crate::source::attached::AttachedProbes;
use crate::source::aux;
use crate::source::latency::timer::Timers;
use crate::source::sampled::Frequency;
use crate::source::session::SessionSources;
use crate::sys::debugfs::text::{Text, TextChanges};
use crate::sys::errno::enodata;
use crate::sys::hotplug::Hotplug;
use crate::sys::perf::Arrivals;
pub(crate) use addresses::HiddenAddresses;
use core::fmt::Write;
pub(crate) use dynamic::EventFiles;
use filters::Filters;
use functions::FunctionChoice;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::{new_mutex, Arc, Mutex};
pub(crate) use leaps::Leaps;
pub(crate) use lines::Lines;
pub(crate) use list::{DeferredWork, Sessions, Worker};
pub(crate) use modules::Follower;
use numbers::EventNumbers;
pub(crate) use perf::FilesPlace;
pub(crate) use regions::Regions;
pub(crate) use selection::{Enabled, Selection};
pub(crate) use setting::Setting;
pub(crate) use settings::ChannelId;
use settings::{ChannelSettings, Settings};
use tasks::TaskChoice;
use trace::Recording;
pub(crate) use trace::{Trace, TraceChannel};
use triggers::Triggers;

/// What all sessions share.
pub(crate) struct SessionsShared {
    /// The events that there are.
    pub(crate) registry: Arc<Registry>,
    /// Those that come and go with modules.
    pub(crate) awaited: Arc<AllAwaited>,
    /// Tells channels of CPUs that come and go.
    pub(crate) hotplug: Arc<Hotplug<Channel>>,
    /// The same for counters and samplers.
    pub(crate) perf_hotplug: Arc<Hotplug<Arrivals>>,
    /// The same for timers that are measured.
    pub(crate) timer_hotplug: Arc<Hotplug<Timers>>,
    /// What a new channel has, and a reset goes back to.
    pub(crate) defaults: Config,
    /// The clock's identity in a trace.
    pub(crate) boot_id: [u8; 36],
    /// Does what triggers ask for.
    pub(crate) worker: Arc<Worker>,
    /// Leaps of the clocks, to be marked.
    pub(crate) leaps: Arc<Leaps>,
    /// Does what follows when modules come and go.
    pub(crate) follower: Arc<Follower>,
    /// Where the files of events are that come.
    pub(crate) files: Arc<FilesPlace>,
    /// The buffers, for who reads a dump.
    pub(crate) listing: Arc<Listing>,
    /// Reserved memory that was asked for.
    pub(crate) regions: Arc<Regions>,
}

/// A session. Everything here may sleep.
#[pin_data]
pub(crate) struct Session {
    name: CString,
    shared: Arc<SessionsShared>,
    #[pin]
    control: Mutex<()>,
    #[pin]
    state: Mutex<State>,
    /// Whose events are recorded.
    tasks: Arc<Tasks>,
    /// What has these follow forks.
    #[pin]
    following: Mutex<Option<Following>>,
    sources: SessionSources,
    /// Changes of the metadata.
    metadata_changes: TextChanges,
    /// Stops the recording where `control` cannot be taken.
    stopper: Arc<Stopper>,
    /// What records markers and the like.
    builtins: Arc<BuiltinProbes>,
    #[pin]
    trigger_probes: Mutex<AttachedProbes>,
    /// Changes of what triggers have done.
    trigger_changes: TextChanges,
}

struct State {
    settings: Settings,
    phase: Phase,
    triggers: Arc<Triggers>,
    /// Why the last refused write was refused.
    error: Option<CString>,
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
    /// The last trace is over, and there will be no other.
    Destroyed { trace: Option<Arc<Trace>> },
}

impl Session {
    /// Makes a session with one channel and nothing enabled.
    fn new(name: &str, shared: Arc<SessionsShared>) -> Result<Arc<Self>> {
        let name = CString::try_from_fmt(fmt!("{name}"))?;
        let tasks = Arc::new(Tasks::new(), GFP_KERNEL)?;
        let sources = SessionSources::new(&shared.timer_hotplug)?;
        let trigger_probes = AttachedProbes::new(&sources);
        let (metadata_changes, trigger_changes) = (TextChanges::new()?, TextChanges::new()?);
        let stopper = Arc::new(Stopper::new(shared.worker.clone()), GFP_KERNEL)?;
        let builtins = Arc::new(BuiltinProbes::new(), GFP_KERNEL)?;
        let state = State {
            settings: Settings::new(shared.defaults, abi::names::FIRST_CHANNEL)?,
            phase: Phase::Created,
            triggers: Arc::new(Triggers::NONE, GFP_KERNEL)?,
            error: None,
        };
        Arc::pin_init(
            pin_init!(Self {
                name,
                shared,
                control <- new_mutex!(()),
                state <- new_mutex!(state),
                tasks,
                sources,
                following <- new_mutex!(None),
                metadata_changes,
                stopper,
                builtins,
                trigger_probes <- new_mutex!(trigger_probes),
                trigger_changes,
            }),
            GFP_KERNEL,
        )
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.name.to_str().unwrap_or("")
    }

    /// Its own sources.
    pub(crate) fn sources(&self) -> &SessionSources {
        &self.sources
    }

    /// Whether records are taken.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Active { .. })
    }

    /// Begins a trace; nothing to do if the session is active. If no event is enabled, enables
    /// the default ones first, in the first channel.
    ///
    /// On failure nothing has changed, but that the last trace's packets may be gone (`ENOMEM`, or where
    /// they are in reserved memory).
    /// `ENOSPC`: the processor has no counter left for samples.
    /// `EAGAIN`: too many probes of last traces are still in use.
    /// `ENOENT`: the session was destroyed.
    pub(crate) fn start(&self) -> Result {
        self.shared.look_for_perf_events()?;
        let _control = self.control.lock();
        // It is not active, though nobody came to say so yet.
        self.finish_stopped();
        let (mut settings, last) = {
            let state = self.state.lock();
            match state.phase {
                Phase::Active { .. } => return Ok(()),
                Phase::Destroyed { .. } => return Err(ENOENT),
                Phase::Created | Phase::Stopped { .. } => {}
            }
            let last = state.phase.trace().cloned();
            (state.settings.try_clone()?, last)
        };
        if settings
            .channels()
            .all(|(_, channel)| channel.selection.is_empty())
        {
            settings.channel_mut(ChannelId::FIRST)?.selection = self.default_selection()?;
        }
        if let Some(last) = &last {
            last.leave_regions(&settings)?;
        }
        let started = match (trace::start(self, &settings), last) {
            // The last trace's buffers may be what the new one's need.
            (Err(ENOMEM), Some(last)) => {
                last.free()?;
                trace::start(self, &settings)
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
        // Its buffers take a while.
        drop(last);
        Ok(())
    }

    /// Ends the trace: no record is taken, all that were are in packets, and readers see the
    /// end. Nothing to do if the session is not active.
    pub(crate) fn stop(&self) {
        let _control = self.control.lock();
        self.stop_recording();
    }

    /// As [`stop`](Self::stop), and there will be no other start. Who has a stream open reads on.
    fn destroy(&self) {
        let _control = self.control.lock();
        self.stop_recording();
        // Without memory they go with the session.
        let _ = self.clear_triggers();
        let mut state = self.state.lock();
        let trace = state.phase.trace().cloned();
        state.phase = Phase::Destroyed { trace };
        drop(state);
        // A waiting reader sees that there will be no other change.
        self.metadata_changes.announce();
        self.trigger_changes.announce();
    }

    /// `control` is held.
    fn stop_recording(&self) {
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

    /// Adds a channel, with the default settings and no event, if `publish` succeeds for it.
    /// `EBUSY` while active; `EEXIST`; `EINVAL`: the name is none; `ENOSPC`: there are too many.
    pub(crate) fn add_channel(
        &self,
        name: &str,
        publish: impl FnOnce(ChannelId) -> Result,
    ) -> Result {
        let _control = self.control.lock();
        let mut state = self.state.lock();
        state.must_be_stopped("create_channel")?;
        if let Some(why) = crate::input::name::refusal(name) {
            return Err(state.refuse(fmt!("create_channel: {why}")));
        }
        let id = match state.settings.add(name, self.shared.defaults) {
            Err(EEXIST) => {
                state.refuse(fmt!("create_channel: there is a channel '{name}'"));
                return Err(EEXIST);
            }
            Err(ENOSPC) => {
                state.refuse(fmt!("create_channel: the session has as many as it can"));
                return Err(ENOSPC);
            }
            added => added?,
        };
        drop(state);
        publish(id).inspect_err(|_| self.state.lock().settings.remove_last())
    }

    /// The channels.
    pub(crate) fn channels(&self) -> impl Iterator<Item = ChannelId> {
        ChannelId::first(self.state.lock().settings.channels().count())
    }

    /// The name of a channel.
    pub(crate) fn channel_name(&self, channel: ChannelId) -> Result<Arc<CString>> {
        self.look(channel, |channel| channel.name.clone())
    }

    /// A channel's settings for the next trace, or of the active one.
    pub(crate) fn config(&self, channel: ChannelId) -> Result<Config> {
        self.look(channel, |channel| channel.config)
    }

    fn look<R>(&self, channel: ChannelId, at: impl FnOnce(&ChannelSettings) -> R) -> Result<R> {
        Ok(at(self.state.lock().settings.channel(channel)?))
    }

    /// The clock of the next trace, or of the active one.
    pub(crate) fn clock(&self) -> ClockKind {
        self.state.lock().settings.clock
    }

    /// Chooses the clock of the next trace by name. `control` is held.
    fn set_clock(&self, name: &str) -> Result {
        let clock = ClockKind::by_name(name);
        self.state.lock().settings.clock = clock.ok_or_else(|| {
            if ClockKind::NAMES.contains(&name) {
                return self.refuse(fmt!(
                    "clock: '{name}' is not constant, or not in step, on this machine"
                ));
            }
            self.refuse(fmt!("clock: there is no clock '{name}'"))
        })?;
        Ok(())
    }

    /// How often what is sampled is.
    pub(crate) fn sample_frequency(&self) -> Frequency {
        self.state.lock().settings.sample_frequency
    }

    /// The current trace, or the last one. `ENODATA` before the first.
    pub(crate) fn trace(&self) -> Result<Arc<Trace>> {
        self.state.lock().phase.trace().cloned().ok_or_else(enodata)
    }

    /// Changes of the metadata.
    pub(crate) fn metadata_changes(&self) -> &TextChanges {
        &self.metadata_changes
    }

    /// Writes why the last refused write was refused.
    pub(crate) fn write_error(&self, out: &mut Text) -> core::fmt::Result {
        match &self.state.lock().error {
            Some(error) => writeln!(out, "{}", error.to_str().unwrap_or("?")),
            None => Ok(()),
        }
    }

    /// Notes that what was written to a file was refused, and returns the error for it.
    pub(crate) fn refuse(&self, why: core::fmt::Arguments<'_>) -> Error {
        self.state.lock().refuse(why)
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
        // Without memory for the text the errno must do.
        self.error = CString::try_from_fmt(why).ok();
        EINVAL
    }
}
