// SPDX-License-Identifier: GPL-2.0

//! A channel: its settings, its `stats` and its streams.

use super::{aux, recovered, setting, stream};
use crate::session::{ChannelId, Session, Setting};
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Dir, READ};
use kernel::prelude::*;
use kernel::sync::Arc;

/// A channel of a session: the object of most files.
#[derive(Clone)]
pub(super) struct ChannelTarget {
    pub(super) session: Arc<Session>,
    pub(super) channel: ChannelId,
}

impl ChannelTarget {
    /// Refers to this channel of `session`.
    pub(super) fn new(session: &Arc<Session>, channel: ChannelId) -> Self {
        Self {
            session: session.clone(),
            channel,
        }
    }
}

/// Creates the files of a channel's directory.
pub(super) fn make(dir: &mut Dir, target: ChannelTarget) -> Result {
    stream::make(dir, &target)?;
    setting::make(&mut dir.top(), "", Setting::of_channel(), &target)?;
    let data = dir.data(target.clone())?;
    aux::make(dir, &target, data)?;
    dir.text::<Stats>("stats", READ, data)?;
    recovered::make(dir, data)
}

/// The counters of the current trace, or of the last one.
struct Stats;

impl TextFile for Stats {
    type Data = ChannelTarget;

    fn show(target: &ChannelTarget, out: &mut Text) -> Result {
        target.session.count_missed();
        let trace = target.session.trace()?;
        trace.channel(target.channel)?.write_stats(out)
    }
}
