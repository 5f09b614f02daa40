// SPDX-License-Identifier: GPL-2.0

//! Choosing the contexts that a channel records beside each event.

use super::{ChannelId, Session};
use crate::context::{Choice, ContextSet};
use kernel::prelude::*;
use kernel::sync::Arc;

impl Session {
    /// The contexts that a channel records beside each event.
    pub(crate) fn contexts(&self, channel: ChannelId) -> Result<Arc<ContextSet>> {
        self.look(channel, |channel| channel.contexts.clone())
    }

    /// Chooses these contexts by name, for the next trace; beside those that are chosen, unless
    /// they `replace` them. `EBUSY` while active.
    pub(crate) fn set_contexts(&self, channel: ChannelId, names: &str, replace: bool) -> Result {
        let _control = self.control.lock();
        let mut state = self.state.lock();
        state.must_be_stopped("contexts")?;
        let settings = state.settings.channel_mut(channel)?;
        let mut contexts = ContextSet::NONE;
        let kept = settings.contexts.clone();
        for choice in kept.iter().filter(|_| !replace) {
            contexts.add(choice)?;
        }
        for name in names.split_ascii_whitespace() {
            match Choice::by_name(name) {
                Some(choice) => contexts.add(choice)?,
                None => return Err(state.refuse(fmt!("contexts: there is no context '{name}'"))),
            }
        }
        settings.contexts = Arc::new(contexts, GFP_KERNEL)?;
        Ok(())
    }
}
