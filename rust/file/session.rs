// SPDX-License-Identifier: GPL-2.0

//! `sessions/`: a directory for each session; `create_session`, `destroy_session`,
//! `create_channel`.

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
        dir.text::<DestroySession>("destroy_session", WRITE, data)
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
