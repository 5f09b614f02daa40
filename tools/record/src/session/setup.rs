// SPDX-License-Identifier: GPL-2.0

//! Settings of a session before a trace, from the command line or from a file.

use crate::session::channels::{may_pick_nothing, ChannelSetup, Filter, Texts};
use crate::session::functions::Functions;
use crate::session::given::Given;
use crate::session::maker::Maker;
use crate::session::maps::Maps;
use crate::session::tasks::Tasks;
use crate::session::temporary::Temporary;
use control::{events, BufferSize, Channel, Mode, Session, Settings, FIRST_CHANNEL, TEXTS};
use rtrace_input::filter::error::NEVER;
use system::cpus;
use terminal::say;

/// Settings of a session. A setting that is `None` stays as it is.
#[derive(Debug, Default)]
pub struct Setup {
    /// The clock.
    pub clock: Option<Given<String>>,
    /// Samples per second and CPU.
    pub sample_frequency: Option<Given<u32>>,
    /// Size in bytes of the AUX area of each channel on each CPU.
    pub aux_size: Option<Given<u64>>,
    /// Settings of all channels that are written as text. A channel's own setting has precedence.
    pub texts: Texts,
    /// The channel that records markers.
    pub marker_channel: Option<Given<String>>,
    /// Contexts that all channels record with each event. A channel's own contexts have precedence.
    pub contexts: Option<Given<Vec<String>>>,
    /// The CPUs that all channels record. A channel's own CPUs have precedence.
    pub cpus: Option<Given<String>>,
    /// Whether the state at the start is recorded, too, in a channel of its own.
    pub state: bool,
    /// Choice of the tasks whose events are recorded.
    pub tasks: Tasks,
    /// Choice of the kernel functions to trace.
    pub functions: Functions,
    /// Maps to count in.
    pub maps: Maps,
    /// The channels with settings. Other channels stay as they are.
    pub channels: Vec<ChannelSetup>,
}

/// The patterns exclude all events that they choose. Recording the default events instead is not what the user wants.
#[derive(Debug, thiserror::Error)]
#[error("no event is left to record: the exclusions cover all chosen events")]
pub struct NothingChosen;

/// Whether these patterns choose only functions, the probes of `-k` and `-u`, and system calls. Then the events of
/// rtrace's own threads can be left out. Events about two tasks, such as `sched_switch`, need those of rtrace's threads,
/// too: without them it is unknown which thread runs.
pub fn are_calls<'a>(patterns: impl IntoIterator<Item = &'a str>) -> bool {
    let is_call = |pattern: &str| {
        let subsystem = pattern.split(':').next().unwrap_or_default();
        subsystem == "syscalls"
            || Maker::of_subsystem(subsystem).is_some()
            || ["syscall_e", "ftrace:func", "!"]
                .iter()
                .any(|begin| pattern.starts_with(begin))
    };
    let mut patterns = patterns.into_iter().peekable();
    patterns.peek().is_some() && patterns.all(is_call)
}

impl Setup {
    /// Replaces settings by those in `typed`, also in channels with their own.
    pub fn override_with(&mut self, typed: Self) {
        for channel in &mut self.channels {
            if typed.contexts.is_some() {
                channel.contexts = None;
            }
            if typed.cpus.is_some() {
                channel.cpus = None;
            }
            channel
                .texts
                .retain(|setting, _| !typed.texts.contains_key(setting));
        }
        self.clock = typed.clock.or(self.clock.take());
        self.sample_frequency = typed.sample_frequency.or(self.sample_frequency.take());
        self.aux_size = typed.aux_size.or(self.aux_size.take());
        self.texts.extend(typed.texts);
        self.marker_channel = typed.marker_channel.or(self.marker_channel.take());
        self.contexts = typed.contexts.or(self.contexts.take());
        self.cpus = typed.cpus.or(self.cpus.take());
        self.state |= typed.state;
        self.tasks.override_with(typed.tasks);
        self.maps.extend(typed.maps);
    }

    /// Sets mode and size of all channels that have none.
    pub fn fill(&mut self, mode: Option<Mode>, size: Option<BufferSize>) {
        for channel in &mut self.channels {
            channel.fill(mode, size);
        }
    }

    /// Also records the events of a pattern, in the channel that each session has.
    pub fn record_also(&mut self, pattern: String) {
        let first = self.channels.iter().position(ChannelSetup::is_first);
        let first = first.unwrap_or_else(|| {
            self.channels.insert(0, ChannelSetup::named(FIRST_CHANNEL));
            0
        });
        let events = self.channels[first].events.get_or_insert_default();
        events.push(pattern.into());
    }

    /// Adds the channel that each session has, if it is not given. If it is given without events, its list of events is
    /// empty. Beside other channels it then takes as little memory as possible. Alone it records the default events.
    pub fn complete_first(&mut self) {
        if !self.channels.iter().any(ChannelSetup::is_first) {
            self.channels.insert(0, ChannelSetup::named(FIRST_CHANNEL));
        }
        let alone = self.channels.len() == 1;
        for first in self.channels.iter_mut().filter(|c| c.is_first()) {
            if first.events.is_none() && !alone {
                first.size.get_or_insert_with(BufferSize::smallest);
            }
            first.events.get_or_insert_default();
        }
    }

    /// Whether the channels record [calls](are_calls) only.
    pub fn is_of_calls(&self) -> bool {
        let events = self
            .channels
            .iter()
            .filter_map(|channel| channel.events.as_ref());
        are_calls(events.flatten().map(|given| given.value.as_str()))
    }

