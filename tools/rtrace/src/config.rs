// SPDX-License-Identifier: GPL-2.0

//! `rtrace record --config FILE`: a recording as a TOML file.

use crate::args::pattern;
use crate::channels::{patterns, ChannelSetup, Origin};
use rtrace_input::name;
use serde::Deserialize;
use std::fs;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use trace::settings::{BufferSize, Mode};
use trace::tracer::FIRST_CHANNEL;

/// What a file says.
#[derive(Debug)]
pub struct Config {
    /// The name of the recording's session.
    pub session: Option<String>,
    /// Its clock.
    pub clock: Option<String>,
    /// Its channels.
    pub channels: Vec<ChannelSetup>,
}

/// The file, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    session: Option<Name>,
    clock: Option<String>,
    #[serde(default, rename = "channel")]
    channels: Vec<Channel>,
}

/// A `[[channel]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Channel {
    name: Spanned<Name>,
    size: Option<Size>,
    mode: Option<ModeName>,
    #[serde(default)]
    events: Vec<Spanned<String>>,
    #[serde(default)]
    exclude: Vec<Spanned<String>>,
}

/// A name of a session or a channel.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Name(String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match name::refusal(&name) {
            Some(why) => Err(format!("`{name}`: {why}")),
            None => Ok(Self(name)),
        }
    }
}

/// `SIZExN`.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Size(BufferSize);

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

/// `discard` or `overwrite`.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct ModeName(Mode);

impl TryFrom<String> for ModeName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

/// Reads a file. An error says where, as FILE:LINE.
pub fn read(path: &Path) -> Result<Config, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&path.display().to_string(), &text)
}

fn parse(file: &str, text: &str) -> Result<Config, String> {
    let line = |span: Range<usize>| text[..span.start.min(text.len())].matches('\n').count() + 1;
    let wrong = |span, what: &str| format!("{file}:{}: {what}", line(span));
    let parsed: File = toml::from_str(text)
        .map_err(|error| wrong(error.span().unwrap_or(0..0), error.message()))?;
    let mut channels: Vec<ChannelSetup> = Vec::new();
    for channel in parsed.channels {
        let span = channel.name.span();
        let Name(name) = channel.name.into_inner();
        if channels.iter().any(|known| known.name == name) {
            return Err(wrong(
                span,
                &format!("channel `{name}` for the second time"),
            ));
        }
        if channel.events.is_empty() && channel.exclude.is_empty() {
            return Err(wrong(span, &format!("channel `{name}` has no events")));
        }
        let mut lines = Vec::new();
        for word in channel.events.iter().chain(&channel.exclude) {
            let text = word.get_ref();
            pattern(text).map_err(|why| wrong(word.span(), &format!("`{text}`: {why}")))?;
            lines.push((text.clone(), line(word.span())));
        }
        let origin = Origin {
            file: file.to_owned(),
            lines,
        };
        let words = |list: Vec<Spanned<String>>| -> Vec<String> {
            list.into_iter().map(Spanned::into_inner).collect()
        };
        channels.push(ChannelSetup {
            name,
            events: Some(patterns(words(channel.events), &words(channel.exclude))),
            mode: Some(channel.mode.map_or(Mode::Discard, |ModeName(mode)| mode)),
            size: Some(channel.size.map_or(BufferSize::DEFAULT, |Size(size)| size)),
            origin: Some(origin),
        });
    }
    if !channels.iter().any(|channel| channel.name == FIRST_CHANNEL) {
        channels.insert(0, ChannelSetup::first_unused(channels.is_empty()));
    }
    Ok(Config {
        session: parsed.session.map(|Name(name)| name),
        clock: parsed.clock,
        channels,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples() {
        for (text, names) in [
            (
                include_str!("../../../samples/scheduling.toml"),
                &["channel0", "processes"][..],
            ),
            (
                include_str!("../../../samples/interrupts.toml"),
                &["channel0", "switches"],
            ),
            (
                include_str!("../../../samples/syscalls.toml"),
                &["channel0", "switches", "timers"],
            ),
        ] {
            let config = parse("f", text).unwrap();
            let found: Vec<_> = config.channels.iter().map(|c| c.name.as_str()).collect();
            assert_eq!(found, names);
        }
    }

    #[test]
    fn everything_is_taken() {
        let text = "session = \"web\"\nclock = \"mono\"\n\
                    [[channel]]\nname = \"a\"\nsize = \"64Kx8\"\nmode = \"overwrite\"\n\
                    events = [\"sched\", \"irq:*\"]\nexclude = [\"b\"]\n\
                    [[channel]]\nname = \"c\"\nexclude = [\"d\"]\n";
        let config = parse("f", text).unwrap();
        assert_eq!(config.session.as_deref(), Some("web"));
        assert_eq!(config.clock.as_deref(), Some("mono"));
        let channels = config.channels.iter().map(|channel| {
            let events = channel.events.clone().unwrap().join(" ");
            let (mode, size) = (channel.mode.unwrap().name(), channel.size.unwrap());
            format!("{} {size} {mode} {events}", channel.name)
        });
        let expected = [
            "channel0 4Kx2 discard ",
            "a 64Kx8 overwrite sched irq:* !b",
            "c 1Mx4 discard *:* !d",
        ];
        assert_eq!(channels.collect::<Vec<_>>(), expected);
        // Nothing at all: the default events.
        let config = parse("f", "").unwrap();
        assert_eq!(config.channels[0].events, Some(vec![]));
        assert_eq!(config.channels[0].size, Some(BufferSize::DEFAULT));
    }

    #[test]
    fn errors_have_file_and_line() {
        let channel = "[[channel]]\nname = \"a\"\n";
        for (text, expected) in [
            ("x", "f:1: "),
            ("\n\ncolour = 1\n", "f:3: unknown field `colour`"),
            ("[[channel]]\nevents = []\n", "f:1: missing field `name`"),
            (
                &format!("{channel}size = \"3Kx4\"\nevents = [\"e\"]\n"),
                "f:3: sub-buffer size 3K: not a power of two",
            ),
            (
                &format!("{channel}events = [\"e\"]\nmode = \"fast\"\n"),
                "f:4: `fast` is no mode",
            ),
            (
                &format!("{channel}events = [\n\"e\",\n\"a b\"]\n"),
                "f:5: `a b`: white space in a pattern",
            ),
            (channel, "f:2: channel `a` has no events"),
            (
                &format!("{channel}events = [\"e\"]\n{channel}events = [\"e\"]\n"),
                "f:5: channel `a` for the second time",
            ),
            ("session = \"-\"\n", "f:1: `-`: a name must not begin"),
            ("session = 7\n", "f:1: invalid type"),
        ] {
            let error = parse("f", text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        let missing = read(Path::new("/nonexistent.toml")).unwrap_err();
        assert!(missing.starts_with("/nonexistent.toml: "), "{missing}");
    }
}
