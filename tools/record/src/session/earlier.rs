// SPDX-License-Identifier: GPL-2.0

//! A session's settings before a trace, and their restoration.

use crate::session::tasks::Tasks;
use control::{BufferSize, Channel, EventFilter, Session, Settings, TaskSet, TEXTS};
use std::mem;
use system::Result;
use terminal::say;

/// The earlier settings. Dropping this restores them.
pub struct Earlier<'a> {
    session: &'a Session,
    clock: String,
    sample_frequency: u32,
    marker_channel: String,
    channels: Vec<EarlierChannel>,
    /// The earlier choice of tasks. `None` if the recording does not change it: forks and exits may change it
    /// meanwhile.
    whose: Option<Whose>,
}

/// Choice of the tasks whose events are recorded.
struct Whose {
    tasks: Vec<u32>,
    follow: bool,
    cgroups: Vec<String>,
}

struct EarlierChannel {
    channel: Channel,
    settings: Settings,
    events: Vec<String>,
    filters: Vec<EventFilter>,
    contexts: Vec<String>,
    cpus: String,
    aux_size: u64,
    texts: Vec<String>,
}

impl<'a> Earlier<'a> {
    /// Notes the settings of a session that is not active. The choice of tasks is noted only if `tasks` changes it.
    pub fn note(session: &'a Session, tasks: &Tasks) -> Result<Self> {
        let whose = || {
            Ok(Whose {
                tasks: session.tasks(TaskSet::Only)?,
                follow: session.follows_tasks()?,
                cgroups: session.cgroups()?,
            })
        };
        let channels = session.channels()?.into_iter();
        Ok(Self {
            session,
            clock: session.clock()?,
            sample_frequency: session.sample_frequency()?,
            marker_channel: session.marker_channel()?,
            channels: channels.map(EarlierChannel::note).collect::<Result<_>>()?,
            whose: (!tasks.is_none()).then(whose).transpose()?,
        })
    }

    /// Drops this without restoring the settings.
    pub fn forget(self) {
        mem::forget(self);
    }

    /// Restores all settings that can be restored. Returns the first error.
    fn put_back(&self) -> Result<()> {
        let Self { session, .. } = self;
        let clock = if session.clock()? == self.clock {
            Ok(())
        } else {
            session.set_clock(&self.clock)
        };
        let frequency = session.set_sample_frequency(self.sample_frequency);
        let marker_channel = session.set_marker_channel(&self.marker_channel);
        let channels = self.channels.iter().map(EarlierChannel::put_back);
        let channels = channels.fold(Ok(()), Result::and);
        let whose = self.whose.as_ref().map_or(Ok(()), |whose| {
            let cgroups = session.set_cgroups(&whose.cgroups);
            let tasks = session.set_tasks(&whose.tasks);
            let follow = session.follow_tasks(whose.follow);
            cgroups.and(tasks).and(follow)
        });
        let idle = self.idle_new_channels();
        let session = clock.and(frequency).and(marker_channel);
        session.and(channels).and(whose).and(idle)
    }

    /// Disables channels that were created meanwhile. They exist as long as the session, and from now on record no
    /// events, with as little memory as possible.
    fn idle_new_channels(&self) -> Result<()> {
        let known = |name: &str| self.channels.iter().any(|c| c.channel.name() == name);
        for channel in self.session.channels()? {
            let name = channel.name();
            if known(name) {
                continue;
            }
            let settings = channel.settings()?;
            channel.set_events::<&str>(&[])?;
            channel.set_aux_size(0)?;
            channel.apply(&Settings {
                size: BufferSize::smallest(),
                ..settings
            })?;
            say(format_args!(
                "channel `{name}` was created and stays in session `{}`, without events",
                self.session.name()
            ));
        }
        Ok(())
    }
}

impl Drop for Earlier<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.put_back() {
            say(format_args!(
                "the earlier settings could not be restored: {error}"
            ));
        }
    }
}

impl EarlierChannel {
    fn note(channel: Channel) -> Result<Self> {
        Ok(Self {
            settings: channel.settings()?,
            events: channel.enabled_events()?,
            filters: channel.filters()?,
            contexts: channel.contexts()?,
            cpus: channel.cpus()?,
            aux_size: channel.aux_size()?,
            texts: TEXTS
                .into_iter()
                .map(|setting| channel.text(setting))
                .collect::<Result<_>>()?,
            channel,
        })
    }

    fn put_back(&self) -> Result<()> {
        let Self { channel, .. } = self;
        // Before the events: a channel for rings refuses those of the kernel.
        let mut texts = TEXTS.into_iter().zip(&self.texts);
        let texts = texts.try_for_each(|(setting, text)| channel.set_text(setting, text));
        let events = channel.set_events(&self.events);
        let settings = channel.apply(&self.settings);
        let filters = channel.set_filters(&self.filters);
        let contexts = channel.set_contexts(&self.contexts);
        let cpus = channel.set_cpus(&self.cpus);
        let areas = channel.set_aux_size(self.aux_size);
        let choice = filters.and(contexts).and(cpus);
        events.and(settings).and(areas).and(texts).and(choice)
    }
}
