// SPDX-License-Identifier: GPL-2.0

//! Settings of a recording in a TOML file: `rtrace record --config FILE`, `rtrace start --config FILE`.

use crate::session::channels::{patterns, patterns_of, ChannelSetup, Filter, Texts};
use crate::session::given::Given;
use crate::session::maps::Maps;
use crate::session::setup::Setup;
use crate::session::tasks::Tasks;
use crate::session::values::{aux_size, filter, pattern};
use control::{BufferSize, Mode, TEXTS};
use rtrace_input::name;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;

/// Contents of a file, converted.
#[derive(Debug, Default)]
pub struct Config {
    /// The session's name.
    pub session: Option<Given<String>>,
    /// Settings of the session.
    pub setup: Setup,
}

/// The file, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    session: Option<Spanned<Name>>,
    clock: Option<Spanned<String>>,
    sample_freq: Option<Spanned<u32>>,
    aux_size: Option<Spanned<AuxSize>>,
    snapshot_memory: Option<Spanned<String>>,
    barrier: Option<Spanned<String>>,
    marker_channel: Option<Spanned<String>>,
    contexts: Option<Spanned<Vec<String>>>,
    cpus: Option<Spanned<String>>,
    #[serde(default)]
    state: bool,
    pids: Option<Spanned<Vec<u32>>>,
    cgroups: Option<Spanned<Vec<String>>>,
    only: Option<Spanned<bool>>,
    #[serde(default)]
    maps: Vec<Spanned<String>>,
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
    #[serde(default)]
    filters: BTreeMap<Spanned<String>, Spanned<String>>,
    contexts: Option<Spanned<Vec<String>>>,
    cpus: Option<Spanned<String>>,
    snapshot_memory: Option<Spanned<String>>,
    barrier: Option<Spanned<String>>,
    source: Option<Spanned<String>>,
}

/// A number of bytes, as text with K, M or G.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct AuxSize(u64);

impl TryFrom<String> for AuxSize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        aux_size(&text).map(Self)
    }
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

/// Reads a file. An error names the place, as FILE:LINE.
pub fn read(path: &Path) -> Result<Config, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&path.display().to_string(), &text)
}

/// Parses the `text` of the file `file`. An error begins with `FILE:LINE: `.
pub fn parse(file: &str, text: &str) -> Result<Config, String> {
    let source = Source { file, text };
    let parsed: File = toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        source.given((), span).wrong(error.message())
    })?;
    let mut channels: Vec<ChannelSetup> = Vec::new();
    for channel in parsed.channels {
        let channel = source.channel(channel, &channels)?;
        channels.push(channel);
    }
    let mut maps = Maps::default();
    for map in parsed.maps {
        maps.add(&source.spanned(map))?;
    }
    let only = parsed.only.filter(|only| *only.get_ref());
    Ok(Config {
        session: parsed
            .session
            .map(|name| source.spanned(name).map(|Name(name)| name)),
        setup: Setup {
            clock: source.optional(parsed.clock),
            sample_frequency: source.optional(parsed.sample_freq),
            aux_size: source
                .optional(parsed.aux_size)
                .map(|size| size.map(|AuxSize(size)| size)),
            texts: source.texts([parsed.snapshot_memory, parsed.barrier, None]),
            marker_channel: source.optional(parsed.marker_channel),
            contexts: source.optional(parsed.contexts),
            cpus: source.optional(parsed.cpus),
            state: parsed.state,
            tasks: Tasks {
                pids: source.optional(parsed.pids),
                cgroups: source.optional(parsed.cgroups),
                only_command: source.optional(only).map(|only| only.map(|_| ())),
            },
            maps,
            channels,
            ..Setup::default()
        },
    })
}

