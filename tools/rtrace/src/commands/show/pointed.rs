// SPDX-License-Identifier: GPL-2.0

//! Data that an argument of a system call points to, as text. The record has these data after the call's numbers, as
//! fields of their own (`rust/source/syscall/pointed.rs`). Traces of older modules lack them.

use super::argument::Buffer;
use super::arguments::{number, push, write_text};
use ctf::{EventLayout, Value};
use decode::{Architecture, Meaning};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Type of the data, with the numbers of the fields that contain them.
#[derive(Debug)]
pub enum Pointed {
    /// The address of a socket: family, port, addresses of IPv4 and IPv6, path.
    Address([usize; 5]),
    /// Times, each with its name (or ""): seconds and nanoseconds.
    Times(Vec<(&'static str, [usize; 2])>),
    /// A time in seconds and microseconds.
    Time([usize; 2]),
    /// Requested events of a descriptor, and the data for epoll to return with them.
    Epoll([usize; 2]),
    /// Data from epoll, each with the reported events.
    Epolled([usize; 2]),
    /// Descriptors, each with its requested or reported events.
    PollSet {
        /// The field with the descriptors.
        fds: usize,
        /// The field with the events.
        events: usize,
        /// The name of the events.
        name: &'static str,
    },
    /// Descriptors, and the name of the set.
    Set(usize, &'static str),
    /// The lengths of buffers.
    Vector(usize),
    /// The address of a socket, as above, and the lengths of buffers.
    Message([usize; 5], usize),
}

/// The sets of descriptors, by the kinds of arguments.
const SETS: [(&str, &str); 3] = [
    ("readset", "readfds"),
    ("writeset", "writefds"),
    ("exceptset", "exceptfds"),
];

/// The family of addresses that are paths.
const AF_UNIX: u64 = 1;

/// Special values of a file time's nanoseconds, and their names.
const UTIME: [(u64, &str); 2] = [(0x3fff_ffff, "UTIME_NOW"), (0x3fff_fffe, "UTIME_OMIT")];

impl Pointed {
    /// Data for an argument of this kind, in the record of a call's entry.
    pub fn given(kind: &str, argument: &str, layout: &EventLayout) -> Option<Self> {
        let field = |name: &str| layout.field(name);
        let time = |name: &'static str| {
            let part = |unit| field(&format!("{argument}{name}_{unit}"));
            Some((name.trim_start_matches('_'), [part("sec")?, part("nsec")?]))
        };
        let times = |names: &[&'static str]| {
            let times: Option<Vec<_>> = names.iter().map(|name| time(name)).collect();
            times.map(Self::Times)
        };
        match kind {
            "peer" => Some(Self::Address(address("dport", layout)?)),
            "own" => Some(Self::Address(address("port", layout)?)),
            "message" => Some(Self::Message(address("dport", layout)?, field("iov_len")?)),
            "iovec" | "given_iovec" | "filled_iovec" => Some(Self::Vector(field("iov_len")?)),
            "timeval" => {
                let part = |unit| field(&format!("{argument}_{unit}"));
                Some(Self::Time([part("sec")?, part("usec")?]))
            }
            "timespec" => times(&[""]),
            "itimerspec" => times(&["_interval", "_value"]),
            "filetimes" => times(&["_access", "_modify"]),
            "epoll" => Some(Self::Epoll([field("events")?, field("data")?])),
            "pollset" => Self::poll_set("events", layout),
            _ => Self::set(kind, layout),
        }
    }

    /// Data for an argument of this kind, in the record of a call's exit.
    pub fn filled(kind: &str, argument: &str, layout: &EventLayout) -> Option<Self> {
        let field = |name: &str| layout.field(name);
        match kind {
            "connected" | "sender" => Some(Self::Address(address("sport", layout)?)),
            "name" => Some(Self::Address(address("port", layout)?)),
            "filled_timespec" => Self::given("timespec", argument, layout),
            "received" => Some(Self::Message(address("sport", layout)?, field("iov_len")?)),
            "epolled" => Some(Self::Epolled([field("data")?, field("revents")?])),
            "pollset" => Self::poll_set("revents", layout),
            _ => Self::set(kind, layout),
        }
    }

    fn poll_set(name: &'static str, layout: &EventLayout) -> Option<Self> {
        Some(Self::PollSet {
            fds: layout.field("fds")?,
            events: layout.field(name)?,
            name,
        })
    }

    fn set(kind: &str, layout: &EventLayout) -> Option<Self> {
        let (_, name) = SETS.into_iter().find(|(set, _)| *set == kind)?;
        Some(Self::Set(layout.field(name)?, name))
    }

    /// The name for the data in a record without the address that points to them.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Address(_) => "from",
            Self::Times(_) | Self::Time(_) => "time",
            Self::Set(_, name) => name,
            Self::Vector(_) => "iov",
            Self::Message(..) => "received",
            Self::Epoll(_) | Self::Epolled(_) | Self::PollSet { .. } => "revents",
        }
    }

