// SPDX-License-Identifier: GPL-2.0

//! The channels of a recording: `channel0`, and those that are asked for.

use rtrace_input::name;
use std::str::FromStr;
use trace::settings::{BufferSize, Mode};
use trace::tracer::FIRST_CHANNEL;

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
                "`{name}` is there: it has the events before the first --channel, and -b and \
                 --overwrite"
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
                        "`{part}` is neither SIZExN nor a mode: discard, overwrite"
                    ));
                }
                Err(_) => channel.size.replace(part.parse()?).is_some(),
            };
            if twice {
                return Err(format!("`{part}`: size or mode for the second time"));
            }
        }
        Ok(channel)
    }
}

/// What a channel is to record, and how; what is none stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSetup {
    /// Its name.
    pub name: String,
    /// The patterns that enable events, as `set_event` takes them.
    pub events: Option<Vec<String>>,
    /// Discard or overwrite.
    pub mode: Option<Mode>,
    /// Size of each CPU's buffer.
    pub size: Option<BufferSize>,
    /// Where its patterns are from, if from a file.
    pub origin: Option<Origin>,
}

/// Where patterns stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file's name.
    pub file: String,
    /// Each pattern, and its line.
    pub lines: Vec<(String, usize)>,
}

impl ChannelSetup {
    /// Whether the newest events are kept: nothing is read before the end.
    pub fn is_flight_recorder(&self) -> bool {
        self.mode == Some(Mode::Overwrite)
    }

    /// The channel that each session has, for a recording that gives it no events: all others have
    /// some, or, if it is `alone`, the module's default events are recorded.
    pub fn first_unused(alone: bool) -> Self {
        let size = if alone {
            BufferSize::DEFAULT
        } else {
            BufferSize::LEAST
        };
        Self {
            name: FIRST_CHANNEL.to_owned(),
            events: Some(Vec::new()),
            mode: Some(Mode::Discard),
            size: Some(size),
            origin: None,
        }
    }
}

/// Patterns as `set_event` takes them: what is in, then what is out. Without any that is in, all
/// but what is out.
pub fn patterns(events: Vec<String>, exclude: &[String]) -> Vec<String> {
    let all = (events.is_empty() && !exclude.is_empty()).then(|| "*:*".to_owned());
    let exclude = exclude.iter().map(|pattern| format!("!{pattern}"));
    all.into_iter().chain(events).chain(exclude).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("channel0", "is there"),
            ("a:", "neither"),
            ("a:1M", "neither"),
            ("a:fast", "neither"),
            ("a:3Kx4", "not a power of two"),
            ("a:discard:overwrite", "second time"),
            ("a:1Mx4:2Mx4", "second time"),
        ] {
            let error = text.parse::<ChannelArg>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