/// Text of a file, to find the line of a value.
#[derive(Clone, Copy)]
struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    /// Adds the line to a value.
    fn given<T>(self, value: T, span: Range<usize>) -> Given<T> {
        let before = &self.text[..span.start.min(self.text.len())];
        Given::in_file(value, self.file, before.matches('\n').count() + 1)
    }

    fn spanned<T>(self, value: Spanned<T>) -> Given<T> {
        let span = value.span();
        self.given(value.into_inner(), span)
    }

    fn optional<T>(self, value: Option<Spanned<T>>) -> Option<Given<T>> {
        value.map(|value| self.spanned(value))
    }

    /// Values of the settings [`TEXTS`].
    fn texts(self, values: [Option<Spanned<String>>; TEXTS.len()]) -> Texts {
        let given = values.map(|value| self.optional(value));
        let named = TEXTS.into_iter().zip(given);
        named
            .filter_map(|(setting, text)| Some((setting, text?)))
            .collect()
    }

    /// A pattern, as on the command line.
    fn pattern(self, word: Spanned<String>) -> Result<Given<String>, String> {
        let word = self.spanned(word);
        match pattern(&word.value) {
            Ok(_) => Ok(word),
            Err(why) => Err(word.wrong(format_args!("`{}`: {why}", word.value))),
        }
    }

    /// A filter, as on the command line.
    fn filter(self, expression: Spanned<String>) -> Result<Given<String>, String> {
        let expression = self.spanned(expression);
        match filter(&expression.value) {
            Ok(_) => Ok(expression),
            Err(why) => Err(expression.wrong(why)),
        }
    }

    /// Converts a `[[channel]]`. Its name must differ from the names of the earlier ones.
    fn channel(self, channel: Channel, known: &[ChannelSetup]) -> Result<ChannelSetup, String> {
        let name = self.spanned(channel.name).map(|Name(name)| name);
        let wrong = |what: &str| Err(name.wrong(format_args!("channel `{}` {what}", name.value)));
        if known.iter().any(|known| known.name == name.value) {
            return wrong("is given twice");
        }
        let events = channel.events.into_iter().map(|word| self.pattern(word));
        let exclude = channel.exclude.into_iter().map(|word| self.pattern(word));
        let mut filters: Vec<_> = channel.filters.into_iter().collect();
        // In the order of the file: if several filters pick an event, the last filter counts.
        filters.sort_by_key(|(pattern, _)| pattern.span().start);
        let filters = filters.into_iter().map(|(pattern, expression)| {
            Ok(Filter {
                patterns: patterns_of(&self.pattern(pattern)?.value),
                expression: self.filter(expression)?,
            })
        });
        let setup = ChannelSetup {
            events: patterns(
                events.collect::<Result<_, _>>()?,
                exclude.collect::<Result<_, _>>()?,
            ),
            mode: channel.mode.map(|ModeName(mode)| mode),
            size: channel.size.map(|Size(size)| size),
            contexts: self.optional(channel.contexts),
            cpus: self.optional(channel.cpus),
            texts: self.texts([channel.snapshot_memory, channel.barrier, channel.source]),
            filters: filters.collect::<Result<_, String>>()?,
            ..ChannelSetup::named(&name.value)
        };
        if setup.events.is_none() && !setup.is_first() {
            return wrong("has no events");
        }
        Ok(setup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The settings of a recording with the file `text`.
    fn recorded(text: &str) -> Config {
        let mut config = parse("f", text).unwrap();
        config.setup.complete_first();
        let (mode, size) = (Some(Mode::Discard), Some(BufferSize::DEFAULT));
        config.setup.fill(mode, size);
        config
    }

    #[test]
    fn samples() {
        for (text, names) in [
            (
                include_str!("../../../../samples/scheduling.toml"),
                &["channel0", "processes"][..],
            ),
            (
                include_str!("../../../../samples/interrupts.toml"),
                &["channel0", "switches"],
            ),
            (
                include_str!("../../../../samples/syscalls.toml"),
                &["channel0", "switches", "timers"],
            ),
            (
                include_str!("../../../../samples/slow-calls.toml"),
                &["channel0", "waits"],
            ),
            (
                include_str!("../../../../samples/offwaketime.toml"),
                &["channel0", "stacks"],
            ),
            (
                include_str!("../../../../samples/failed-calls.toml"),
                &["channel0"],
            ),
        ] {
            let channels = recorded(text).setup.channels;
            let found: Vec<_> = channels.iter().map(|c| c.name.as_str()).collect();
            assert_eq!(found, names);
        }
    }

    #[test]
    fn everything_is_taken() {
        let text = "session = \"web\"\nclock = \"mono\"\nmarker_channel = \"a\"\nsample_freq = 7\nstate = true\naux_size = \"1M\"\n\
                    snapshot_memory = \"keep\"\nbarrier = \"reader\"\n\
                    contexts = [\"tid\", \"comm\"]\ncpus = \"0-3\"\n\
                    pids = [1, 2]\ncgroups = [\"/a\"]\nonly = true\n\
                    [[channel]]\nname = \"a\"\nsize = \"64Kx8\"\nmode = \"overwrite\"\n\
                    events = [\"sched\", \"irq:*\"]\nexclude = [\"b\"]\n\
                    contexts = [\"pid\"]\ncpus = \"1\"\nbarrier = \"writer\"\n\
                    [channel.filters]\nz = \"x == 1\"\n\"a:*\" = '''\ny == \"2\"'''\n\
                    [[channel]]\nname = \"c\"\nexclude = [\"d\"]\n";
        let config = recorded(text);
        let setup = config.setup;
        assert_eq!(config.session.unwrap().value, "web");
        assert_eq!(setup.clock.unwrap().value, "mono");
        assert_eq!(setup.sample_frequency.unwrap().value, 7);
        assert_eq!(setup.aux_size.unwrap().value, 1 << 20);
        let texts: Vec<_> = setup
            .texts
            .iter()
            .map(|(name, text)| (*name, text.as_ref()))
            .collect();
        assert_eq!(texts, [("barrier", "reader"), ("snapshot_memory", "keep")]);
        assert_eq!(setup.marker_channel.unwrap().value, "a");
        assert!(setup.state);
        assert_eq!(setup.contexts.unwrap().value, ["tid", "comm"]);
        assert_eq!(setup.cpus.unwrap().value, "0-3");
        assert_eq!(setup.tasks.pids.unwrap().value, [1, 2]);
        assert_eq!(setup.tasks.cgroups.unwrap().value, ["/a"]);
        assert!(setup.tasks.only_command.is_some());
        let expected = [
            "channel0 4Kx2 discard ",
            "a 64Kx8 overwrite sched:* task_rename irq:* !b",
            "c 1Mx4 discard *:* !d",
        ];
        let channels = setup.channels.iter().map(ChannelSetup::summary);
        assert_eq!(channels.collect::<Vec<_>>(), expected);
        let own = &setup.channels[1];
        assert_eq!(own.contexts.as_ref().unwrap().value, ["pid"]);
        assert_eq!(own.cpus.as_ref().unwrap().value, "1");
        assert_eq!(own.texts["barrier"].value, "writer");
        assert_eq!(own.texts.len(), 1);
        // The filters keep their order.
        let filters = own.filters.iter().map(|filter| {
            let Filter {
                patterns,
                expression,
            } = filter;
            (patterns[0].as_str(), expression.wrong(&expression.value))
        });
        let expected = [
            ("z", "f:24: x == 1".to_owned()),
            ("a:*", "f:25: y == \"2\"".to_owned()),
        ];
        assert_eq!(filters.collect::<Vec<_>>(), expected);
        // An empty file: the default events.
        let first = "channel0 1Mx4 discard ";
        assert_eq!(recorded("").setup.channels[0].summary(), first);
        assert!(recorded("only = false").setup.tasks.is_none());
        // The first channel is given without events, to set its size for them.
        let text = "[[channel]]\nname = \"channel0\"\nsize = \"64Kx8\"\n";
        let first = "channel0 64Kx8 discard ";
        assert_eq!(recorded(text).setup.channels[0].summary(), first);
    }

    #[test]
    fn the_command_line_goes_before() {
        let text = "clock = \"mono\"\ncontexts = [\"tid\"]\ncpus = \"0\"\npids = [1]\n\
                    [[channel]]\nname = \"a\"\nevents = [\"e\"]\ncontexts = [\"pid\"]\ncpus = \"1\"\n";
        let mut setup = parse("f", text).unwrap().setup;
        setup.override_with(Setup {
            contexts: Some(vec!["comm".to_owned()].into()),
            tasks: Tasks {
                pids: Some(vec![2].into()),
                ..Tasks::default()
            },
            ..Setup::default()
        });
        assert_eq!(setup.clock.unwrap().value, "mono");
        assert_eq!(setup.contexts.unwrap().value, ["comm"]);
        assert_eq!(setup.channels[0].contexts, None);
        assert_eq!(setup.channels[0].cpus.as_ref().unwrap().value, "1");
        assert_eq!(setup.tasks.pids.unwrap().value, [2]);
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
                "f:4: `fast` is not a mode",
            ),
            (
                &format!("{channel}events = [\n\"e\",\n\"a b\"]\n"),
                "f:5: `a b`: the pattern contains white space",
            ),
            (
                &format!("{channel}events = [\"e\"]\nfilters.e = 'x'\nfilters.'a b' = 'x'\n"),
                "f:5: `a b`: the pattern contains white space",
            ),
            (
                &format!("{channel}events = [\"e\"]\nfilters = {{ e = 7 }}\n"),
                "f:4: invalid type",
            ),
            (
                &format!("{channel}events = [\"e\"]\nfilters = {{ e = 'x', e = 'y' }}\n"),
                "f:4: duplicate key",
            ),
            (channel, "f:2: channel `a` has no events"),
            (
                &format!("{channel}events = [\"e\"]\n{channel}events = [\"e\"]\n"),
                "f:5: channel `a` is given twice",
            ),
            ("session = \"-\"\n", "f:1: `-`: a name must not begin"),
            ("session = 7\n", "f:1: invalid type"),
            ("pids = [1]\npids = [2]\n", "f:2: duplicate key"),
            ("\npids = [-1]\n", "f:2: invalid value"),
            ("\ncontexts = \"tid\"\n", "f:2: invalid type"),
            ("only = \"yes\"\n", "f:1: invalid type"),
            ("maps = [\"runqlat\",\n\"m a:b by\"]\n", "f:2: \nm a:b by"),
        ] {
            let error = parse("f", text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        let missing = read(Path::new("/nonexistent.toml")).unwrap_err();
        assert!(missing.starts_with("/nonexistent.toml: "), "{missing}");
    }
}
