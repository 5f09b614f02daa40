// SPDX-License-Identifier: GPL-2.0

//! Creates traces without a kernel, for tests. Their bytes are those that the module writes, by means of the
//! same ABI crate. A [source](fake) provides their packets.

#![forbid(unsafe_code)]

pub mod fake;
pub mod machine;
mod packet;
mod region;

pub use packet::PacketBuilder;
pub use region::{region, Slot, SUBBUF};
use rtrace_abi::header::Layout;
use rtrace_abi::schema::{Field, FieldType, Integer, LabelPlace, Labels};
use rtrace_abi::tsdl::{self, Clock, Environment};
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// Says that a test cannot run here: `scripts/test` counts it as skipped, not as passed. The test then returns.
///
/// The harness captures what a test prints by macros, so this writes to the standard output itself. The harness may
/// have begun a line there.
pub fn skip(why: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("?");
    let _ = writeln!(io::stdout(), "\nSKIP unit: {name}: {why}");
}

/// Identity of all synthetic traces.
pub const UUID: [u8; 16] = *b"\x5a\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f";

/// Clock ticks per second: a tick is 10 ns.
pub const FREQUENCY: u64 = 100_000_000;

/// The event `sched_switch`.
pub const SWITCH: u32 = 0;
/// The event `irq_softirq_entry`.
pub const SOFTIRQ: u32 = 1;
/// The event `sched_process_exec`, which has a string.
pub const EXEC: u32 = 2;
/// The event `every_type`, which has a field of every type.
pub const EVERY_TYPE: u32 = 3;
/// The event `irq_softirq_exit`.
pub const SOFTIRQ_EXIT: u32 = 4;
/// The event `irq_handler_entry`.
pub const IRQ: u32 = 5;
/// The event `irq_handler_exit`.
pub const IRQ_EXIT: u32 = 6;
/// The event `sched_process_fork`.
pub const FORK: u32 = 7;
/// The event `sched_waking`.
pub const WAKING: u32 = 8;
/// The event `sched_wakeup`.
pub const WAKEUP: u32 = 9;
/// The event `syscall_exit_read`.
pub const READ_EXIT: u32 = 10;
/// The event `syscall_entry_openat`.
pub const OPENAT: u32 = 11;
/// The event `syscall_exit_openat`.
pub const OPENAT_EXIT: u32 = 12;
/// The event `profile_cpu_clock`, in traces of sampled machines.
pub const SAMPLE: u32 = 13;
/// The event `syscall_entry_read`, whose id is too large for a compact header.
pub const READ: u32 = 40;
/// An event whose id is too large for a large header.
pub const FAR: u32 = 70_000;

/// An identity as text.
pub fn uuid_text(uuid: [u8; 16]) -> String {
    let hex: Vec<String> = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..4], &hex[4..6], &hex[6..8], &hex[8..10], &hex[10..]]
        .map(|part| part.concat())
        .join("-")
}

/// The fields of [`EVERY_TYPE`]. Fields of variable length come last. For each of them, two numbers among the
/// first fields have its offset and length, as in the kernel's own events.
pub const fn every_type() -> [Field<'static>; 15] {
    const fn field(name: &'static str, ty: FieldType<'static>) -> Field<'static> {
        Field { name, ty }
    }
    const STATES: Labels<'_> = Labels::new(
        b"NONErunninga \"wait\"back\\slash",
        &[
            label((0, 4), u64::MAX, u64::MAX),
            label((4, 11), 0, 0),
            label((11, 19), 1, 7),
            label((19, 29), i64::MIN as u64, i64::MIN as u64),
        ],
    );
    const KINDS: Labels<'_> = Labels::new(b"LOWHIGH", &[label((0, 3), 0, 0), label((3, 7), 3, 5)]);
    [
        field(
            "ready",
            FieldType::Integer(Integer::unsigned(8).bit_field(1)),
        ),
        field("level", FieldType::Integer(Integer::signed(8).bit_field(4))),
        field("mask", FieldType::Integer(Integer::hex(16).bit_field(13))),
        field(
            "kind",
            FieldType::Enumeration(Integer::unsigned(8).bit_field(3), KINDS),
        ),
        field(
            "wide",
            FieldType::Integer(Integer::unsigned(64).bit_field(64)),
        ),
        field("state", FieldType::Enumeration(Integer::signed(64), STATES)),
        field("uuid", FieldType::Array(Integer::hex(8), 4)),
        field(
            "pairs",
            FieldType::Array(Integer::unsigned(8).bit_field(2), 5),
        ),
        field("name_offset", FieldType::unsigned(16)),
        field("name_length", FieldType::unsigned(16)),
        field("cpus_offset", FieldType::unsigned(16)),
        field("cpus_length", FieldType::unsigned(8)),
        field("name", FieldType::Sequence(Integer::TEXT, "name_length")),
        field(
            "cpus",
            FieldType::Sequence(Integer::signed(32), "cpus_length"),
        ),
        field("path", FieldType::String),
    ]
}

const fn label(name: (u32, u32), first: u64, last: u64) -> LabelPlace {
    LabelPlace { first, last, name }
}

/// The machine of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    /// Its name.
    pub host: &'a str,
    /// Start of its clock, in seconds since the epoch.
    pub since: i64,
    /// Whether the trace has samples ([`SAMPLE`]).
    pub is_sampled: bool,
}

impl Default for Machine<'_> {
    fn default() -> Self {
        Self {
            host: "nowhere",
            since: 1_700_000_000,
            is_sampled: false,
        }
    }
}

