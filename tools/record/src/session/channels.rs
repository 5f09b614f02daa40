// SPDX-License-Identifier: GPL-2.0

//! The channels of a recording: `channel0`, and the channels of --channel.

use crate::session::given::Given;
use control::{BufferSize, Mode, FIRST_CHANNEL};
use rtrace_input::name;
use std::collections::BTreeMap;
use std::str::FromStr;

/// `NAME[:SIZExN][:MODE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelArg {
    /// The name.
    pub name: String,
    /// The size of each CPU's buffer.
    pub size: Option<BufferSize>,
    /// Discard or overwrite.
    pub mode: Option<Mode>,
}

impl FromStr for ChannelArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        if let Some(why) = name::refusal(name) {
            return Err(format!("`{name}`: {why}"));
        }
        if name == FIRST_CHANNEL {
            return Err(format!(
                "channel `{name}` always exists: it has the events before the first --channel, and -b and --overwrite"
            ));
        }
        let mut channel = Self {
            name: name.to_owned(),
            size: None,
            mode: None,
        };
        for part in parts {
            let twice = match part.parse() {
                Ok(mode) => channel.mode.replace(mode).is_some(),
                Err(_) if !part.contains('x') => {
                    return Err(format!(
                        "`{part}` is neither a size (SIZExN) nor a mode (discard, overwrite)"
                    ));
                }
                Err(_) => channel.size.replace(part.parse()?).is_some(),
            };
            if twice {
                return Err(format!("`{part}`: the size or the mode is given twice"));
            }
        }
        Ok(channel)
    }
}

/// Name of the channel for events of programs.
pub const PROGRAMS: &str = "programs";

/// Settings of a channel. A setting that is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelSetup {
    /// Name of the channel.
    pub name: String,
    /// The patterns that enable events, as `set_event` takes them.
    pub events: Option<Vec<Given<String>>>,
    /// Discard or overwrite.
    pub mode: Option<Mode>,
    /// Size of each CPU's buffer.
    pub size: Option<BufferSize>,
    /// Contexts recorded with each event.
    pub contexts: Option<Given<Vec<String>>>,
    /// The recorded CPUs, as a list.
    pub cpus: Option<Given<String>>,
    /// Settings that are written as text. The others stay as they are.
    pub texts: Texts,
    /// Filters of events, set one after the other.
    pub filters: Vec<Filter>,
}

/// Settings of a channel that are written as text, by the name of the setting (one of [`TEXTS`](control::TEXTS)).
pub type Texts = BTreeMap<&'static str, Given<String>>;

/// A filter for the events that the patterns pick. It applies to the events that have its fields. At least one pattern
/// must have such events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The patterns.
    pub patterns: Vec<String>,
    /// The filter.
    pub expression: Given<String>,
}

impl ChannelSetup {
    /// A channel without settings.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Whether it is the channel that each session has.
    pub fn is_first(&self) -> bool {
        self.name == FIRST_CHANNEL
    }

    /// Whether the newest events are kept: nothing is read before the end.
    pub fn is_flight_recorder(&self) -> bool {
        self.mode == Some(Mode::Overwrite)
    }

    /// The error for a channel that would record no events. It names the option of the command line.
    pub fn without_events(&self) -> String {
        let Self { name, .. } = self;
        format!("channel `{name}` has no events: give its -e after `--channel {name}`")
    }

    /// Whether all its patterns that pick events pick only events of programs.
    fn is_of_programs(&self) -> bool {
        let events = self.events.iter().flatten();
        let mut picking = events.filter(|pattern| !pattern.value.starts_with('!'));
        let all = picking
            .clone()
            .all(|pattern| is_of_programs(&pattern.value));
        picking.next().is_some() && all
    }

    /// Moves the patterns of programs' events and their filters to another channel. Patterns that exclude events count for
    /// both.
    fn move_programs(&mut self, to: &mut Self) {
        let picks = |pattern: &Given<String>| !pattern.value.starts_with('!');
        let is_moved = |pattern: &Given<String>| picks(pattern) && is_of_programs(&pattern.value);
        let events = self.events.iter().flatten().cloned();
        let (moved, stay): (Vec<_>, Vec<_>) = events.partition(is_moved);
        if moved.is_empty() {
            return;
        }
        let out = stay.iter().filter(|pattern| !picks(pattern)).cloned();
        let moved = moved.into_iter().chain(out);
        to.events.get_or_insert_default().extend(moved);
        to.fill(self.mode, self.size);
        self.events = stay.iter().any(picks).then_some(stay);
        let filters = std::mem::take(&mut self.filters).into_iter();
        let is_moved = |filter: &Filter| filter.patterns.iter().all(|word| is_of_programs(word));
        let (moved, stay): (Vec<_>, Vec<_>) = filters.partition(is_moved);
        to.filters.extend(moved);
        self.filters = stay;
    }

