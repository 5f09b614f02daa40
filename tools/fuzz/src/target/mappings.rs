// SPDX-License-Identifier: GPL-2.0

//! The `.mappings` file of a trace. Accepted mappings give an answer to any query.

use ctf::Clock;
use symbols::{Mappings, Programs};
use uuid::Uuid;

const CLOCK: Clock = Clock {
    frequency: 1_000_000_000,
    offset_s: 0,
    offset: 0,
};

pub fn check(data: &[u8]) {
    let Ok(Some(mappings)) = Mappings::parse(data, Uuid::from_bytes(synthetic::UUID), &CLOCK)
    else {
        return;
    };
    assert!(mappings.changes.is_sorted_by_key(|(ns, _)| *ns));
    let files = mappings.files.len();
    assert!(files <= data.len());
    // No file of this machine is read: an input with the path of one is skipped.
    if mappings.files.iter().any(|file| file.path.starts_with('/')) {
        return;
    }
    let times: Vec<u64> = mappings.changes.iter().map(|(ns, _)| *ns).collect();
    let mut programs = Programs::new(mappings, Vec::new());
    for ns in times.into_iter().take(64) {
        for tid in [0, 7, 12] {
            for address in [0, 0x1000, 0x2fff, u64::MAX] {
                let _ = programs.find(tid, ns, address);
            }
        }
    }
}