    /// The fields that contain the data.
    pub fn fields(&self) -> Vec<usize> {
        match self {
            Self::Address(fields) => fields.to_vec(),
            Self::Times(times) => times.iter().flat_map(|(_, fields)| *fields).collect(),
            Self::Time(fields) | Self::Epoll(fields) | Self::Epolled(fields) => fields.to_vec(),
            Self::PollSet { fds, events, .. } => vec![*fds, *events],
            Self::Set(field, _) | Self::Vector(field) => vec![*field],
            Self::Message(address, lengths) => {
                let mut fields = address.to_vec();
                fields.push(*lengths);
                fields
            }
        }
    }

    /// Whether the call passed no data, or requested none.
    pub fn is_nothing<'a>(&self, value: impl Fn(usize) -> Option<Value<'a>>) -> bool {
        let is_zero = |field: usize| value(field).map_or(0, number) == 0;
        let is_empty = |field: usize| match value(field) {
            Some(Value::Integers(mut integers)) => integers.next().is_none(),
            _ => true,
        };
        match self {
            Self::Address([family, ..]) => is_zero(*family),
            Self::Message([family, ..], lengths) => is_zero(*family) && is_empty(*lengths),
            Self::Epolled([one, _])
            | Self::PollSet { fds: one, .. }
            | Self::Set(one, _)
            | Self::Vector(one) => is_empty(*one),
            Self::Times(_) | Self::Time(_) | Self::Epoll(_) => false,
        }
    }

    /// Writes the data of the event with these values. Adds the buffers among them to `buffers`.
    pub fn write<'a>(
        &self,
        out: &mut String,
        value: impl Fn(usize) -> Option<Value<'a>>,
        buffers: &mut Vec<Buffer>,
    ) {
        let integer = |field: usize| value(field).map_or(0, number);
        match self {
            Self::Address(fields) => write_address(out, fields.map(&value)),
            Self::Times(times) => {
                let is_timer = matches!(times.as_slice(), [("interval", _), _]);
                let (begin, end) = match times.len() {
                    1 => ("", ""),
                    _ if is_timer => ("{", "}"),
                    _ => ("[", "]"),
                };
                out.push_str(begin);
                for (place, (name, fields)) in times.iter().enumerate() {
                    out.push_str(if place > 0 { ", " } else { "" });
                    if is_timer {
                        push(out, format_args!("it_{name}="));
                    }
                    let [seconds, nanoseconds] = fields.map(integer);
                    match UTIME.iter().find(|(stands, _)| *stands == nanoseconds) {
                        Some((_, name)) => out.push_str(name),
                        None => write_time(out, seconds, "nsec", nanoseconds),
                    }
                }
                out.push_str(end);
            }
            Self::Time(fields) => {
                let [seconds, microseconds] = fields.map(integer);
                write_time(out, seconds, "usec", microseconds);
            }
            Self::Set(members, _) => write_list(out, value(*members), |out, fd| {
                push(out, format_args!("{}", fd as i32));
            }),
            Self::Vector(lengths) => write_buffers(out, value(*lengths), buffers),
            Self::Message(fields, lengths) => {
                out.push('{');
                if integer(fields[0]) != 0 {
                    out.push_str("msg_name=");
                    write_address(out, fields.map(&value));
                    out.push_str(", ");
                }
                out.push_str("msg_iov=");
                write_buffers(out, value(*lengths), buffers);
                out.push_str(", ...}");
            }
            Self::Epoll([events, data]) => write_epoll(out, integer(*data), integer(*events)),
            Self::Epolled([data, events]) => {
                write_pairs(out, [value(*data), value(*events)], write_epoll);
            }
            Self::PollSet { fds, events, name } => {
                write_pairs(out, [value(*fds), value(*events)], |out, fd, events| {
                    push(out, format_args!("{{fd={}, {name}=", fd as i32));
                    decode::POLL_EVENTS.write(out, events);
                    out.push('}');
                });
            }
        }
    }
}