    /// Lets the channel take records of programs from their rings.
    fn take_from_rings(&mut self) {
        self.texts.insert("source", "rings".to_owned().into());
    }

    /// Sets mode and size if the channel has none.
    pub fn fill(&mut self, mode: Option<Mode>, size: Option<BufferSize>) {
        self.mode = self.mode.or(mode);
        self.size = self.size.or(size);
    }
}

/// The event of a thread that changes its name. The kernel has it in another subsystem than the other events of threads.
const RENAME: &str = "task_rename";

/// The patterns for `set_event` that replace a word of the user. A system call is replaced by its begin and its end;
/// see [`decode::chosen`]. A word with wildcards also picks other events, if any match. The word `sched`
/// includes `task_rename`: otherwise a thread would have its old name up to its next switch.
pub fn patterns_of(given: &str) -> Vec<String> {
    let (not, word) = match given.strip_prefix('!') {
        Some(word) => ("!", word),
        None => ("", given),
    };
    // strace's form, as in `strace -e trace=openat`.
    let word = word.strip_prefix("trace=").unwrap_or(word);
    let calls = decode::chosen(word);
    let own = (calls.is_empty() || is_glob(word) && !word.starts_with('%')).then_some(word);
    let ends = |call| ["entry", "exit"].map(|end| format!("syscall_{end}_{call}"));
    let own = match own {
        Some("sched") => vec!["sched:*", RENAME],
        own => own.into_iter().collect(),
    };
    let words = own.into_iter().map(str::to_owned);
    let words = words.chain(calls.into_iter().flat_map(ends));
    words.map(|word| format!("{not}{word}")).collect()
}

/// Whether a pattern picks only events of programs.
fn is_of_programs(pattern: &str) -> bool {
    pattern.starts_with("user.")
}

/// Lets the channels take events of programs from the programs' rings. A channel that does has no events of the kernel. So
/// the events of programs in `channel0`, and those in channels with other events, go to a channel [`PROGRAMS`]; but not if
/// a channel of that name is given.
pub fn take_from_rings(channels: &mut Vec<ChannelSetup>) {
    let is_taken = channels.iter().any(|channel| channel.name == PROGRAMS);
    let mut moved = ChannelSetup::named(PROGRAMS);
    for channel in channels.iter_mut() {
        if channel.is_of_programs() && !channel.is_first() {
            channel.take_from_rings();
        } else if !is_taken {
            channel.move_programs(&mut moved);
        }
    }
    if moved.is_of_programs() {
        moved.take_from_rings();
        channels.push(moved);
    }
}

/// Whether a pattern is a word with wildcards that picks system calls by their names. In that case it need not pick
/// other events.
pub fn may_pick_nothing(pattern: &str) -> bool {
    let word = pattern.strip_prefix('!').unwrap_or(pattern);
    is_glob(word) && !decode::chosen(word).is_empty()
}

