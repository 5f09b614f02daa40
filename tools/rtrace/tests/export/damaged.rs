// SPDX-License-Identifier: GPL-2.0

//! All formats, for damaged traces. Each format exports the undamaged rest, and the exit code is an error.

use super::stacks::stacks;
use super::{export, known};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const FORMATS: [&str; 5] = ["perfetto", "chrome", "csv", "text", "perf-script"];
/// Formats that need call stacks.
const OF_STACKS: [&str; 3] = ["folded", "flamegraph", "pprof"];
/// Formats that are a folder.
const FOLDERS: [&str; 2] = ["parquet", "lttng"];

/// Writes a trace with call stacks, of two CPUs.
fn stacks_of_two(dir: &Path) {
    const CPU: usize = rtrace_abi::packet::PacketHeader::SIZE - 4;
    stacks(dir);
    let mut bytes = fs::read(dir.join("channel0_cpu0")).unwrap();
    bytes[CPU] = 1;
    fs::write(dir.join("channel0_cpu1"), bytes).unwrap();
}

/// Exports a trace that may be damaged. Returns whether it is damaged.
fn is_damaged(format: &str, dir: &Path, what: &str) -> bool {
    let out = TempDir::new().unwrap();
    let to = out.path().join("to");
    let options = [format, "-o", to.to_str().unwrap()];
    let output = export(&options, dir).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(to.exists(), "{what}: {format}: {said}");
    match output.status.code() {
        Some(0) => false,
        Some(1) => {
            assert!(said.contains(": at byte "), "{what}: {format}: {said}");
            assert!(said.contains("the trace is damaged: "), "{what}: {said}");
            true
        }
        code => panic!("{what}: {format}: {code:?}: {said}"),
    }
}

/// A bit of a stream is flipped.
#[test]
fn a_damaged_stream_is_exported() {
    for (formats, write) in [
        (&FORMATS[..], known as fn(&Path)),
        (&OF_STACKS, stacks_of_two),
        (&FOLDERS[..1], known),
    ] {
        let (mut whole, mut damaged) = (0, 0);
        let dir = TempDir::new().unwrap();
        write(dir.path());
        let path = dir.path().join("channel0_cpu0");
        let bytes = fs::read(&path).unwrap();
        let places = (0..bytes.len()).step_by(bytes.len() / 120 + 1);
        for (format, at) in formats.iter().cycle().zip(places) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            fs::write(&path, bytes).unwrap();
            match is_damaged(format, dir.path(), &at.to_string()) {
                false => whole += 1,
                true => damaged += 1,
            }
        }
        assert!(whole > 5 && damaged > 5, "{formats:?}: {whole} {damaged}");
    }
}

/// A stream of zeros, and a description with a zeroed part, for every format.
#[test]
fn every_format_shows_the_rest() {
    for (formats, write) in [
        (&FORMATS[..], known as fn(&Path)),
        (&OF_STACKS, stacks_of_two),
        (&FOLDERS, known),
    ] {
        for format in formats {
            let dir = TempDir::new().unwrap();
            write(dir.path());
            assert!(!is_damaged(format, dir.path(), "whole"));
            let path = dir.path().join("metadata");
            let whole = fs::read(&path).unwrap();
            let text = String::from_utf8(whole.clone()).unwrap();
            let mut bytes = whole.clone();
            let at = text.find("\"irq_handler_exit\"").unwrap();
            bytes[at..at + 8].fill(0);
            fs::write(&path, bytes).unwrap();
            assert!(is_damaged(format, dir.path(), "metadata"), "{format}");
            fs::write(&path, whole).unwrap();
            let path = dir.path().join("channel0_cpu0");
            let len = fs::metadata(&path).unwrap().len() as usize;
            fs::write(&path, vec![0; len]).unwrap();
            assert!(is_damaged(format, dir.path(), "zeros"), "{format}");
        }
    }
}

/// The lines of errors have the place of the damage.
#[test]
fn a_damaged_place_is_among_the_rows() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let path = dir.path().join("channel0_cpu1");
    let mut bytes = fs::read(&path).unwrap();
    bytes[0] = 0;
    fs::write(&path, bytes).unwrap();
    for format in ["csv", "text", "chrome"] {
        let output = export(&[format], dir.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("[DAMAGED "), "{format}: {text}");
    }
}

/// Losses and damage before a range of time do not count for the range.
#[test]
fn a_range_has_its_own_losses() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let said = |options: &[&str]| {
        let mut output = export(&[&["csv"], options].concat(), dir.path());
        let output = output.assert().success().get_output().clone();
        let rows = String::from_utf8(output.stdout).unwrap();
        (rows, String::from_utf8(output.stderr).unwrap())
    };
    let (rows, all) = said(&[]);
    assert!(rows.contains("LOST") && all.contains(" 3 lost"), "{all}");
    let (rows, late) = said(&["--from", "+0.000095s"]);
    assert!(!rows.contains("LOST"), "{rows}");
    assert!(
        !late.contains("lost") && !late.contains("missing"),
        "{late}"
    );
    let (rows, early) = said(&["--to", "+0.000015s"]);
    assert!(!rows.contains("LOST"), "{rows}");
    assert!(!early.contains("lost"), "{early}");
}
