// SPDX-License-Identifier: GPL-2.0

//! `sessions/`: a directory for each session; `create_session`, `destroy_session`, `create_channel`; `on_close`.

use super::channel::{self, ChannelTarget};
use super::subdirs::Subdirs;
use super::{control, metadata, state};
use crate::abi::names::FIRST_CHANNEL;
use crate::session::{ChannelId, EventFiles, Session, Sessions};
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Dir, WRITE};
use crate::sys::privilege::Rights;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The directories of all sessions.
pub(super) struct SessionDirs {
    sessions: Arc<Sessions>,
    dirs: Arc<Subdirs<SessionDir>>,
}

/// The directory of a session.
struct SessionDir {
    channels: Arc<Subdirs<Dir>>,
    _dir: Arc<Dir>,
}

impl Drop for SessionDir {
    fn drop(&mut self) {
        self.channels.close();
    }
}

impl SessionDirs {
    /// Without directories.
    pub(super) fn new(sessions: Arc<Sessions>) -> Result<Self> {
        let dirs = Subdirs::new()?;
        Ok(Self { sessions, dirs })
    }

    /// Creates the files that create and destroy sessions.
    pub(super) fn make_control(&self, dir: &mut Dir) -> Result {
        let data = dir.data(Self {
            sessions: self.sessions.clone(),
            dirs: self.dirs.clone(),
        })?;
        dir.text::<CreateSession>("create_session", WRITE, data)?;
        dir.text::<DestroySession>("destroy_session", WRITE, data)?;
        dir.text::<OnClose>("on_close", WRITE, data)
    }

    /// Creates the directory of the default session in `parent`. Other sessions can follow.
    pub(super) fn open(&self, parent: Dir) -> Result {
        self.dirs.open(parent)?;
        self.add(self.sessions.default())
    }

    /// See [`Sessions::set_files`].
    pub(super) fn set_files(&self, files: Option<Arc<dyn EventFiles>>) {
        self.sessions.set_files(files);
    }

    /// Removes all directories. May sleep.
    pub(super) fn close(&self) {
        self.dirs.close();
    }

    fn add(&self, session: &Arc<Session>) -> Result {
        self.dirs
            .add(session.name(), |dir| SessionDir::new(dir, session))
    }
}

impl SessionDir {
    fn new(mut dir: Dir, session: &Arc<Session>) -> Result<Self> {
        let channels = Subdirs::new()?;
        control::make(&mut dir, session, false)?;
        let data = dir.data(session.clone())?;
        control::make_upkeep(&mut dir, data)?;
        metadata::make(&mut dir, data)?;
        state::make(&mut dir, data)?;
        let data = dir.data(Channels {
            session: session.clone(),
            dirs: channels.clone(),
        })?;
        dir.text::<CreateChannel>("create_channel", WRITE, data)?;

        let this = Self {
            channels,
            _dir: Arc::new(dir, GFP_KERNEL)?,
        };
        this.channels.open(Dir::within(&this._dir, "channels")?)?;
        add_channel(&this.channels, session, FIRST_CHANNEL, ChannelId::FIRST)?;
        Ok(this)
    }
}

/// A session, and the directories of its channels.
struct Channels {
    session: Arc<Session>,
    dirs: Arc<Subdirs<Dir>>,
}

fn add_channel(dirs: &Subdirs<Dir>, session: &Arc<Session>, name: &str, id: ChannelId) -> Result {
    dirs.add(name, |mut dir| {
        channel::make(&mut dir, ChannelTarget::new(session, id))?;
        Ok(dir)
    })
}

/// Creates a session.
struct CreateSession;

impl TextFile for CreateSession {
    type Data = SessionDirs;

    fn show(_: &SessionDirs, _: &mut Text) -> Result {
        Err(EPERM)
    }

    fn store(dirs: &SessionDirs, input: &str, _: Rights) -> Result {
        let name = input.trim();
        let session = dirs.sessions.create(name)?;
        dirs.add(&session).inspect_err(|_| {
            let _ = dirs.sessions.destroy(name);
        })?;
        if session.is_destroyed() {
            // Another task destroyed it before it had files.
            dirs.dirs.remove(name);
            return Err(ENOENT);
        }
        Ok(())
    }
}

/// Stops a session, and removes it with its files.
struct DestroySession;

impl TextFile for DestroySession {
    type Data = SessionDirs;

    fn show(_: &SessionDirs, _: &mut Text) -> Result {
        Err(EPERM)
    }

    fn store(dirs: &SessionDirs, input: &str, _: Rights) -> Result {
        let session = dirs.sessions.destroy(input.trim())?;
        dirs.dirs.remove(session.name());
        Ok(())
    }
}

/// Destroys sessions and deletes dynamic events when the file is closed, so that nothing stays of a killed process.
struct OnClose;

/// A line of `on_close`.
enum Left<'a> {
    /// The session of this name.
    Session(&'a str),
    /// The dynamic events of this subsystem.
    Events(&'a str),
}

impl<'a> Left<'a> {
    /// The line's meaning. [`None`]: the line is wrong.
    fn parse(line: &'a str) -> Option<Self> {
        match line.trim().split_once(' ')? {
            ("session", name) => Some(Self::Session(name)),
            ("events", subsystem) => Some(Self::Events(subsystem)),
            _ => None,
        }
    }
}

impl TextFile for OnClose {
    type Data = SessionDirs;

    const IS_KEPT: bool = true;

    fn show(_: &SessionDirs, _: &mut Text) -> Result {
        Err(EPERM)
    }

    fn store(dirs: &SessionDirs, input: &str, rights: Rights) -> Result {
        let default = dirs.sessions.default();
        for line in input.lines() {
            match Left::parse(line) {
                Some(Left::Session(_)) => {}
                Some(Left::Events(_)) => dirs.sessions.may_define("on_close", rights)?,
                None => {
                    return Err(default.refuse(fmt!(
                        "on_close: '{line}' is neither `session NAME` nor `events SUBSYSTEM`"
                    )));
                }
            }
        }
        Ok(())
    }

    fn closed(dirs: &SessionDirs, kept: &str, _: Rights) {
        let left = || kept.lines().filter_map(Left::parse);
        // Sessions may record the events.
        for left in left() {
            if let Left::Session(name) = left {
                // The process may have destroyed it.
                if let Ok(session) = dirs.sessions.destroy(name) {
                    dirs.dirs.remove(session.name());
                }
            }
        }
        for left in left() {
            if let Left::Events(subsystem) = left {
                dirs.sessions.undefine(subsystem);
            }
        }
    }
}

/// Adds a channel to a session.
struct CreateChannel;

impl TextFile for CreateChannel {
    type Data = Channels;

    fn show(_: &Channels, _: &mut Text) -> Result {
        Err(EPERM)
    }

    fn store(channels: &Channels, input: &str, _: Rights) -> Result {
        let Channels { session, dirs } = channels;
        let name = input.trim();
        let mut has_files = false;
        let added = session.add_channel(name, |id| {
            add_channel(dirs, session, name, id)?;
            has_files = true;
            Ok(())
        });
        if added.is_err() && has_files {
            dirs.remove(name);
        }
        added
    }
}
