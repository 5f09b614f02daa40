// SPDX-License-Identifier: GPL-2.0

//! Histograms in ftrace's syntax: the trigger `hist` of an event. Each is a map.

use super::{NamedMap, Session};
use crate::abi::schema::Shown;
use crate::event::Event;
use crate::input::hist::{base, is_hex, HistBegin, HistLine, HistOrder, WriteError};
use crate::map::table::MapEntry;
use crate::probe::map::{KeyPart, MissedUpdate, Sums};
use crate::sys::debugfs::text::Text;
use crate::sys::privilege::Rights;
use crate::sys::sort::sort_unless_killed;
use core::cmp::Ordering;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;

impl Session {
    /// Defines the histogram of a line at an event, or clears or deletes (`!`) it. Errors: `EEXIST` if the event has
    /// the histogram, `ENOENT` if there is none to clear or delete. May sleep.
    pub(crate) fn set_hist(&self, event: &Event, text: &str, rights: Rights) -> Result {
        let text = text.trim();
        let wrong = |error: crate::input::hist::Error| {
            self.refuse(fmt!(
                "trigger: the histogram is wrong\n{}",
                format_args!("{}", error.shown(text))
            ))
        };
        let mut line = HistLine::parse(text).map_err(wrong)?;
        let removes = core::mem::replace(&mut line.removes, false);
        let shown = CString::try_from_fmt(fmt!("{}", format_args!("{line}")))?;
        let maps = self.maps();
        let mut at_event = maps.0.iter().filter(|map| map.is_hist_at(event));
        let known = at_event.find(|map| map.hist.as_deref() == Some(&*shown));
        match known {
            Some(known) if removes => {
                let deletes = Self::text(format_args!("!{}", known.name()))?;
                return self.set_map(deletes.as_str(), None, rights);
            }
            Some(known) if line.clears => return known.map.clear(),
            None if removes || line.clears => {
                self.refuse(fmt!("trigger: there is no such histogram"));
                return Err(ENOENT);
            }
            Some(_) => {
                self.refuse(fmt!("trigger: the event has this histogram"));
                return Err(EEXIST);
            }
            None => {}
        }
        let mut begin = None;
        if let Some((_, variable)) = line.duration {
            let saves = |map: &&Arc<NamedMap>| {
                map.hist_line()
                    .is_some_and(|line| line.begin == Some(variable.text))
            };
            let known = maps.0.iter().find(saves);
            let event = known.and_then(|map| map.events.first());
            let keys = known
                .and_then(|map| map.hist_line())
                .map(|line| line.keys.text);
            let (Some(event), Some(keys)) = (event, keys) else {
                return Err(self.refuse(fmt!("trigger: no histogram sets ${}", variable.text)));
            };
            let is_other =
                |matched: &str| matched.split_once('.') != Some((event.subsystem(), event.name()));
            if line.matched.is_some_and(|matched| is_other(matched.text)) {
                return Err(self.refuse(fmt!(
                    "trigger: {}.{} sets ${}, not the event of onmatch",
                    event.subsystem(),
                    event.name(),
                    variable.text
                )));
            }
            let event = (event.subsystem(), event.name());
            begin = Some(HistBegin { event, keys });
        }
        let name = match line.name {
            Some(name) => Self::text(format_args!("{name}"))?,
            None => self.new_name(event)?,
        };
        let full_name = (event.subsystem(), event.name());
        let map = Text::new(
            |map| match line.write_map(name.as_str(), full_name, begin, map) {
                Ok(()) => Ok(()),
                Err(WriteError::Wrong(error)) => Err(wrong(error)),
                Err(WriteError::Write) => Err(ENOMEM),
            },
        )?;
        self.set_map(map.as_str(), Some(shown), rights)
    }

    fn text(shown: core::fmt::Arguments<'_>) -> Result<Text> {
        Text::new(|text| Ok(text.write_fmt(shown)?))
    }

    /// A name that no map has: `hist.EVENT`, or that with a number.
    fn new_name(&self, event: &Event) -> Result<Text> {
        let maps = self.maps();
        let mut name = Self::text(format_args!("hist.{}", event.name()))?;
        let mut number = 2_u64;
        while maps.find(name.as_str()).is_some() {
            name = Self::text(format_args!("hist.{}.{number}", event.name()))?;
            number += 1;
        }
        Ok(name)
    }

    /// Writes the histograms of an event, one per line, in the form in which they can be set again. Returns whether
    /// there is one.
    pub(in crate::session) fn write_hist_lines(
        &self,
        event: &Event,
        out: &mut Text,
    ) -> Result<bool> {
        let mut any = false;
        for map in self.maps().0.iter().filter(|map| map.is_hist_at(event)) {
            if let Some(line) = &map.hist {
                writeln!(out, "{}", line.to_str()?)?;
                any = true;
            }
        }
        Ok(any)
    }

    /// Writes the entries of the histograms of an event, as ftrace does. May sleep.
    pub(crate) fn write_hists(&self, event: &Event, out: &mut Text) -> Result {
        let maps = self.maps();
        let at_event = maps.0.iter().filter(|map| map.is_hist_at(event));
        for (place, map) in at_event.enumerate() {
            out.write_str(if place == 0 { "" } else { "\n\n" })?;
            map.write_hist(out)?;
        }
        Ok(())
    }
}

impl NamedMap {
    fn is_hist_at(&self, event: &Event) -> bool {
        let own = self.events.first();
        self.hist.is_some() && own.is_some_and(|own| own.id() == event.id())
    }

