// SPDX-License-Identifier: GPL-2.0

//! The files below /sys/kernel/debug/rtrace.
//!
//! ```text
//!   enable  version  clock  error_log  available_events  set_event
//!   events/enable  events/<sys>/enable  events/<sys>/<event>/{enable,format,id}
//!   sessions/<name>/{enable,metadata,uuid,free_buffer,reset}
//!   sessions/<name>/channels/channel0/{mode,subbuf_size,subbuf_count,switch_period,read_period}
//!   sessions/<name>/channels/channel0/{stats,cpuN}
//! ```

mod channel;
mod control;
mod events;
mod metadata;
mod stream;

use crate::event::Event;
use crate::input::number;
use crate::session::Session;
use crate::sys::debugfs::Tree;
use events::EventFiles;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The name of a session's one channel; streams on disk are called after it.
const CHANNEL: &str = "channel0";

/// All the files. Dropping them removes them, and waits for those in use.
#[pin_data]
pub(crate) struct Files {
    #[pin]
    growing: Mutex<Growing>,
}

/// The tree, and the part of it that can grow.
struct Growing {
    tree: Tree,
    events: EventFiles,
}

impl Files {
    /// Makes them.
    pub(crate) fn new(session: Arc<Session>) -> Result<Arc<Self>> {
        let growing = make(session)?;
        Arc::pin_init(
            pin_init!(Self { growing <- new_mutex!(growing) }),
            GFP_KERNEL,
        )
    }

    /// Makes those of an event that another module provides.
    pub(crate) fn add_event(&self, event: &Event) -> Result {
        let mut growing = self.growing.lock();
        let Growing { tree, events } = &mut *growing;
        events.add(tree, event)
    }

    /// Removes those of an event whose module goes.
    pub(crate) fn remove_event(&self, event: &Event) {
        let mut growing = self.growing.lock();
        let Growing { tree, events } = &mut *growing;
        events.remove(tree, event.id());
    }
}

fn make(session: Arc<Session>) -> Result<Growing> {
    let mut tree = Tree::new(c"rtrace")?;
    let root = tree.root();
    let data = tree.data(session.clone())?;

    control::make(&mut tree, root, data)?;
    let dir = tree.dir(root, "events")?;
    let events = EventFiles::new(&mut tree, dir, session.clone())?;

    let sessions = tree.dir(root, "sessions")?;
    let dir = tree.dir(sessions, session.name())?;
    control::make_session(&mut tree, dir, data)?;
    control::make_upkeep(&mut tree, dir, data)?;
    metadata::make(&mut tree, dir, data)?;
    let channels = tree.dir(dir, "channels")?;
    let dir = tree.dir(channels, CHANNEL)?;
    channel::make(&mut tree, dir, data)?;
    stream::make(&mut tree, dir, &session)?;
    Ok(Growing { tree, events })
}

/// `0` or `1`, as switches are written.
fn parse_switch(session: &Session, file: &str, input: &str) -> Result<bool> {
    let input = input.trim();
    number::switch(input)
        .ok_or_else(|| session.refuse(fmt!("{file}: '{input}' is neither 0 nor 1")))
}
