// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --irq`.

use super::{forget, json, packet, report, row, write, US};
use predicates::prelude::*;
use predicates::str::contains;
use std::path::Path;
use tempfile::TempDir;

/// Writes a trace. On CPU 0 the disk interrupts the timer's soft interrupt for 4 of its 20 us. Two handlers
/// share number 9. On CPU 1 the disk takes 2 us, and an interrupt older than the trace ends.
fn known(dir: &Path) {
    let zero = packet(0, 0, 0)
        .softirq(10 * US, 1)
        .irq(14 * US, 24, "disk")
        .irq_exit(18 * US, 24)
        .softirq_exit(30 * US, 1)
        .irq(40 * US, 9, "acpi")
        .irq_exit(41 * US, 9)
        .irq(41 * US, 9, "other")
        .irq_exit(47 * US, 9)
        .softirq(50 * US, 12)
        .close(100 * US, 8);
    let one = packet(1, 0, 0)
        .irq_exit(5 * US, 24)
        .irq(20 * US, 24, "disk")
        .irq_exit(22 * US, 24)
        .close(100 * US, 8);
    write(dir, &[(0, vec![zero]), (1, vec![one])]);
}

#[test]
fn handlers_are_counted_and_timed() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let answer = &json(&["--irq"], dir.path())["irq"];
    assert_eq!(answer["hard_recorded"], true);
    assert_eq!(answer["soft_recorded"], true);
    let rows = &answer["interrupts"];
    assert_eq!(rows.as_array().unwrap().len(), 4);
    for (name, kind, number, times, total, max) in [
        ("TIMER", "soft", 1, 1, 20_000, 20_000),
        ("disk", "hard", 24, 2, 6_000, 4_000),
        ("acpi", "hard", 9, 1, 1_000, 1_000),
        ("other", "hard", 9, 1, 6_000, 6_000),
    ] {
        let row = row(rows, "name", name);
        assert_eq!(row["kind"], kind, "{row}");
        assert_eq!(row["number"], number, "{row}");
        assert_eq!(row["timed"], times, "{row}");
        assert_eq!(row["total_ns"], total, "{row}");
        assert_eq!(row["max_ns"], max, "{row}");
    }
    report(&["--irq"], dir.path())
        .assert()
        .success()
        .stdout(contains("         2     6.0 us     3.0 us     2.0 us     4.0 us     4.0 us     4.0 us  hard 24 disk\n"))
        .stdout(contains("not in the trace").not());
}

#[test]
fn what_the_trace_lacks_is_said() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    // A trace without interrupts.
    write(dir.path(), &[(0, vec![]), (1, vec![])]);
    forget(dir.path(), "irq_softirq_exit");
    report(&["--irq"], dir.path())
        .assert()
        .success()
        .stdout(contains("No interrupt was handled"))
        .stdout(contains(
            "Soft interrupts are not in the trace: `rtrace record -e 'irq_softirq_*'`",
        ));
    forget(dir.path(), "irq_handler_entry");
    report(&["--irq"], dir.path())
        .assert()
        .code(125)
        .stderr(contains("--irq needs irq_handler_entry"))
        .stderr(contains("`rtrace record -e irq`"));
}

/// An interrupt has no duration in these cases:
/// - a packet is missing within it;
/// - its packet has a loss;
/// - an event within it is missing, although the trace records no loss.
#[test]
fn no_handler_is_timed_across_a_loss() {
    let dir = TempDir::new().unwrap();
    let packets = vec![
        packet(0, 0, 0).irq(10 * US, 24, "disk").close(11 * US, 8),
        packet(0, 2, 20 * US)
            .irq_exit(30 * US, 24)
            .irq(31 * US, 24, "disk")
            .irq_exit(32 * US, 24)
            .close(40 * US, 8),
        packet(0, 3, 50 * US)
            .discarded(1)
            .irq(51 * US, 24, "disk")
            .irq_exit(59 * US, 24)
            .close(60 * US, 8),
        packet(0, 4, 70 * US)
            .discarded(1)
            .irq(71 * US, 24, "disk")
            .softirq_exit(72 * US, 1)
            .irq_exit(79 * US, 24)
            .close(80 * US, 8),
    ];
    write(dir.path(), &[(0, packets)]);
    let rows = &json(&["--irq"], dir.path())["irq"]["interrupts"];
    assert_eq!(rows[0]["timed"], 1);
    assert_eq!(rows[0]["total_ns"], 1_000);
}