    /// Applies the settings, and reports which of the CPUs are offline. On failure some settings may have been applied;
    /// see [`Earlier`](crate::session::earlier::Earlier).
    pub fn apply(&self, session: &Session) -> anyhow::Result<()> {
        self.set(session)?;
        let own = self
            .channels
            .iter()
            .filter_map(|channel| channel.cpus.as_ref());
        let lists = own.chain(&self.cpus).map(|list| list.value.as_str());
        for cpu in cpus::offline(lists)? {
            say(format_args!(
                "CPU {cpu} is offline: its events are recorded once it is online"
            ));
        }
        Ok(())
    }

    fn set(&self, session: &Session) -> anyhow::Result<()> {
        if let Some(clock) = &self.clock {
            clock.used(session.set_clock(&clock.value))?;
        }
        if let Some(frequency) = &self.sample_frequency {
            frequency.used(session.set_sample_frequency(frequency.value))?;
        }
        for channel in &self.channels {
            channel.apply(session)?;
        }
        for channel in session.channels()? {
            let own = self.channels.iter().find(|own| own.name == channel.name());
            let contexts = own.and_then(|own| own.contexts.as_ref());
            if let Some(contexts) = contexts.or(self.contexts.as_ref()) {
                contexts.used(channel.set_contexts(&contexts.value))?;
            }
            if let Some(size) = &self.aux_size {
                size.used(channel.set_aux_size(size.value))?;
            }
            for setting in TEXTS {
                let text = own.and_then(|own| own.texts.get(setting));
                if let Some(text) = text.or(self.texts.get(setting)) {
                    text.used(channel.set_text(setting, &text.value))?;
                }
            }
            let cpus = own.and_then(|own| own.cpus.as_ref());
            if let Some(cpus) = cpus.or(self.cpus.as_ref()) {
                cpus.used(channel.set_cpus(&cpus.value))?;
            }
        }
        if let Some(name) = &self.marker_channel {
            name.used(session.set_marker_channel(&name.value))?;
        }
        self.functions.apply(session)?;
        self.tasks.apply(session)?;
        self.maps.apply(session)
    }

    /// Applies the settings to a session that is destroyed at once, to find out what `session` would refuse. A channel
    /// that is created in `session` could not be deleted again.
    pub fn rehearse(&self, session: &Session) -> anyhow::Result<()> {
        let stage = Temporary::create(session.tracer(), None)?;
        for channel in session.channels()? {
            let name = channel.name();
            if name != FIRST_CHANNEL && !self.channels.iter().any(|own| own.name == name) {
                stage.session().create_channel(name)?;
            }
        }
        self.set(stage.session())
    }
}

impl ChannelSetup {
    /// Applies the channel's own settings. Creates the channel if it does not exist.
    fn apply(&self, session: &Session) -> anyhow::Result<()> {
        let channel = match session.channel(&self.name)? {
            Some(channel) => channel,
            None => session.create_channel(&self.name)?,
        };
        if self.mode.is_some() || self.size.is_some() {
            let now = channel.settings()?;
            channel.apply(&Settings {
                mode: self.mode.unwrap_or(now.mode),
                size: self.size.unwrap_or(now.size),
            })?;
        }
        // Before the events: a channel for rings refuses those of the kernel.
        if let Some(source) = self.texts.get("source") {
            source.used(channel.set_text("source", &source.value))?;
        }
        if let Some(patterns) = &self.events {
            choose(session, &channel, patterns)?;
        }
        for filter in &self.filters {
            filter.expression.used(filter.set(&channel))?;
        }
        Ok(())
    }
}

impl Filter {
    /// Sets the filter for the events of each pattern that have its fields. One pattern with such events suffices:
    /// mostly the last one, the end of a call.
    fn set(&self, channel: &Channel) -> system::Result<()> {
        let mut refused = None;
        let mut is_set = false;
        for pattern in &self.patterns {
            match channel.set_filter(pattern, &self.expression.value) {
                Ok(()) => is_set = true,
                // Otherwise the events of this pattern would be recorded without a filter.
                Err(error) if error.to_string().contains(NEVER) => return Err(error),
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            Some(error) if !is_set => Err(error),
            _ => Ok(()),
        }
    }
}

/// Enables the events that `patterns` choose. Without patterns: no events.
fn choose(session: &Session, channel: &Channel, patterns: &[Given<String>]) -> anyhow::Result<()> {
    let tracer = session.tracer();
    let words: Vec<_> = patterns.iter().map(|given| given.value.clone()).collect();
    let mut words = events::with_names_of_ftrace(tracer, &words);
    if let Err(refused) = channel.set_events(&words) {
        let mut available = events::available(tracer)?;
        available.extend(events::of_ftrace(tracer, &available));
        let awaited = events::awaited(tracer)?;
        let mut is_complete = true;
        for pattern in patterns {
            let word = &pattern.value;
            match events::picks_nothing(&available, &awaited, word) {
                None => {}
                Some(_) if may_pick_nothing(word) => {
                    words.retain(|other| other != word);
                    is_complete = false;
                }
                Some(complaint) => return pattern.used(Err(anyhow::Error::msg(complaint))),
            }
        }
        if is_complete {
            return Err(refused.into());
        }
        channel.set_events(&words)?;
    }
    if !patterns.is_empty() && channel.enabled_events()?.is_empty() {
        return Err(NothingChosen.into());
    }
    Ok(())
}
