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