fn is_glob(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

/// The patterns of words for `set_event`: the chosen events, followed by the excluded ones. If no event is chosen, all
/// events except the excluded ones. `None` if there are no words.
pub fn patterns(
    events: Vec<Given<String>>,
    exclude: Vec<Given<String>>,
) -> Option<Vec<Given<String>>> {
    if events.is_empty() && exclude.is_empty() {
        return None;
    }
    let all_of = |given: Vec<Given<String>>| -> Vec<Given<String>> {
        let patterns = |given: Given<String>| {
            let patterns = patterns_of(&given.value).into_iter();
            let patterns = patterns.map(move |pattern| given.clone().map(|_| pattern));
            patterns.collect::<Vec<_>>()
        };
        given.into_iter().flat_map(patterns).collect()
    };
    let (events, exclude) = (all_of(events), all_of(exclude));
    let is_out = |pattern: &Given<String>| pattern.value.starts_with('!');
    let (out, events): (Vec<_>, Vec<_>) = events.into_iter().partition(is_out);
    let all = events.is_empty().then(|| "*:*".to_owned().into());
    let exclude = exclude.into_iter();
    let exclude = exclude.map(|given| given.map(|pattern| format!("!{pattern}")));
    Some(
        all.into_iter()
            .chain(events)
            .chain(out)
            .chain(exclude)
            .collect(),
    )
}

#[cfg(test)]
impl ChannelSetup {
    /// Name, size, mode and patterns, for tests.
    pub fn summary(&self) -> String {
        let patterns = self.events.iter().flatten();
        let patterns: Vec<_> = patterns.map(|given| given.value.as_str()).collect();
        let (size, mode) = (self.size.unwrap(), self.mode.unwrap().name());
        format!("{} {size} {mode} {}", self.name, patterns.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_recorded_with_their_names() {
        for (given, patterns) in [
            ("sched", "sched:* task_rename"),
            ("sched:*", "sched:*"),
            ("!sched", "!sched:* !task_rename"),
            ("sched_switch", "sched_switch"),
            ("sched*", "sched*"),
        ] {
            assert_eq!(
                patterns_of(given)[..2.min(patterns.split(' ').count())].join(" "),
                patterns
            );
        }
    }

    #[test]
    fn events_of_programs_have_a_channel_of_their_own() {
        let channel = |name: &str, words: &str| ChannelSetup {
            events: (!words.is_empty()).then(|| {
                words
                    .split(' ')
                    .map(|word| word.to_owned().into())
                    .collect()
            }),
            ..ChannelSetup::named(name)
        };
        for (given, expected) in [
            (&[("channel0", "sched irq:*")][..], "channel0: sched irq:*"),
            (&[("channel0", "")], "channel0: -"),
            (&[("channel0", "!user.a")], "channel0: !user.a"),
            (
                &[("channel0", "user.*")],
                "channel0: -, programs rings: user.*",
            ),
            (
                &[("channel0", "sched user.a !user.a:b user.c:d !x")],
                "channel0: sched !user.a:b !x, programs rings: user.a user.c:d !user.a:b !x",
            ),
            (
                &[("channel0", "sched"), ("own", "user.* !user.b")],
                "channel0: sched, own rings: user.* !user.b",
            ),
            (
                &[("channel0", "user.a"), ("own", "irq user.b")],
                "channel0: -, own: irq, programs rings: user.a user.b",
            ),
            (
                &[("channel0", "user.a"), ("programs", "irq user.b")],
                "channel0: user.a, programs: irq user.b",
            ),
        ] {
            let mut channels: Vec<_> = given
                .iter()
                .map(|(name, words)| channel(name, words))
                .collect();
            take_from_rings(&mut channels);
            let shown = channels.iter().map(|channel| {
                let words = channel.events.iter().flatten();
                let words: Vec<_> = words.map(|given| given.value.as_str()).collect();
                let source = channel
                    .texts
                    .get("source")
                    .map_or(String::new(), |source| format!(" {}", source.value));
                let words = if words.is_empty() {
                    "-".to_owned()
                } else {
                    words.join(" ")
                };
                format!("{}{source}: {words}", channel.name)
            });
            assert_eq!(shown.collect::<Vec<_>>().join(", "), expected);
        }
    }

    #[test]
    fn filters_follow_their_events() {
        let filter = |word: &str| Filter {
            patterns: patterns_of(word),
            expression: "a == 1".to_owned().into(),
        };
        let mut channels = vec![ChannelSetup {
            events: Some(vec!["sched".to_owned().into(), "user.a".to_owned().into()]),
            filters: vec![filter("sched"), filter("user.a")],
            ..ChannelSetup::named(FIRST_CHANNEL)
        }];
        take_from_rings(&mut channels);
        assert_eq!(channels[0].filters, [filter("sched")]);
        assert_eq!(channels[1].filters, [filter("user.a")]);
    }

    #[test]
    fn arguments() {
        let channel = |text: &str| -> (String, String) {
            let ChannelArg { name, size, mode } = text.parse().unwrap();
            let size = size.map_or(String::new(), |size| size.to_string());
            (name, format!("{size} {}", mode.map_or("", Mode::name)))
        };
        for (text, name, rest) in [
            ("calls", "calls", " "),
            ("calls:64Kx8", "calls", "64Kx8 "),
            ("calls:overwrite", "calls", " overwrite"),
            ("c.1:1Mx4:discard", "c.1", "1Mx4 discard"),
            ("c_x:discard:1Mx4", "c_x", "1Mx4 discard"),
        ] {
            assert_eq!(channel(text), (name.to_owned(), rest.to_owned()));
        }
        for (text, words) in [
            ("", "must not be empty"),
            ("-a", "must not begin"),
            ("a b", "letters, digits"),
            ("channel0", "always exists"),
            ("a:", "neither"),
            ("a:1M", "neither"),
            ("a:fast", "neither"),
            ("a:3Kx4", "not a power of two"),
            ("a:discard:overwrite", "is given twice"),
            ("a:1Mx4:2Mx4", "is given twice"),
        ] {
            let error = text.parse::<ChannelArg>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
