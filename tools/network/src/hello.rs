// SPDX-License-Identifier: GPL-2.0

//! The first message on a connection. It is text, so that different versions can report a mismatch to each
//! other.
//!
//! The first line is `rtrace-network VERSION`. Each other line is a name and a value. Unknown names are
//! ignored, so that later versions can add some.

use ctf::StreamName;
use rtrace_input::name;
use std::fmt;
use uuid::Uuid;

/// The version of the protocol.
const VERSION: u32 = 1;

/// Beginning of the first line.
const MAGIC: &str = "rtrace-network";

/// Request of the peer that connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hello {
    /// Sends a trace.
    Send(Sent),
    /// Watches a trace while it is received.
    Watch {
        /// The machine or the trace; without it, the trace that began last.
        trace: Option<String>,
    },
}

/// A trace that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The machine's name.
    pub host: String,
    /// Identity of the trace.
    pub uuid: Uuid,
    /// The possible streams.
    pub streams: Vec<StreamName>,
}

impl Sent {
    /// Name of the trace at the receiver, which is also the name of its directory.
    pub fn name(&self) -> String {
        format!("{}-{}", self.host, self.uuid)
    }
}

impl Hello {
    /// Parses the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let first = lines.next().and_then(|line| line.split_once(' '));
        match first {
            Some((MAGIC, version)) if version == VERSION.to_string() => {}
            Some((MAGIC, version)) => {
                return Err(format!(
                    "version {} of the protocol is not known here, only {VERSION}",
                    version.escape_debug()
                ))
            }
            _ => return Err("the peer does not speak rtrace's protocol".to_owned()),
        }
        let (mut host, mut uuid, mut watch, mut streams) = (None, None, None, Vec::new());
        for line in lines {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            match name {
                "host" => host = Some(checked(value)?),
                "trace" => {
                    let parsed = value.parse().map_err(|_| "the trace has no valid UUID")?;
                    uuid = Some(parsed);
                }
                "stream" => streams.push(stream_name(value)?),
                "watch" if value.is_empty() => watch = Some(None),
                "watch" => watch = Some(Some(wanted(value)?)),
                _ => {}
            }
        }
        match (host, uuid, watch) {
            (None, None, Some(trace)) => Ok(Self::Watch { trace }),
            (Some(host), Some(uuid), None) => Ok(Self::Send(Sent {
                host,
                uuid,
                streams,
            })),
            _ => Err("a hello needs `host` and `trace`, or `watch`".to_owned()),
        }
    }
}

/// As [`Hello::parse`] reads it.
impl fmt::Display for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{MAGIC} {VERSION}")?;
        match self {
            Self::Send(sent) => {
                writeln!(f, "host {}\ntrace {}", sent.host, sent.uuid)?;
                let mut streams = sent.streams.iter();
                streams.try_for_each(|stream| writeln!(f, "stream {stream}"))
            }
            Self::Watch { trace: None } => writeln!(f, "watch"),
            Self::Watch { trace: Some(name) } => writeln!(f, "watch {name}"),
        }
    }
}

/// This machine's name, converted so that a directory can have it.
pub fn host() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let name: String = name
        .trim_start_matches(['-', '.'])
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .take(name::MAX)
        .collect();
    if name.is_empty() {
        "localhost".to_owned()
    } else {
        name
    }
}

fn checked(name: &str) -> Result<String, String> {
    match name::refusal(name) {
        None => Ok(name.to_owned()),
        Some(why) => Err(format!("`{}`: {why}", name.escape_debug())),
    }
}

/// Checks a machine's name, with or without the identity of a trace after it.
fn wanted(name: &str) -> Result<String, String> {
    let short = match name.len().checked_sub(UUID + 1) {
        Some(at) if is_name_of_trace(name, at) => &name[..at],
        _ => name,
    };
    checked(short).map(|_| name.to_owned())
}

/// Length of a trace's identity in characters.
const UUID: usize = 36;

fn is_name_of_trace(name: &str, at: usize) -> bool {
    let uuid = name.get(at..).and_then(|end| end.strip_prefix('-'));
    uuid.is_some_and(|uuid| uuid.parse::<Uuid>().is_ok())
}

/// Parses the name of a stream. The kernel's rules for the channel's name hold.
pub fn stream_name(text: &str) -> Result<StreamName, String> {
    let name: Option<StreamName> = text.parse().ok();
    let name = name.filter(|name| name::refusal(name.area().unwrap_or(&name.channel)).is_none());
    // Only one spelling is valid, because the name becomes that of a file.
    let name = name.filter(|name| name.to_string() == text);
    name.ok_or_else(|| format!("`{}` is not the name of a stream", text.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "5a010203-0405-0607-0809-0a0b0c0d0e0f";

    #[test]
    fn what_is_said_is_read() {
        let sent = |streams: &[&str]| {
            Hello::Send(Sent {
                host: "web-1.example".to_owned(),
                uuid: UUID.parse().unwrap(),
                streams: streams.iter().map(|name| name.parse().unwrap()).collect(),
            })
        };
        let watch = |name: Option<&str>| Hello::Watch {
            trace: name.map(str::to_owned),
        };
        let full = format!("{}-{UUID}", "h".repeat(63));
        for hello in [
            sent(&[]),
            sent(&["channel0_cpu0", "a_cpu1_cpu17"]),
            watch(None),
            watch(Some("web-1")),
            watch(Some(&full)),
        ] {
            assert_eq!(Hello::parse(&hello.to_string()), Ok(hello));
        }
        let more = format!("rtrace-network 1\ncolour red\nhost a\ntrace {UUID}\n");
        assert!(Hello::parse(&more).is_ok());
        assert_eq!(name::refusal(&host()), None);
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for (text, why) in [
            ("", "does not speak rtrace's protocol"),
            ("GET / HTTP/1.1\r\n", "does not speak rtrace's protocol"),
            ("rtrace-network 2\nhost a\n", "version 2 of the protocol"),
            ("rtrace-network 1\n", "a hello needs"),
            ("rtrace-network 1\nhost a\n", "a hello needs"),
            ("rtrace-network 1\nhost ../a\ntrace UUID\n", "a name"),
            ("rtrace-network 1\nhost a/b\ntrace UUID\n", "a name"),
            ("rtrace-network 1\nhost \ntrace UUID\n", "empty"),
            ("rtrace-network 1\nhost a\ntrace 7\n", "no valid UUID"),
            ("rtrace-network 1\nwatch ..\n", "a name"),
            (
                "rtrace-network 1\nwatch\nhost a\ntrace UUID\n",
                "a hello needs",
            ),
            (
                "rtrace-network 1\nhost a\ntrace UUID\nstream ../x_cpu0\n",
                "not the name of a stream",
            ),
            (
                "rtrace-network 1\nhost a\ntrace UUID\nstream x_cpu00\n",
                "not the name of a stream",
            ),
        ] {
            let error = Hello::parse(&text.replace("UUID", UUID)).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
