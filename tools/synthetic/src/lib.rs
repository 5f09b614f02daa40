// SPDX-License-Identifier: GPL-2.0

//! Makes traces without a kernel, for tests: bytes as the module would write them, from
//! the same ABI crate.

#![forbid(unsafe_code)]

mod packet;

pub use packet::PacketBuilder;
use rtrace_abi::header::Layout;
use rtrace_abi::schema::{Field, FieldType};
use rtrace_abi::tsdl::{self, Clock, Environment};
use std::fs;
use std::io;
use std::path::Path;

/// The identity of every synthetic trace.
pub const UUID: [u8; 16] = *b"\x5a\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f";

/// Clock ticks per second: one is 10 ns.
pub const FREQUENCY: u64 = 100_000_000;

/// The event `sched_switch`.
pub const SWITCH: u32 = 0;
/// The event `irq_softirq_entry`.
pub const SOFTIRQ: u32 = 1;
/// The event `sched_process_exec`, which has a string.
pub const EXEC: u32 = 2;
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

/// The description of a synthetic trace with this identity.
pub fn metadata(uuid: [u8; 16], layout: Layout) -> String {
    let text = uuid_text(uuid);
    let clock = Clock {
        name: "monotonic",
        description: "made up",
        uuid: &text,
        frequency: FREQUENCY,
        offset_s: 1_700_000_000,
        offset: 0,
    };
    let env = Environment {
        hostname: "nowhere",
        kernel_release: "7.2.12",
        kernel_version: "#1",
        trace_name: "default",
        created: "20231114T221320+0000",
        rtrace_version: "0.1.0",
    };
    let field = |name, ty| Field { name, ty };
    let tid = |name| field(name, FieldType::Signed(32));
    let comm = |name| field(name, FieldType::Text(16));
    let switch = vec![
        comm("prev_comm"),
        tid("prev_tid"),
        tid("prev_prio"),
        field("prev_state", FieldType::Signed(64)),
        comm("next_comm"),
        tid("next_tid"),
        tid("next_prio"),
    ];
    let events = [
        (SWITCH, "sched_switch", switch),
        (
            SOFTIRQ,
            "irq_softirq_entry",
            vec![field("vec", FieldType::Unsigned(32))],
        ),
        (
            EXEC,
            "sched_process_exec",
            vec![field("filename", FieldType::String), tid("tid")],
        ),
        (
            READ,
            "syscall_entry_read",
            vec![field("buf", FieldType::Hex(64))],
        ),
        (FAR, "far", vec![]),
    ];
    let mut out = String::new();
    tsdl::preamble(&mut out, &text, layout, &clock, &env).expect("a String takes everything");
    for (id, name, fields) in events {
        tsdl::event(&mut out, id, name, fields.into_iter()).expect("a String takes everything");
    }
    out
}

/// Writes a trace: its description, and for each CPU its packets one after the other.
pub fn write(dir: &Path, layout: Layout, streams: &[(u32, Vec<Vec<u8>>)]) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    fs::write(dir.join("metadata"), metadata(UUID, layout))?;
    for (cpu, packets) in streams {
        fs::write(dir.join(format!("channel0_cpu{cpu}")), packets.concat())?;
    }
    Ok(())
}
