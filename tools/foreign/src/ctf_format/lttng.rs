// SPDX-License-Identifier: GPL-2.0

//! LTTng's kernel events under rtrace's names, so that they answer the same questions.
//!
//! rtrace has LTTng's names and fields for the events that both have, so few names differ: those of older versions of
//! LTTng, and those of events that rtrace takes from the kernel with the kernel's names.

use super::model::{Description, EventClass, StreamClass, Type};

/// Prefixes that only LTTng's names have.
const PREFIXES: [(&str, &str); 3] = [
    ("x86_irq_vectors_", ""),
    ("net_if_", "netif_"),
    ("softirq_", "irq_softirq_"),
];

/// Names of single events.
const NAMES: [(&str, &str); 5] = [
    ("printk_console", "console"),
    ("skb_consume", "consume_skb"),
    ("skb_kfree", "kfree_skb"),
    ("power_cpu_idle", "cpu_idle"),
    ("power_cpu_frequency", "cpu_frequency"),
];

/// Events with fields that only older versions of LTTng called so.
const FIELDS: [(&str, &str, &str); 2] = [
    ("sched_process_exec", "_pid", "_tid"),
    ("sched_process_exec", "_old_pid", "_old_tid"),
];

/// The end of every system call, in versions of LTTng before 2.6.
const OLD_EXIT: &str = "exit_syscall";

/// Prefixes of the begins of system calls in these versions.
const OLD_ENTRIES: [(&str, &str); 2] = [
    ("sys_", "syscall_entry_"),
    ("compat_sys_", "compat_syscall_entry_"),
];

/// Gives the events of a kernel trace rtrace's names.
pub fn translate(this: &mut Description) {
    let is = |key: &str, value: &str| this.env.get(key).is_some_and(|found| found == value);
    if !is("domain", "kernel") || !is("tracer_name", "lttng-modules") {
        return;
    }
    let mut streams = this.streams.iter();
    let is_old = streams.any(|stream| stream.events.iter().any(|event| event.name == OLD_EXIT));
    let state = state_of(this.env.get("kernel_release").map_or("", String::as_str));
    for StreamClass { events, .. } in &mut this.streams {
        for event in events {
            translate_event(event, is_old, state);
        }
    }
}

fn translate_event(event: &mut EventClass, is_old: bool, state: Option<fn(u64) -> u64>) {
    let old = if is_old { &OLD_ENTRIES[..] } else { &[] };
    let renamed = PREFIXES.iter().chain(old).find_map(|(theirs, ours)| {
        let rest = event.name.strip_prefix(theirs)?;
        Some(format!("{ours}{rest}"))
    });
    let named = NAMES.iter().find(|(theirs, _)| *theirs == event.name);
    if let Some((_, ours)) = named {
        event.name = (*ours).to_owned();
    } else if let Some(renamed) = renamed {
        event.name = renamed;
    }
    let is_block = event.name.starts_with("block_");
    let Some(Type::Structure(fields, _)) = &mut event.payload else {
        return;
    };
    for field in fields {
        let known = FIELDS
            .iter()
            .find(|(name, theirs, _)| *name == event.name && *theirs == field.name);
        if let Some((.., ours)) = known {
            field.name = (*ours).to_owned();
        }
        if let (Some(state), "sched_switch", "_prev_state" | "prev_state", Type::Integer(integer)) =
            (state, event.name.as_str(), field.name.as_str(), &field.ty)
        {
            field.ty = Type::Changed(integer.clone(), state);
        }
        if is_block && field.name.trim_start_matches('_') == "rwbs" {
            if let Type::Integer(integer) = &field.ty {
                field.ty = Type::Mapped(integer.clone(), letters);
            }
        }
    }
}

/// The translation of a thread's state in `sched_switch` of this kernel. [`None`]: it is that of rtrace. Before Linux
/// 4.14, tracers show the bits of the kernel itself, which differ between versions.
fn state_of(release: &str) -> Option<fn(u64) -> u64> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    match (number()?, number()?) {
        (..3, _) | (3, ..9) => Some(|bits| state(bits, 1 << 9)),
        (3, _) | (4, ..2) => Some(|bits| state(bits, 1 << 10)),
        (4, 2..8) => Some(|bits| state(bits, 1 << 11)),
        (4, 8..14) => Some(|bits| state(bits, 1 << 12)),
        _ => None,
    }
}

/// The state of a thread, of whose kernel `preempted` is the bit of a preempted thread: the highest bit, and bits from
/// 512 on are those that later versions added below it.
fn state(bits: u64, preempted: u64) -> u64 {
    const DEAD: u64 = 1 << 6;
    const PARKED: u64 = 1 << 9;
    const NO_LOAD: u64 = 1 << 10;
    let has = |bit: u64| bit < preempted && bits & bit != 0;
    match bits {
        _ if bits & preempted != 0 => 0x100,
        _ if has(DEAD) => 0x20,
        _ if has(PARKED) => 0x40,
        _ if has(NO_LOAD) && bits & 2 != 0 => 0x80,
        // Interruptible, uninterruptible, stopped, traced. The bit of a thread that a signal may kill is no state.
        _ => bits & 0xf,
    }
}

/// The kernel's letters for LTTng's bits of an operation on a block device.
pub fn letters(bits: u64, out: &mut Vec<u8>) {
    const PREFLUSH: u64 = 1 << 10;
    let has = |bit: u64| bits & (1 << bit) != 0;
    if bits & PREFLUSH != 0 {
        out.push(b'F');
    }
    out.push(match () {
        () if has(0) => b'W',
        () if has(1) => b'D',
        () if has(8) => b'F',
        () if has(2) => b'R',
        () => b'N',
    });
    // Secure, forced to the medium, read ahead, a barrier, synchronous, metadata.
    for (bit, letter) in [
        (7, b'E'),
        (9, b'F'),
        (3, b'A'),
        (4, b'B'),
        (5, b'S'),
        (6, b'M'),
    ] {
        if has(bit) {
            out.push(letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_old_kernels_are_rtraces() {
        for (release, theirs, ours) in [
            ("3.2.0-18-generic", 0x200, Some(0x100)),
            ("3.2.0-18-generic", 0x40, Some(0x20)),
            ("3.14.23-WR7.0.0.0_standard", 0x400, Some(0x100)),
            ("3.14.23-WR7.0.0.0_standard", 0x200, Some(0x40)),
            ("3.14.23", 0x82, Some(0x2)),
            ("4.4.0-amd64", 0x800, Some(0x100)),
            ("4.4.0-amd64", 0x402, Some(0x80)),
            ("4.13.1", 0x1000, Some(0x100)),
            ("4.13.1", 1, Some(1)),
            ("4.14.0", 0x100, None),
            ("6.12.0", 0x20, None),
            ("", 0x20, None),
        ] {
            let found = state_of(release).map(|state| state(theirs));
            assert_eq!(found, ours, "{release}: {theirs:#x}");
        }
    }

    #[test]
    fn operations_have_the_kernels_letters() {
        for (bits, expected) in [
            (0x1, "W"),
            (0x4, "R"),
            (0x21, "WS"),
            (0x24, "RS"),
            (0xc, "RA"),
            (0x64, "RSM"),
            (0x82, "DE"),
            (0x401, "FW"),
            (0x621, "FWFS"),
            (0x100, "F"),
            (0, "N"),
        ] {
            let mut out = Vec::new();
            letters(bits, &mut out);
            assert_eq!(out, expected.as_bytes(), "{bits:#x}");
        }
    }
}