    fn hist_line(&self) -> Option<HistLine<'_>> {
        let text = self.hist.as_ref()?.to_str().ok()?;
        HistLine::parse(text).ok()
    }

    fn write_hist(&self, out: &mut Text) -> Result {
        let line = self.hist_line().ok_or(EINVAL)?;
        let mut sums = self.map.sums()?;
        sort_unless_killed(&mut sums.entries, |one, other| {
            self.compare(&line, one, other)
        })?;
        write!(
            out,
            "# event histogram\n#\n# trigger info: {} [active]\n#\n\n",
            format_args!("{line}")
        )?;
        let mut hits = 0_u64;
        for entry in &*sums.entries {
            hits = hits.wrapping_add(entry.count);
            self.write_hist_entry(&line, &sums, entry, out)?;
        }
        write!(
            out,
            "\nTotals:\n    Hits: {hits}\n    Entries: {}\n    Dropped: {}\n",
            sums.entries.len(),
            sums.overflow.count
        )?;
        if line.duration.is_some() {
            write!(
                out,
                "    Unmatched: {}\n    Repeated: {}\n    Dropped begins: {}\n",
                sums.missed(MissedUpdate::Unmatched),
                sums.missed(MissedUpdate::Repeated),
                sums.missed(MissedUpdate::Dropped)
            )?;
        }
        Ok(())
    }

    fn write_hist_entry(
        &self,
        line: &HistLine<'_>,
        sums: &Sums,
        entry: &MapEntry,
        out: &mut Text,
    ) -> Result {
        let mut words = &entry.key[..];
        let mut before = "{ ";
        for (part, name) in self.program.keys().iter().zip(line.map_keys()) {
            let (own, rest) = words.split_at_checked(part.words()).ok_or(EINVAL)?;
            words = rest;
            write!(out, "{before}{}: ", base(name.text))?;
            before = ", ";
            match (part, own.first()) {
                (KeyPart::Number(_, integer), Some(number)) => match integer.shown {
                    _ if is_hex(name.text) => write!(out, "{number:x}")?,
                    Shown::Signed => write!(out, "{:10}", *number as i64)?,
                    _ => write!(out, "{number:10}")?,
                },
                (KeyPart::Text(..), _) => write_characters(own, out)?,
                _ => self.write_part(sums, part, own, out)?,
            }
        }
        write!(out, " }} hitcount: {:10}", entry.count)?;
        let largest = line.duration.filter(|_| line.has_max);
        let names = line.map_values().map(|value| (value.text, ""));
        let names = Iterator::chain(names, largest.map(|(variable, _)| (variable, "max ")));
        for (column, ((name, kind), stored)) in names.zip(&entry.columns).enumerate() {
            write!(out, "  {kind}{}: ", name.strip_prefix('$').unwrap_or(name))?;
            match self.program.number(column, *stored) {
                (number, true) => write!(out, "{:10}", number as i64)?,
                (number, false) => write!(out, "{number:10}")?,
            }
        }
        out.write_str("\n")?;
        Ok(())
    }

    /// The order of two entries. Without an order, by count.
    fn compare(&self, line: &HistLine<'_>, one: &MapEntry, other: &MapEntry) -> Ordering {
        let mut order = Ordering::Equal;
        let by_count = (HistOrder::Count, false);
        let default = line.sort.is_none().then_some(by_count);
        for (by, descends) in Iterator::chain(line.orders(), default) {
            let ascending = match by {
                HistOrder::Count => one.count.cmp(&other.count),
                HistOrder::Key(at) => self.compare_keys(at, one, other),
                HistOrder::Column(at) => {
                    let number = |entry: &MapEntry| {
                        let stored = entry.columns.get(at).copied().unwrap_or(0);
                        self.program.number(at, stored)
                    };
                    let ((one, is_signed), (other, _)) = (number(one), number(other));
                    compare_numbers(one, other, is_signed)
                }
            };
            order = order.then(if descends {
                ascending.reverse()
            } else {
                ascending
            });
        }
        order
    }

    fn compare_keys(&self, at: usize, one: &MapEntry, other: &MapEntry) -> Ordering {
        let before = self.program.keys().iter().take(at).map(KeyPart::words);
        let first = before.sum::<usize>();
        let Some(part) = self.program.keys().get(at) else {
            return Ordering::Equal;
        };
        let is_signed = match part {
            KeyPart::Number(_, integer) => integer.shown == Shown::Signed,
            KeyPart::Bucket(number) => number.is_signed(),
            KeyPart::Event | KeyPart::Text(..) | KeyPart::Stack | KeyPart::UserStack => false,
        };
        let words = |entry: &MapEntry| entry.key.into_iter().skip(first).take(part.words());
        match part {
            // The first character is the lowest byte.
            KeyPart::Text(..) => {
                let swapped = |entry: &MapEntry| words(entry).map(u64::swap_bytes);
                swapped(one).cmp(swapped(other))
            }
            _ => {
                let number = |entry: &MapEntry| words(entry).next().unwrap_or(0);
                compare_numbers(number(one), number(other), is_signed)
            }
        }
    }
}

fn compare_numbers(one: u64, other: u64, is_signed: bool) -> Ordering {
    match is_signed {
        true => (one as i64).cmp(&(other as i64)),
        false => one.cmp(&other),
    }
}

/// Writes a text up to its NUL. Control characters and bytes that are not ASCII become `\xHH`.
fn write_characters(words: &[u64], out: &mut Text) -> core::fmt::Result {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    for byte in bytes.take_while(|byte| *byte != 0) {
        match byte.is_ascii_graphic() || byte == b' ' {
            true => out.write_char(byte.into())?,
            false => write!(out, "\\x{byte:02x}")?,
        }
    }
    Ok(())
}
