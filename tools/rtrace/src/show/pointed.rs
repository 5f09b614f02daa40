// SPDX-License-Identifier: GPL-2.0

//! What an argument of a system call points to, as text. The record has it behind the call's numbers, as
//! fields of their own (`rust/event/syscall/pointed.rs`); traces of older modules do not.

use super::arguments::{number, push, write_text};
use crate::decode::{self, Meaning};
use std::net::{Ipv4Addr, Ipv6Addr};
use trace::ctf::{EventLayout, Value};

/// What is there, with the numbers of the fields that say it.
#[derive(Debug)]
pub enum Pointed {
    /// The address of a socket: family, port, addresses of IPv4 and IPv6, path.
    Address([usize; 5]),
    /// Times, each with its name (or ""): seconds and nanoseconds.
    Times(Vec<(&'static str, [usize; 2])>),
    /// What is asked of a descriptor, and what is said with it.
    Epoll([usize; 2]),
    /// Descriptors, and what is asked of each.
    PollSet([usize; 2]),
}

/// What stands for a time of a file in its nanoseconds.
const UTIME: [(u64, &str); 2] = [(0x3fff_ffff, "UTIME_NOW"), (0x3fff_fffe, "UTIME_OMIT")];

impl Pointed {
    /// Behind this argument of the call, in records of this layout.
    pub fn find(call: &str, argument: &str, layout: &EventLayout) -> Option<Self> {
        let kind = decode::kind(call, argument)?;
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
            "peer" | "own" => Some(Self::Address([
                field("family")?,
                field("dport").or_else(|| field("port"))?,
                field("v4addr")?,
                field("v6addr")?,
                field("sun_path")?,
            ])),
            "timespec" => times(&[""]),
            "itimerspec" => times(&["_interval", "_value"]),
            "filetimes" => times(&["_access", "_modify"]),
            "epoll" => Some(Self::Epoll([field("events")?, field("data")?])),
            "pollset" => Some(Self::PollSet([field("fds")?, field("events")?])),
            _ => None,
        }
    }

    /// The fields that say it.
    pub fn fields(&self) -> Vec<usize> {
        match self {
            Self::Address(fields) => fields.to_vec(),
            Self::Times(times) => times.iter().flat_map(|(_, fields)| *fields).collect(),
            Self::Epoll(fields) | Self::PollSet(fields) => fields.to_vec(),
        }
    }

    /// Writes it, of the event that has these values.
    pub fn write<'a>(&self, out: &mut String, value: impl Fn(usize) -> Option<Value<'a>>) {
        let integer = |field: usize| value(field).map_or(0, number);
        match self {
            Self::Address(fields) => write_address(out, fields.map(&value)),
            Self::Times(times) => {
                out.push('{');
                for (place, (name, [seconds, nanoseconds])) in times.iter().enumerate() {
                    if place > 0 {
                        out.push_str(", ");
                    }
                    if !name.is_empty() {
                        push(out, format_args!("{name}: "));
                    }
                    let nanoseconds = integer(*nanoseconds);
                    match UTIME.iter().find(|(stands, _)| *stands == nanoseconds) {
                        Some((_, name)) => out.push_str(name),
                        None => {
                            let seconds = integer(*seconds) as i64;
                            push(out, format_args!("{seconds}.{nanoseconds:09} s"));
                        }
                    }
                }
                out.push('}');
            }
            Self::Epoll([events, data]) => {
                out.push('{');
                decode::EPOLL_EVENTS.write(out, integer(*events));
                push(out, format_args!(", data: {:#x}}}", integer(*data)));
            }
            Self::PollSet([fds, events]) => {
                let integers = |field| match value(field) {
                    Some(Value::Integers(integers)) => Some(integers),
                    _ => None,
                };
                let both = integers(*fds).zip(integers(*events));
                out.push('[');
                for (place, (fd, asked)) in both.into_iter().flat_map(|(a, b)| a.zip(b)).enumerate()
                {
                    if place > 0 {
                        out.push_str(", ");
                    }
                    push(out, format_args!("{{{}, ", number(fd) as i32));
                    decode::POLL_EVENTS.write(out, number(asked));
                    out.push('}');
                }
                out.push(']');
            }
        }
    }
}

fn write_address(out: &mut String, values: [Option<Value<'_>>; 5]) {
    let [family, port, v4, v6, path] = values;
    let family = family.map_or(0, number);
    let port = port.map_or(0, number);
    out.push('{');
    match decode::argument("socket", "family") {
        Some(names) => names.write(out, family),
        None => Meaning::Address.write(out, family),
    }
    match (octets(v4), octets(v6), path) {
        (Some(v4), _, _) => push(out, format_args!(" {}:{port}", Ipv4Addr::from(v4))),
        (_, Some(v6), _) => push(out, format_args!(" [{}]:{port}", Ipv6Addr::from(v6))),
        (_, _, Some(Value::Text(path))) if !path.is_empty() => {
            out.push(' ');
            write_text(out, path);
        }
        _ => {}
    }
    out.push('}');
}

/// The bytes of an address, if there are as many.
fn octets<const N: usize>(value: Option<Value<'_>>) -> Option<[u8; N]> {
    let Some(Value::Integers(integers)) = value else {
        return None;
    };
    let bytes: Vec<u8> = integers.map(|byte| number(byte) as u8).collect();
    bytes.try_into().ok()
}
