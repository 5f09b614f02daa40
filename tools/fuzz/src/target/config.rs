// SPDX-License-Identifier: GPL-2.0

//! The TOML file of `--config`.
//!
//! An error names a line of the text. If the text is accepted, the kernel would accept its channels' names,
//! sizes and patterns. The configuration, written as TOML and parsed again, is the same.

use rtrace_input::name;
use std::collections::BTreeSet;
use std::fmt::Write;

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let written = match written(text) {
        Ok(written) => written,
        Err(error) => {
            let place = error.strip_prefix("file:").and_then(|e| e.split_once(": "));
            let (line, what) = place.expect("FILE:LINE: ");
            let lines = 1..=text.matches('\n').count() + 1;
            assert!(line.parse().is_ok_and(|line: usize| lines.contains(&line)));
            assert!(!what.is_empty());
            return;
        }
    };
    if let Some(first) = written {
        assert_eq!(self::written(&first), Ok(Some(first.clone())), "{first}");
    }
}

/// The configuration as TOML; [`None`] if two patterns with a filter name the same events.
fn written(text: &str) -> Result<Option<String>, String> {
    let config = record::session::config::parse("file", text)?;
    let setup = config.setup;
    let mut out = Toml::default();
    let is_name = |name: &str| name::refusal(name).is_none();
    if let Some(session) = &config.session {
        assert!(is_name(&session.value));
        out.text("session", &session.value);
    }
    if let Some(clock) = &setup.clock {
        out.text("clock", &clock.value);
    }
    if let Some(frequency) = &setup.sample_frequency {
        out.plain("sample_freq", frequency.value);
    }
    if let Some(size) = &setup.aux_size {
        assert!(size.value == 0 || size.value.is_power_of_two());
        out.text("aux_size", &size.value.to_string());
    }
    for (setting, text) in &setup.texts {
        out.text(setting, &text.value);
    }
    if let Some(channel) = &setup.marker_channel {
        out.text("marker_channel", &channel.value);
    }
    if let Some(contexts) = &setup.contexts {
        out.texts("contexts", &contexts.value);
    }
    if let Some(cpus) = &setup.cpus {
        out.text("cpus", &cpus.value);
    }
    out.plain("state", setup.state);
    if let Some(pids) = &setup.tasks.pids {
        out.plain("pids", format_args!("{:?}", pids.value));
    }
    if let Some(cgroups) = &setup.tasks.cgroups {
        out.texts("cgroups", &cgroups.value);
    }
    out.plain("only", setup.tasks.only_command.is_some());
    let mut names = BTreeSet::new();
    for channel in &setup.channels {
        assert!(is_name(&channel.name) && names.insert(&channel.name));
        assert!(channel.events.is_some() || channel.is_first());
        out.0.push_str("[[channel]]\n");
        out.text("name", &channel.name);
        if let Some(size) = channel.size {
            assert!(size.subbuf_size.is_power_of_two() && size.subbuf_count.is_power_of_two());
            out.text("size", &size.to_string());
        }
        if let Some(mode) = channel.mode {
            out.text("mode", mode.name());
        }
        if let Some(events) = &channel.events {
            let is_word = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace);
            assert!(events.iter().all(|pattern| is_word(&pattern.value)));
            // A pattern of system calls stands for itself and for the calls.
            if events
                .iter()
                .any(|pattern| record::session::channels::may_pick_nothing(&pattern.value))
            {
                return Ok(None);
            }
            out.texts("events", events.iter().map(|pattern| &pattern.value));
        }
        if let Some(contexts) = &channel.contexts {
            out.texts("contexts", &contexts.value);
        }
        if let Some(cpus) = &channel.cpus {
            out.text("cpus", &cpus.value);
        }
        for (setting, text) in &channel.texts {
            out.text(setting, &text.value);
        }
        let mut patterns = BTreeSet::new();
        for filter in &channel.filters {
            // A system call stands for several patterns.
            let [pattern] = filter.patterns.as_slice() else {
                return Ok(None);
            };
            let key = Toml::quoted(pattern);
            if !patterns.insert(pattern) {
                return Ok(None);
            }
            out.text(&format!("filters.{key}"), &filter.expression.value);
        }
    }
    Ok(Some(out.0))
}

/// A TOML text.
#[derive(Default)]
struct Toml(String);

impl Toml {
    fn plain(&mut self, key: &str, value: impl std::fmt::Display) {
        writeln!(self.0, "{key} = {value}").expect("a String");
    }

    fn text(&mut self, key: &str, value: &str) {
        self.plain(key, Self::quoted(value));
    }

    fn texts<T: AsRef<str>>(&mut self, key: &str, values: impl IntoIterator<Item = T>) {
        let values = values.into_iter();
        let quoted: Vec<_> = values.map(|value| Self::quoted(value.as_ref())).collect();
        self.plain(key, format_args!("[{}]", quoted.join(", ")));
    }

    /// A basic string. Each character is written as its number.
    fn quoted(text: &str) -> String {
        let numbers = text.chars().map(|c| format!("\\U{:08x}", u32::from(c)));
        format!("\"{}\"", numbers.collect::<String>())
    }
}
