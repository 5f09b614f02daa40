// SPDX-License-Identifier: GPL-2.0

//! The texts beside a trace: `.recording`, `.maps`, `.mappings`, `.symbols`. Each reader gets the same bytes.
//!
//! - `.recording`: an accepted text, written again and parsed, gives the same `Recording`; sums do not overflow;
//! - `.maps`: accepted maps can be shown in each form and order;
//! - `.mappings`: accepted mappings give an answer to any query;
//! - `.symbols`: a function is found only inside its range and its time.

use super::stats::tables;
use consumer::State;
use ctf::Clock;
use store::beside::{MAPPINGS, MAPS, SYMBOLS};
use store::{maps, Recording};
use symbols::{Mappings, Programs, Saved};
use uuid::Uuid;

const TRACE: Uuid = Uuid::from_bytes(synthetic::UUID);

const CLOCK: Clock = Clock {
    frequency: 1_000_000_000,
    offset_s: 0,
    offset: 0,
};

pub fn check(data: &[u8]) {
    recording(data);
    maps(data);
    mappings(data);
    symbols(data);
}

fn recording(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok((trace, recording)) = Recording::parse(text) else {
        return;
    };
    let lost = recording.totals(0).map(|totals| totals.lost);
    assert!(lost.is_none_or(|lost| lost >= recording.unwritten));
    let both = recording.clone().join(recording.clone());
    assert!(both.unwritten >= recording.unwritten);
    assert_eq!(both.is_from_start(), recording.is_from_start());
    // The end of a line removes one carriage return before it.
    if !trace.ends_with('\r') {
        let again = Recording::parse(&written(&trace, &recording));
        assert_eq!(again, Ok((trace, recording)));
    }
}

fn written(trace: &str, recording: &Recording) -> String {
    let state = match recording.state {
        State::Writing => "writing",
        State::Over => "over",
        State::Stopped => "stopped",
        State::Failed => "failed",
    };
    let part = recording.part.as_ref().map(ToString::to_string);
    format!(
        "trace {trace}\nstate {state}\nunwritten {}\n{}{}",
        recording.unwritten,
        part.unwrap_or_default(),
        recording.stats.as_ref().map(tables).unwrap_or_default(),
    )
}

fn maps(data: &[u8]) {
    let Ok(tables) = maps::read_lines(MAPS.lines(data), TRACE) else {
        return;
    };
    for mut table in tables {
        assert_eq!(table.columns[0], "count");
        let names: Vec<_> = table.keys.iter().chain(&table.columns).cloned().collect();
        for by in names.iter().map(|name| Some(name.as_str())).chain([None]) {
            analysis::maps::sort(&mut table, by);
        }
        let mut text = String::new();
        for rows in [0, 1, usize::MAX] {
            analysis::maps::write(&table, rows, &mut text).expect("a String");
        }
        let _ = analysis::maps::warnings(&table);
        let object = analysis::maps::MapObject::new(&table);
        assert_eq!(object.rows(), table.rows.len());
    }
}

fn mappings(data: &[u8]) {
    let Ok(Some(mappings)) = Mappings::parse(MAPPINGS.lines(data), TRACE, &CLOCK) else {
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

fn symbols(data: &[u8]) {
    let Ok(Some(saved)) = Saved::parse(SYMBOLS.lines(data), TRACE) else {
        return;
    };
    for address in [0, 0x10, 0xffff_ffff_8100_0000, u64::MAX] {
        for ns in [0, 1, 1 << 40, u64::MAX - 1] {
            let Some((image, symbol)) = saved.kernel.find(ns, address) else {
                continue;
            };
            assert!((image.from..image.until).contains(&ns));
            assert!(symbol.address <= address);
            assert!(!symbol.name.contains(char::is_control));
        }
    }
    for (_, names) in &saved.files {
        let functions = &names.functions;
        assert!(functions.is_sorted());
        let is_plain = |name: &str| !name.contains(char::is_control);
        assert!(functions.iter().all(|function| is_plain(&function.name)));
    }
}
