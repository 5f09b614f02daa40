// SPDX-License-Identifier: GPL-2.0

//! The filters of a channel: which records of an event it takes.

use super::patterns::matches;
use crate::event::Event;
use crate::input::filter::error::Error as WrongFilter;
use crate::input::pattern::Pattern;
use crate::probe::filter::{Filter, Refusal};
use crate::session::{ChannelId, Session};
use crate::sys::debugfs::text::Text;
use crate::sys::privilege::Rights;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The filters of a channel's events, by the events' ids.
pub(in crate::session) struct Filters(KVVec<(Arc<Event>, Arc<Filter>)>);

impl Filters {
    /// An empty list.
    pub(in crate::session) const NONE: Self = Self(KVVec::new());

    /// A copy.
    pub(in crate::session) fn try_clone(&self) -> Result<Self> {
        let mut filters = KVVec::with_capacity(self.0.len(), GFP_KERNEL)?;
        for (event, filter) in &self.0 {
            filters.push((event.clone(), filter.clone()), GFP_KERNEL)?;
        }
        Ok(Self(filters))
    }

    /// The filter of the event with this id.
    pub(in crate::session) fn get(&self, id: u32) -> Option<&Arc<Filter>> {
        let at = self.position(id).ok()?;
        Some(&self.0.get(at)?.1)
    }

    /// Index of an event's filter, or the index where it would be inserted.
    fn position(&self, id: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&id, |(event, _)| event.id())
    }

    /// Removes the filter of `event`.
    pub(in crate::session) fn forget(&mut self, event: &Event) {
        if let Ok(at) = self.position(event.id()) {
            let _ = self.0.remove(at);
        }
    }

    /// Sets or removes the filter of `event`.
    fn set(&mut self, event: &Arc<Event>, filter: Option<Arc<Filter>>) -> Result {
        match (self.position(event.id()), filter) {
            (_, None) => self.forget(event),
            (Ok(at), Some(filter)) => {
                if let Some((_, known)) = self.0.get_mut(at) {
                    *known = filter;
                }
            }
            (Err(at), Some(filter)) => {
                self.0.reserve(1, GFP_KERNEL)?;
                let inserted = self.0.insert_within_capacity(at, (event.clone(), filter));
                inserted.map_err(|_| ENOMEM)?;
            }
        }
        Ok(())
    }
}

impl Session {
    /// Sets the filter of the events that match `pattern`, or removes it (`0`). An active trace follows at
    /// once. As with ftrace's `filter` files, a filter for several events is set for those that have its
    /// fields; there must be at least one. A field that can never have the compared value is an error: its event would
    /// be recorded without a filter. On failure nothing changes.
    pub(crate) fn set_filter(
        &self,
        channel: ChannelId,
        file: &str,
        pattern: &str,
        filter: &str,
        rights: Rights,
    ) -> Result {
        let pattern = Pattern::parse(pattern);
        if !pattern.enables {
            return Err(self.refuse(fmt!(
                "{file}: a pattern with '!' excludes events, so it cannot have a filter"
            )));
        }
        self.ask_for(file, &pattern, rights)?;
        let is_picked = |event: &Event| matches(&pattern, event);
        self.filter_events(channel, file, is_picked, filter, rights)
    }

    /// As [`set_filter`](Self::set_filter), for the events that `pick` selects.
    pub(crate) fn filter_events(
        &self,
        channel: ChannelId,
        file: &str,
        pick: impl Fn(&Event) -> bool,
        filter: &str,
        rights: Rights,
    ) -> Result {
        let filter = filter.trim();
        let wrong = |wrong: WrongFilter| {
            self.refuse(fmt!(
                "{file}: the expression is wrong\n{}",
                format_args!("{}", wrong.shown(filter))
            ))
        };
        self.change(channel, rights, |settings| {
            let mut filters = settings.filters.try_clone()?;
            let (mut any, mut refusal) = (false, None);
            self.for_each_picked(pick, |event| {
                let made = match filter {
                    "0" => None,
                    _ => match event.filter(filter, 0, rights) {
                        Ok(made) => Some(made),
                        Err(Refusal::Memory) => return Err(ENOMEM),
                        Err(Refusal::Wrong(error)) if error.reason.is_impossible() => {
                            return Err(wrong(error));
                        }
                        Err(refused) => {
                            refusal.get_or_insert(refused);
                            return Ok(());
                        }
                    },
                };
                any = true;
                filters.set(event, made)
            })?;
            match refusal {
                _ if any => {}
                Some(Refusal::Wrong(error)) => return Err(wrong(error)),
                Some(_) => {
                    return Err(
                        self.refuse(fmt!("{file}: the event's records are too long for one"))
                    );
                }
                None => return Err(self.refuse(fmt!("{file}: the pattern matches no event"))),
            }
            settings.filters = filters;
            Ok(())
        })
    }

    /// Number of events that have a filter.
    pub(crate) fn filter_count(&self, channel: ChannelId) -> Result<usize> {
        self.look(channel, |channel| channel.filters.0.len())
    }

    /// Removes all filters. On failure nothing changes.
    pub(crate) fn clear_filters(&self, channel: ChannelId) -> Result {
        self.change(channel, Rights::NONE, |settings| {
            settings.filters = Filters::NONE;
            Ok(())
        })
    }

    /// Writes the filter of an event; `none` if it has none, as in ftrace.
    pub(crate) fn write_filter(&self, channel: ChannelId, event: &Event, out: &mut Text) -> Result {
        let filter = self.look(channel, |channel| channel.filters.get(event.id()).cloned())?;
        let expression = filter.as_ref().map_or("none", |filter| filter.expression());
        writeln!(out, "{expression}")?;
        Ok(())
    }

    /// Writes all filters, each after its event.
    pub(crate) fn write_filters(&self, channel: ChannelId, out: &mut Text) -> Result {
        let filters = self.look(channel, |channel| channel.filters.try_clone())??;
        for (event, filter) in &filters.0 {
            writeln!(
                out,
                "{}:{} {}",
                event.subsystem(),
                event.name(),
                filter.expression()
            )?;
        }
        Ok(())
    }
}
