// SPDX-License-Identifier: GPL-2.0

//! The selection of the contexts that a channel records with each event.

use crate::context::{ContextChoice, ContextRefusal, ContextSet, CounterKind, MAX_COUNTERS};
use crate::session::{ChannelId, Session};
use crate::sys::counter::Counter;
use kernel::prelude::*;
use kernel::sync::Arc;

impl Session {
    /// The contexts that a channel records with each event.
    pub(crate) fn contexts(&self, channel: ChannelId) -> Result<Arc<ContextSet>> {
        self.look(channel, |channel| channel.contexts.clone())
    }

    /// Selects contexts by name, for the next trace: in addition to the selected ones, or, with `replace`,
    /// instead of them. `control` is held.
    pub(in crate::session) fn set_contexts(
        &self,
        channel: ChannelId,
        names: &str,
        replace: bool,
    ) -> Result {
        // The lock of `state` is released: counters take a while to create and to remove.
        let kept = self.contexts(channel)?;
        let mut contexts = ContextSet::NONE;
        let counter = |kind: CounterKind| match kept.counter(kind) {
            Some(counter) => Ok(counter),
            None => Counter::new(&self.shared.perf_hotplug, kind.config()?),
        };
        let names = names.split_ascii_whitespace();
        let named = names.map(|name| ContextChoice::by_name(name).ok_or(name));
        let kept_choices = kept.iter().filter(|_| !replace).map(Ok);
        for choice in Iterator::chain(kept_choices, named) {
            let choice = match choice {
                Ok(choice) => choice,
                Err(name) => {
                    return Err(self.refuse(fmt!("contexts: there is no context '{name}'")))
                }
            };
            match contexts.add(choice, counter, &self.shared.user_stacks) {
                Ok(()) => {}
                Err(ContextRefusal::ManyCounters) => {
                    return Err(self.refuse(fmt!("contexts: more than {MAX_COUNTERS} counters")))
                }
                Err(ContextRefusal::Error(ENOMEM)) => return Err(ENOMEM),
                Err(ContextRefusal::Error(error)) => {
                    let name = choice.name();
                    return Err(
                        self.refuse(fmt!("contexts: {name} cannot be recorded here: {error:?}"))
                    );
                }
            }
        }
        let mut contexts = Arc::new(contexts, GFP_KERNEL)?;
        let mut state = self.state.lock();
        let place = &mut state.settings.channel_mut(channel)?.contexts;
        core::mem::swap(place, &mut contexts);
        drop(state);
        Ok(())
    }
}
