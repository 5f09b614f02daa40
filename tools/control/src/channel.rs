// SPDX-License-Identifier: GPL-2.0

//! The control files of a session's channel.

use crate::aux_losses::AuxLosses;
use crate::session::{is_no_trace, Session};
use crate::settings::Settings;
use crate::tracer::lines;
use schemars::JsonSchema;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;
use system::{Error, Result};

/// The maximum size of one write to a control file: the kernel parses patterns write by write.
const WRITE_LIMIT: usize = 1024;

/// The file that frees the memory of an earlier boot.
const FREE: &str = "free_recovered";

/// A channel of a session.
#[derive(Clone, Debug)]
pub struct Channel {
    session: Session,
    name: String,
}

impl Channel {
    /// The existing channel of this name.
    pub(crate) fn new(session: &Session, name: &str) -> Self {
        Self {
            session: session.clone(),
            name: name.to_owned(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its settings, for the next start.
    pub fn settings(&self) -> Result<Settings> {
        Settings::read(|name| self.session.read(&self.file(name)))
    }

    /// Bytes of its AUX area on each CPU; 0: it has none.
    pub fn aux_size(&self) -> Result<u64> {
        let file = self.file("aux_size");
        let text = self.session.read(&file)?;
        let size = text.trim().parse();
        size.map_err(|_| self.session.unreadable(&file, "expected a number"))
    }

    /// Sets the size of its AUX area on each CPU. `EBUSY` while the session records.
    pub fn set_aux_size(&self, bytes: u64) -> Result<()> {
        let file = self.file("aux_size");
        self.session.write(&file, &bytes.to_string())
    }

    /// One of the settings [`TEXTS`](crate::TEXTS).
    pub fn text(&self, setting: &str) -> Result<String> {
        let text = self.session.read(&self.file(setting))?;
        Ok(text.trim().to_owned())
    }

    /// Changes one of the settings [`TEXTS`](crate::TEXTS). `EBUSY` while the session records.
    pub fn set_text(&self, setting: &str, text: &str) -> Result<()> {
        self.session.write(&self.file(setting), text)
    }

    /// The losses of its AUX areas in the current or last trace. No loss, if the channel is not in that trace.
    pub(crate) fn aux_losses(&self) -> Result<AuxLosses> {
        let file = self.file("aux_stats");
        match self.session.read(&file) {
            Err(Error::Read { cause, .. }) if is_no_trace(&cause) => Ok(AuxLosses::default()),
            text => {
                let losses = AuxLosses::parse(&text?);
                losses.map_err(|what| self.session.unreadable(&file, &what))
            }
        }
    }

    /// Changes its settings, one file after the other.
    pub fn apply(&self, settings: &Settings) -> Result<()> {
        settings.write(|name, value| self.session.write(&self.file(name), value))
    }

    /// The events that are enabled, as `sys:event`.
    pub fn enabled_events(&self) -> Result<Vec<String>> {
        Ok(lines(&self.session.read(&self.file("set_event"))?))
    }

    /// Enables the events of `patterns`, in order, and no others.
    pub fn set_events<S: AsRef<str>>(&self, patterns: &[S]) -> Result<()> {
        let path = self.session.path(&self.file("set_event"));
        let mut file = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path)
            .map_err(|cause| self.session.refused(&path, "", cause))?;
        for chunk in chunks(patterns) {
            file.write_all(chunk.as_bytes())
                .map_err(|cause| self.session.refused(&path, chunk.trim(), cause))?;
        }
        Ok(())
    }

    /// The contexts beside each event.
    pub fn contexts(&self) -> Result<Vec<String>> {
        Ok(lines(&self.session.read(&self.file("contexts"))?))
    }

    /// Sets the contexts beside each event. `EBUSY` while the session records.
    pub fn set_contexts(&self, names: &[String]) -> Result<()> {
        self.session
            .replace(&self.file("contexts"), &names.join(" "))
    }

    /// The recorded CPUs, as a list, or `all`.
    pub fn cpus(&self) -> Result<String> {
        let list = self.session.read(&self.file("tracing_cpus"))?;
        Ok(list.trim().to_owned())
    }

    /// Sets the recorded CPUs: a list, or `all`. `EBUSY` while the session records.
    pub fn set_cpus(&self, list: &str) -> Result<()> {
        self.session.write(&self.file("tracing_cpus"), list)
    }

    /// The filters of its events.
    pub fn filters(&self) -> Result<Vec<EventFilter>> {
        let text = self.session.read(&self.file("set_filter"))?;
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let tracer = self.session.tracer();
        let mut events = tracer.available_events()?;
        events.extend(tracer.awaited_events()?);
        EventFilter::parse(&text, |word| events.iter().any(|event| event == word)).ok_or_else(
            || {
                let file = self.file("set_filter");
                self.session
                    .unreadable(&file, "the first line has no event")
            },
        )
    }

    /// Sets a filter for the events that `pattern` picks: only records for which `expression` is true are recorded.
    pub fn set_filter(&self, pattern: &str, expression: &str) -> Result<()> {
        self.session
            .write(&self.file("set_filter"), &format!("{pattern} {expression}"))
    }

    /// Sets these filters, and removes all others.
    pub fn set_filters(&self, filters: &[EventFilter]) -> Result<()> {
        self.session.replace(&self.file("set_filter"), "")?;
        let mut filters = filters.iter();
        filters.try_for_each(|filter| self.set_filter(&filter.event, &filter.expression))
    }

    /// The text of its counters. [`None`]: it is not in the current or last trace.
    pub(crate) fn stats_text(&self) -> Result<Option<String>> {
        match self.session.read(&self.file("stats")) {
            Err(Error::Read { cause, .. }) if is_no_trace(&cause) => Ok(None),
            text => text.map(Some),
        }
    }

    /// The buffer that an earlier boot left in its reserved memory. [`None`]: the memory is empty, or the channel has
    /// none.
    pub fn recovered(&self) -> Result<Option<Vec<u8>>> {
        let path = self.session.path(&self.file("recovered"));
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes));
        match read {
            Err(cause) if is_no_trace(&cause) => Ok(None),
            read => read.map(|_| Some(bytes)).map_err(Error::read(&path)),
        }
    }

