// SPDX-License-Identifier: GPL-2.0

//! `rtrace recover` on a tree of files in place of the kernel's.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use rtrace_abi::header::Layout;
use std::fs;
use std::path::{Path, PathBuf};
use synthetic::{metadata, region, PacketBuilder, Slot, UUID};
use tempfile::TempDir;

const BEGIN: u64 = 1 << 40;

/// A session whose first channel has this memory of an earlier boot.
fn tree(memory: &[u8]) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("rtrace");
    let channel = root.join("sessions/default/channels/channel0");
    fs::create_dir_all(&channel).unwrap();
    fs::write(root.join("enable"), "0\n").unwrap();
    fs::write(channel.join("recovered"), memory).unwrap();
    fs::write(channel.join("free_recovered"), "").unwrap();
    (dir, channel.join("free_recovered"))
}

fn recover(tree: &Path, options: &[&str]) -> Command {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.arg("--debugfs").arg(tree);
    command.arg("recover").args(options);
    command.arg("-o").arg(tree.join("trace"));
    command
}

/// The memory of a buffer with two packets. If it is damaged, the second belongs to another CPU.
fn memory(is_damaged: bool) -> Vec<u8> {
    let packet = |cpu, sequence| {
        let begin = BEGIN + 1000 * sequence;
        let packet = PacketBuilder::new(Layout::Large, cpu, sequence, begin);
        packet.softirq(begin, 1).close(begin + 999, 4096)
    };
    let second = if is_damaged { 4 } else { 3 };
    let slots = vec![
        Slot::Finished(packet(3, 0)),
        Slot::Finished(packet(second, 1)),
    ];
    region(&metadata(UUID, Layout::Large), &[(3, slots)])
}

#[test]
fn the_memory_is_freed_only_if_all_of_it_was_read() {
    let (whole, free) = tree(&memory(false));
    recover(whole.path(), &[]).assert().success();
    assert_eq!(fs::read_to_string(free).unwrap(), "1\n");

    let (kept, free) = tree(&memory(false));
    let mut command = recover(kept.path(), &["--keep-memory"]);
    command.assert().success().stderr(contains("free").not());
    assert_eq!(fs::read_to_string(free).unwrap(), "");

    let (damaged, free) = tree(&memory(true));
    let how = format!("`echo 1 > {}` deletes it", free.display());
    let assert = recover(damaged.path(), &[]).assert().success();
    assert.stderr(
        contains("damaged: channel0_cpu3: a packet of another stream")
            .and(contains("parts are damaged").and(contains(how))),
    );
    assert_eq!(fs::read_to_string(free).unwrap(), "");
}
