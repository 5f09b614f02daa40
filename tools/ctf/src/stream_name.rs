// SPDX-License-Identifier: GPL-2.0

//! The name of a stream, and of its file.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Prefix of the channel's name in a stream of an AUX area. It hides the stream's file, because readers of CTF take
/// all other files for streams of events.
const AUX: &str = ".aux_";

/// A stream of a trace: that of a channel on a CPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamName {
    /// The channel's name, after `.aux_` if it is the stream of its AUX area.
    pub channel: String,
    /// The CPU.
    pub cpu: u32,
}

impl StreamName {
    /// Name of the stream of the channel's AUX area.
    pub fn of_area(channel: &str, cpu: u32) -> Self {
        Self {
            channel: format!("{AUX}{channel}"),
            cpu,
        }
    }

    /// The channel of its AUX area, if it is the stream of one.
    pub fn area(&self) -> Option<&str> {
        self.channel.strip_prefix(AUX)
    }
}

/// Writes the name of the stream's file in a trace.
impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_cpu{}", self.channel, self.cpu)
    }
}

impl FromStr for StreamName {
    type Err = ();

    fn from_str(name: &str) -> std::result::Result<Self, ()> {
        let (channel, cpu) = name.rsplit_once("_cpu").ok_or(())?;
        Ok(Self {
            channel: channel.to_owned(),
            cpu: cpu.parse().map_err(drop)?,
        })
    }
}

/// The stream of a file with this name. [`None`]: it is no stream's file.
pub fn name_of(path: &Path) -> Option<StreamName> {
    path.file_name()?.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_called_as_their_files() {
        for (file, channel, cpu) in [
            ("channel0_cpu0", "channel0", 0),
            ("a_cpu1_cpu17", "a_cpu1", 17),
            (".aux_channel0_cpu2", ".aux_channel0", 2),
        ] {
            let name: StreamName = file.parse().unwrap();
            assert_eq!((name.channel.as_str(), name.cpu), (channel, cpu));
            assert_eq!(name.to_string(), file);
        }
        let area = StreamName::of_area("channel0", 2);
        assert_eq!(area.to_string(), ".aux_channel0_cpu2");
        assert_eq!(area.area(), Some("channel0"));
        assert_eq!("channel0_cpu2".parse::<StreamName>().unwrap().area(), None);
        for other in ["", "metadata", "channel0_cpu", "channel0_cpux", "cpu0"] {
            assert!(other.parse::<StreamName>().is_err(), "{other}");
        }
    }
}
