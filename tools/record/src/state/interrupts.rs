// SPDX-License-Identifier: GPL-2.0

//! Interrupts and their handlers.

use super::lines::Line;
use std::fs;
use std::io;
use std::path::Path;

/// Name of the event.
pub const EVENT: &str = "lttng_statedump_interrupt";

/// Bytes of a thread's name: `TASK_COMM_LEN`, without the NUL.
const COMM: usize = 15;

/// One line for each handler of each interrupt.
pub fn find(proc: &Path, sys: &Path) -> io::Result<Vec<Line>> {
    let threads = threads(proc)?;
    let mut numbers: Vec<u32> = fs::read_dir(sys.join("kernel/irq"))?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    let mut lines = Vec::new();
    for irq in numbers {
        let file = |name| fs::read_to_string(sys.join(format!("kernel/irq/{irq}/{name}")));
        // The interrupt may be gone meanwhile.
        let (Ok(chip), Ok(actions)) = (file("chip_name"), file("actions")) else {
            continue;
        };
        let chip = match chip.trim_end() {
            // LTTng's name for such a chip.
            "" | "(null)" => "unnamed_irq_chip",
            chip => chip,
        };
        for action in actions
            .trim_end()
            .split(',')
            .filter(|name| !name.is_empty())
        {
            let mut thread = format!("irq/{irq}-{action}").into_bytes();
            thread.truncate(COMM);
            let mut threads = threads.iter();
            let tid = threads.find(|(comm, _)| *comm == thread);
            lines.push(
                Line::new(EVENT)
                    .number("irq", irq)
                    .text("name", chip)
                    .text("action", action)
                    .number("tid", tid.map_or(0, |(_, tid)| *tid)),
            );
        }
    }
    Ok(lines)
}

/// The kernel's threads that handle interrupts, with their ids.
fn threads(proc: &Path) -> io::Result<Vec<(Vec<u8>, i32)>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(proc)? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The thread may have ended.
        let Ok(comm) = fs::read(proc.join(&name).join("comm")) else {
            continue;
        };
        if comm.starts_with(b"irq/") {
            threads.push((comm.trim_ascii_end().to_vec(), pid));
        }
    }
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_and_their_threads() {
        let dir = tempfile::tempdir().unwrap();
        let (proc, sys) = (dir.path().join("proc"), dir.path().join("sys"));
        let write = |path: std::path::PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (irq, chip, actions) in [
            (0, "IO-APIC", "timer"),
            (9, "IO-APIC", ""),
            (24, "PCI-MSI", "virtio0-config-and-more,b"),
            (30, "(null)", "x"),
        ] {
            write(
                sys.join(format!("kernel/irq/{irq}/chip_name")),
                &format!("{chip}\n"),
            );
            write(
                sys.join(format!("kernel/irq/{irq}/actions")),
                &format!("{actions}\n"),
            );
        }
        write(proc.join("77/comm"), "irq/24-virtio0-\n");
        write(proc.join("78/comm"), "irq/24\n");
        write(proc.join("self/comm"), "irq/30-x\n");
        let found = find(&proc, &sys).unwrap();
        let found: Vec<_> = found.iter().map(Line::as_str).collect();
        assert_eq!(
            found,
            [
                r#"lttng_statedump_interrupt irq=0 name="IO-APIC" action="timer" tid=0"#,
                r#"lttng_statedump_interrupt irq=24 name="PCI-MSI" action="virtio0-config-and-more" tid=77"#,
                r#"lttng_statedump_interrupt irq=24 name="PCI-MSI" action="b" tid=0"#,
                r#"lttng_statedump_interrupt irq=30 name="unnamed_irq_chip" action="x" tid=0"#,
            ]
        );
    }
}