    /// Discards that buffer, so that the memory can be used again.
    pub fn free_recovered(&self) -> Result<()> {
        self.session.write(&self.file(FREE), "1")
    }

    /// The file that [`Self::free_recovered`] writes.
    pub fn free_path(&self) -> PathBuf {
        self.session.path(&self.file(FREE))
    }

    fn file(&self, name: &str) -> String {
        format!("channels/{}/{name}", self.name)
    }
}

/// The filter of an event.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct EventFilter {
    /// `sys:event`.
    pub event: String,
    /// The filter.
    pub expression: String,
}

impl EventFilter {
    /// Parses the text of `set_filter`: `sys:event EXPRESSION`. An expression may have several lines: a line that
    /// does not begin with an event continues it.
    fn parse(text: &str, is_event: impl Fn(&str) -> bool) -> Option<Vec<Self>> {
        let mut filters: Vec<Self> = Vec::new();
        for line in text.lines() {
            match line.split_once(' ') {
                Some((event, expression)) if is_event(event) => filters.push(Self {
                    event: event.to_owned(),
                    expression: expression.to_owned(),
                }),
                _ => {
                    let expression = &mut filters.last_mut()?.expression;
                    expression.push('\n');
                    expression.push_str(line);
                }
            }
        }
        Some(filters)
    }
}

/// Joins words into lines of at most [`WRITE_LIMIT`] bytes. A longer word gets a line of its own.
fn chunks<S: AsRef<str>>(words: &[S]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in words.iter().map(AsRef::as_ref) {
        match out.last_mut() {
            Some(last) if last.len() + word.len() < WRITE_LIMIT => {
                last.push_str(word);
                last.push('\n');
            }
            _ => out.push(format!("{word}\n")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_several_lines() {
        let parse = |text| EventFilter::parse(text, |word| word.starts_with("s:"));
        let text = "s:a x == 1\ns:b y == 2 ||\n CPUS{0-1:1/2} & z\n\ns:c t == \"d\"\n";
        let filters: Vec<_> = parse(text)
            .unwrap()
            .into_iter()
            .map(|filter| (filter.event, filter.expression))
            .collect();
        let expected = [
            ("s:a", "x == 1"),
            ("s:b", "y == 2 ||\n CPUS{0-1:1/2} & z\n"),
            ("s:c", "t == \"d\""),
        ];
        let expected = expected.map(|(event, text)| (event.to_owned(), text.to_owned()));
        assert_eq!(filters, expected);
        assert_eq!(parse(""), Some(vec![]));
        assert_eq!(parse("x == 1\n"), None);
    }

    #[test]
    fn chunks_keep_words_whole() {
        let words: Vec<String> = (0..1000).map(|i| format!("syscalls:event_{i}")).collect();
        let chunks = chunks(&words);
        assert!(chunks
            .iter()
            .all(|c| c.len() <= WRITE_LIMIT && c.ends_with('\n')));
        assert_eq!(lines(&chunks.concat()), words);
    }
}