/// Description of a synthetic trace with this identity and one channel.
pub fn metadata(uuid: [u8; 16], layout: Layout) -> String {
    metadata_of(uuid, &[layout])
}

/// Description of a synthetic trace with this identity. It has one channel for each of these event headers, and
/// each channel has all events.
pub fn metadata_of(uuid: [u8; 16], layouts: &[Layout]) -> String {
    metadata_from(Machine::default(), uuid, layouts)
}

/// Description of a machine's trace.
fn metadata_from(machine: Machine<'_>, uuid: [u8; 16], layouts: &[Layout]) -> String {
    let text = uuid_text(uuid);
    let clock = Clock {
        name: "monotonic",
        description: "made up",
        uuid: &text,
        frequency: FREQUENCY,
        offset_s: machine.since,
        offset: 0,
    };
    let env = Environment {
        hostname: machine.host,
        kernel_release: "7.2.12",
        kernel_version: "#1",
        trace_name: "default",
        created: "20231114T221320+0000",
        rtrace_version: "0.1.0",
        architecture: None,
        tasks: None,
    };
    let field = |name, ty| Field { name, ty };
    let tid = |name| field(name, FieldType::signed(32));
    let comm = |name| field(name, FieldType::text(16));
    let switch = vec![
        comm("prev_comm"),
        tid("prev_tid"),
        tid("prev_prio"),
        field("prev_state", FieldType::signed(64)),
        comm("next_comm"),
        tid("next_tid"),
        tid("next_prio"),
    ];
    let wake = || vec![comm("comm"), tid("tid"), tid("prio"), tid("target_cpu")];
    let ret = || vec![field("ret", FieldType::signed(64))];
    let events = [
        (SWITCH, "sched_switch", switch),
        (
            SOFTIRQ,
            "irq_softirq_entry",
            vec![field("vec", FieldType::unsigned(32))],
        ),
        (
            EXEC,
            "sched_process_exec",
            vec![field("filename", FieldType::String), tid("tid")],
        ),
        (
            READ,
            "syscall_entry_read",
            vec![field("buf", FieldType::hex(64))],
        ),
        (
            SOFTIRQ_EXIT,
            "irq_softirq_exit",
            vec![field("vec", FieldType::unsigned(32))],
        ),
        (
            IRQ,
            "irq_handler_entry",
            vec![tid("irq"), field("name", FieldType::String)],
        ),
        (IRQ_EXIT, "irq_handler_exit", vec![tid("irq"), tid("ret")]),
        (
            FORK,
            "sched_process_fork",
            vec![
                comm("parent_comm"),
                tid("parent_tid"),
                tid("parent_pid"),
                comm("child_comm"),
                tid("child_tid"),
                tid("child_pid"),
            ],
        ),
        (WAKING, "sched_waking", wake()),
        (WAKEUP, "sched_wakeup", wake()),
        (READ_EXIT, "syscall_exit_read", ret()),
        (
            OPENAT,
            "syscall_entry_openat",
            vec![field("filename", FieldType::String)],
        ),
        (OPENAT_EXIT, "syscall_exit_openat", ret()),
        (FAR, "far", vec![]),
        (EVERY_TYPE, "every_type", every_type().to_vec()),
    ];
    let sample = (
        SAMPLE,
        "profile_cpu_clock",
        vec![field("ip", FieldType::hex(64))],
    );
    let samples = machine.is_sampled.then_some(sample);
    let mut out = String::new();
    tsdl::preamble(&mut out, &text, layouts, &clock, &env).expect("a String takes everything");
    for stream in 0..layouts.len() as u32 {
        tsdl::stream(&mut out, stream, layouts, clock.name, std::iter::empty())
            .expect("a String takes everything");
        for (id, name, fields) in events.iter().chain(&samples) {
            tsdl::event(&mut out, stream, *id, name, fields.iter().copied())
                .expect("a String takes everything");
        }
    }
    out
}

/// Writes a trace: its description, and the packets of each CPU one after the other.
pub fn write(dir: &Path, layout: Layout, streams: &[(u32, Vec<Vec<u8>>)]) -> io::Result<()> {
    let channel = Channel {
        name: "channel0",
        layout,
        streams,
    };
    write_channels(dir, &[channel])
}

/// Writes the trace of a machine.
pub fn write_of(
    dir: &Path,
    machine: Machine<'_>,
    layout: Layout,
    streams: &[(u32, Vec<Vec<u8>>)],
) -> io::Result<()> {
    let channel = Channel {
        name: "channel0",
        layout,
        streams,
    };
    write_channels_of(dir, machine, &[channel])
}

/// A channel to write. Its stream class is its index among the channels.
#[derive(Clone, Copy, Debug)]
pub struct Channel<'a> {
    /// Its name.
    pub name: &'a str,
    /// The event header of its packets.
    pub layout: Layout,
    /// The packets of each CPU.
    pub streams: &'a [(u32, Vec<Vec<u8>>)],
}

/// Writes a trace with several channels.
pub fn write_channels(dir: &Path, channels: &[Channel<'_>]) -> io::Result<()> {
    write_channels_of(dir, Machine::default(), channels)
}

fn write_channels_of(dir: &Path, machine: Machine<'_>, channels: &[Channel<'_>]) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let layouts: Vec<_> = channels.iter().map(|channel| channel.layout).collect();
    fs::write(dir.join("metadata"), metadata_from(machine, UUID, &layouts))?;
    for channel in channels {
        for (cpu, packets) in channel.streams {
            let name = format!("{}_cpu{cpu}", channel.name);
            fs::write(dir.join(name), packets.concat())?;
        }
    }
    Ok(())
}
