// SPDX-License-Identifier: GPL-2.0

//! The used part of Perfetto's trace format. Messages and fields have the names and numbers of
//! `protos/perfetto/trace/`.

use prost::encoding::{encode_key, encode_varint, encoded_len_varint, WireType};
use prost::{Message, Oneof};

/// A file. Several concatenated files are a file, too.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Number of the writer: never 0.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    #[prost(oneof = "Data", tags = "2, 6, 45")]
    pub data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Data {
    #[prost(message, tag = "2")]
    ProcessTree(ProcessTree),
    #[prost(message, tag = "6")]
    ClockSnapshot(ClockSnapshot),
    #[prost(message, tag = "45")]
    SystemInfo(SystemInfo),
}

/// Values of several clocks at one moment.
#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    /// Clock of all other times.
    #[prost(uint32, optional, tag = "2")]
    pub primary_trace_clock: Option<u32>,
}

/// `ClockSnapshot.Clock`, with nanoseconds.
#[derive(Clone, PartialEq, Message)]
pub struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
}

/// `BUILTIN_CLOCK_REALTIME`
pub const REALTIME: u32 = 1;
/// `BUILTIN_CLOCK_BOOTTIME`
pub const BOOTTIME: u32 = 6;

#[derive(Clone, PartialEq, Message)]
pub struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub utsname: Option<Utsname>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Utsname {
    #[prost(string, optional, tag = "1")]
    pub sysname: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub version: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub release: Option<String>,
    /// Perfetto decodes the numbers of system calls by this architecture.
    #[prost(string, optional, tag = "4")]
    pub machine: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<Thread>,
}

/// `ProcessTree.Process`
#[derive(Clone, PartialEq, Message)]
pub struct Process {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub ppid: Option<i32>,
    #[prost(string, repeated, tag = "3")]
    pub cmdline: Vec<String>,
    /// Whether the command line is the name of a task.
    #[prost(bool, optional, tag = "9")]
    pub cmdline_is_comm: Option<bool>,
}

/// `ProcessTree.Thread`
#[derive(Clone, PartialEq, Message)]
pub struct Thread {
    #[prost(int32, optional, tag = "1")]
    pub tid: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(int32, optional, tag = "3")]
    pub tgid: Option<i32>,
}

/// Field numbers of messages without a struct: the exporter encodes them directly, because each event needs
/// one.
pub mod tag {
    /// `Trace.packet`
    pub const PACKET: u32 = 1;
    /// `TracePacket.ftrace_events`
    pub const FTRACE_EVENTS: u32 = 1;
    /// `TracePacket.trusted_packet_sequence_id`
    pub const SEQUENCE: u32 = 10;
    /// `FtraceEventBundle`: the CPU, its events, and whether events are missing before these.
    pub const BUNDLE_CPU: u32 = 1;
    pub const BUNDLE_EVENT: u32 = 2;
    pub const BUNDLE_LOST: u32 = 3;
    /// `FtraceEvent`: its time, its thread, and its message.
    pub const TIMESTAMP: u32 = 1;
    pub const PID: u32 = 2;
    pub const TASK_NEWTASK: u32 = 235;
    pub const GENERIC: u32 = 327;
    pub const SYS_ENTER: u32 = 329;
    pub const SYS_EXIT: u32 = 330;
    /// `GenericFtraceEvent`: its name and fields. A field has a name, and a value by type.
    pub const EVENT_NAME: u32 = 1;
    pub const FIELD: u32 = 2;
    pub const FIELD_NAME: u32 = 1;
    pub const FIELD_STR: u32 = 3;
    pub const FIELD_INT: u32 = 4;
    pub const FIELD_UINT: u32 = 5;
}

/// Appends an integer field. A negative integer has all 64 bits.
pub fn varint(out: &mut Vec<u8>, tag: u32, value: u64) {
    encode_key(tag, WireType::Varint, out);
    encode_varint(value, out);
}

/// Appends a text field.
pub fn string(out: &mut Vec<u8>, tag: u32, text: &[u8]) {
    encode_key(tag, WireType::LengthDelimited, out);
    encode_varint(text.len() as u64, out);
    out.extend_from_slice(text);
}

/// Appends a field that is a message or a text; `fill` appends its contents.
pub fn message(out: &mut Vec<u8>, tag: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    encode_key(tag, WireType::LengthDelimited, out);
    // The length of most messages fits into one byte.
    let begin = out.len() + 1;
    out.push(0);
    fill(out);
    let length = out.len() - begin;
    let more = encoded_len_varint(length as u64) - 1;
    if more > 0 {
        out.resize(out.len() + more, 0);
        out.copy_within(begin..begin + length, begin + more);
    }
    encode_varint(length as u64, &mut &mut out[begin - 1..begin + more]);
}