/// The numbers of the fields with the address of a socket.
fn address(port: &str, layout: &EventLayout) -> Option<[usize; 5]> {
    Some([
        layout.field("family")?,
        layout.field(port)?,
        layout.field("v4addr")?,
        layout.field("v6addr")?,
        layout.field("sun_path")?,
    ])
}

/// Writes a time of seconds and a smaller unit.
fn write_time(out: &mut String, seconds: u64, unit: &str, rest: u64) {
    let (seconds, rest) = (seconds as i64, rest as i64);
    push(out, format_args!("{{tv_sec={seconds}, tv_{unit}={rest}}}"));
}

/// Writes events of an epoll instance, and the data to return with them.
fn write_epoll(out: &mut String, data: u64, events: u64) {
    out.push_str("{events=");
    decode::EPOLL_EVENTS.write(out, events);
    push(out, format_args!(", data={data:#x}}}"));
}

/// Writes the lengths of buffers. The record has no addresses.
fn write_buffers(out: &mut String, lengths: Option<Value<'_>>, buffers: &mut Vec<Buffer>) {
    let Some(Value::Integers(lengths)) = lengths else {
        return;
    };
    out.push('[');
    for (place, len) in lengths.map(number).enumerate() {
        out.push_str(if place > 0 { ", {" } else { "{" });
        buffers.push(Buffer { at: out.len(), len });
        push(out, format_args!("iov_len={len}}}"));
    }
    out.push(']');
}

/// Writes the integers of a sequence.
fn write_list(out: &mut String, sequence: Option<Value<'_>>, write: impl Fn(&mut String, u64)) {
    let Some(Value::Integers(integers)) = sequence else {
        return;
    };
    out.push('[');
    for (place, integer) in integers.enumerate() {
        if place > 0 {
            out.push_str(", ");
        }
        write(out, number(integer));
    }
    out.push(']');
}

/// Writes the integers of two sequences as pairs.
fn write_pairs(
    out: &mut String,
    sequences: [Option<Value<'_>>; 2],
    write: impl Fn(&mut String, u64, u64),
) {
    let [Some(Value::Integers(first)), Some(Value::Integers(second))] = sequences else {
        return;
    };
    out.push('[');
    for (place, (first, second)) in first.zip(second).enumerate() {
        out.push_str(if place > 0 { ", " } else { "" });
        write(out, number(first), number(second));
    }
    out.push(']');
}

/// Writes the address of a socket. The record lacks some fields of the families that end with `...`.
fn write_address(out: &mut String, values: [Option<Value<'_>>; 5]) {
    let [family, port, v4, v6, path] = values;
    let family = family.map_or(0, number);
    let port = port.map_or(0, number);
    out.push_str("{sa_family=");
    // Families are the same everywhere.
    match decode::argument(Architecture::default(), "socket", "family") {
        Some(names) => names.write(out, family),
        None => Meaning::Address.write(out, family),
    }
    match (octets(v4), octets(v6), path) {
        (Some(v4), _, _) => {
            let v4 = Ipv4Addr::from(v4);
            push(
                out,
                format_args!(", sin_port=htons({port}), sin_addr=inet_addr(\"{v4}\")}}"),
            );
        }
        (_, Some(v6), _) => {
            let v6 = Ipv6Addr::from(v6);
            push(
                out,
                format_args!(
                    ", sin6_port=htons({port}), inet_pton(AF_INET6, \"{v6}\", &sin6_addr), ...}}"
                ),
            );
        }
        (_, _, Some(Value::Text(path))) if !path.is_empty() => {
            out.push_str(", sun_path=");
            let name = path.strip_prefix(b"@");
            out.push_str(if name.is_some() { "@" } else { "" });
            write_text(out, name.unwrap_or(path));
            out.push('}');
        }
        _ if family == AF_UNIX => out.push('}'),
        _ => out.push_str(", ...}"),
    }
}

/// The bytes of an address, if the value has exactly `N`.
fn octets<const N: usize>(value: Option<Value<'_>>) -> Option<[u8; N]> {
    let Some(Value::Integers(integers)) = value else {
        return None;
    };
    let bytes: Vec<u8> = integers.map(|byte| number(byte) as u8).collect();
    bytes.try_into().ok()
}
