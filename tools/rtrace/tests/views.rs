// SPDX-License-Identifier: GPL-2.0

//! The same trace in every view: each has the same system calls, of the same duration, and the same CPU time of
//! threads, whatever is lost.

#[path = "questions/machine.rs"]
#[allow(dead_code)]
mod machine;

use assert_cmd::Command;
use base64::prelude::{Engine, BASE64_STANDARD};
use flate2::read::ZlibDecoder;
use machine::{Loss, Random};
use parquet::file::reader::SerializedFileReader;
use parquet::record::Field;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use tempfile::TempDir;

/// By name: calls whose duration is known, and their durations in all, in nanoseconds.
type Calls = BTreeMap<String, (u64, u64)>;

fn add(calls: &mut Calls, name: &str, ns: u64) {
    let (count, total) = calls.entry(name.to_owned()).or_default();
    *count += 1;
    *total += ns;
}

/// `rtrace` with these arguments.
fn rtrace(arguments: &[&str], dir: &Path) -> Vec<u8> {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    let done = command.args(arguments).arg(dir).assert().success();
    done.get_output().stdout.clone()
}

fn report(dir: &Path) -> Calls {
    let json = rtrace(&["report", "--syscalls", "--json"], dir);
    let json: Value = serde_json::from_slice(&json).unwrap();
    let calls = json["syscalls"]["calls"].as_array().unwrap().iter();
    let timed = calls.filter(|call| call["timed"] != 0);
    let number = |call: &Value, key: &str| call[key].as_u64().unwrap();
    timed
        .map(|call| {
            let name = call["name"].as_str().unwrap().to_owned();
            (name, (number(call, "timed"), number(call, "total_ns")))
        })
        .collect()
}

/// A slice of the page: the kind of its lane, its length, and what it is.
type Slice = (String, u64, u64);

/// The index of the page, and its slices.
fn page(dir: &Path, out: &Path) -> (Value, Vec<Slice>) {
    let file = out.join("page.html");
    rtrace(&["report", "--html", file.to_str().unwrap()], dir);
    let page = fs::read_to_string(file).unwrap();
    let element = |name: &str| {
        let (_, rest) = page.split_once(&format!("id=\"{name}\">")).unwrap();
        rest.split_once("</script>").unwrap().0
    };
    let column = |name: &str| {
        let packed = BASE64_STANDARD.decode(element(name)).unwrap();
        let mut bytes = Vec::new();
        let mut reader = ZlibDecoder::new(packed.as_slice());
        reader.read_to_end(&mut bytes).unwrap();
        let (mut numbers, mut number, mut shift) = (Vec::new(), 0, 0);
        for byte in bytes {
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                numbers.push(number);
                (number, shift) = (0, 0);
            }
        }
        numbers
    };
    let index: Value = serde_json::from_str(element("trace")).unwrap();
    let lengths = column("column-slice-lengths");
    let values = column("column-slice-values");
    let mut columns = lengths.into_iter().zip(values);
    let mut slices = Vec::new();
    for lane in index["lanes"].as_array().unwrap() {
        let kind = lane["kind"].as_str().unwrap();
        for _ in 0..lane["slices"].as_u64().unwrap() {
            let (ns, value) = columns.next().unwrap();
            // The lowest bit says whether it stands for several.
            assert_eq!(value & 1, 0);
            slices.push((kind.to_owned(), ns, value >> 1));
        }
    }
    (index, slices)
}

/// The slices of the page's lanes of calls.
fn calls_of_page(dir: &Path, out: &Path) -> Calls {
    let (index, slices) = page(dir, out);
    let mut calls = Calls::new();
    for (_, ns, value) in slices.iter().filter(|(kind, ..)| kind == "calls") {
        let name = &index["calls"][(value >> 1) as usize];
        add(&mut calls, name.as_str().unwrap(), *ns);
    }
    calls
}

/// The trace events that are slices.
fn slices_of_chrome(dir: &Path) -> Vec<Value> {
    let json: Value = serde_json::from_slice(&rtrace(&["export", "chrome"], dir)).unwrap();
    let events = json["traceEvents"].as_array().unwrap().iter();
    events.filter(|event| event["ph"] == "X").cloned().collect()
}

fn ns(slice: &Value) -> u64 {
    (slice["dur"].as_f64().unwrap() * 1000.0).round() as u64
}

/// The slices on the tracks of threads that have a result.
fn calls_of_chrome(dir: &Path) -> Calls {
    let mut calls = Calls::new();
    for slice in slices_of_chrome(dir) {
        if slice["args"].get("ret").is_some() {
            add(&mut calls, slice["name"].as_str().unwrap(), ns(&slice));
        }
    }
    calls
}

/// The rows of a table.
fn rows(dir: &Path, out: &Path, table: &str) -> Vec<BTreeMap<String, Field>> {
    let out = out.join("tables");
    rtrace(&["export", "parquet", "-o", out.to_str().unwrap()], dir);
    let folder = out.join(table).join("host=nowhere/date=2023-11-14");
    let files = fs::read_dir(folder).unwrap();
    let rows = files.flat_map(|file| {
        let file = File::open(file.unwrap().path()).unwrap();
        SerializedFileReader::new(file).unwrap().into_iter()
    });
    rows.map(|row| row.unwrap().into_columns().into_iter().collect())
        .collect()
}

/// A number; none if the cell is empty.
fn number(cell: &Field) -> Option<i64> {
    cell.to_string().parse().ok()
}

/// The rows of the table `syscalls` that have a duration.
fn calls_of_table(dir: &Path, out: &Path) -> Calls {
    let mut calls = Calls::new();
    for row in rows(dir, out, "syscalls") {
        if let (Field::Str(name), Some(ns)) = (&row["name"], number(&row["duration_ns"])) {
            add(&mut calls, name, ns as u64);
        }
    }
    calls
}

/// By name: the lines of `rtrace trace` with a duration, which it rounds.
fn trace(dir: &Path) -> BTreeMap<String, u64> {
    let text = String::from_utf8(rtrace(&["trace", "-i"], dir)).unwrap();
    let mut calls = BTreeMap::new();
    for line in text.lines() {
        let (call, result) = line.split_once('(').unwrap_or((line, ""));
        let words: Vec<_> = call.split_whitespace().collect();
        if let ([_, _, "us" | "ms" | "s", _, name], true) = (&words[..], result.contains(" = ")) {
            *calls.entry((*name).to_owned()).or_default() += 1;
        }
    }
    calls
}

/// By thread: its time on all CPUs, in nanoseconds.
type Running = BTreeMap<i64, u64>;

fn sum(times: impl IntoIterator<Item = (i64, u64)>) -> Running {
    let mut running = Running::new();
    for (tid, ns) in times.into_iter().filter(|(_, ns)| *ns > 0) {
        *running.entry(tid).or_default() += ns;
    }
    running
}

/// The time of each row, in this field.
fn sum_of_rows(rows: &Value, field: &str) -> Running {
    let rows = rows.as_array().unwrap().iter();
    sum(rows.map(|row| (row["tid"].as_i64().unwrap(), row[field].as_u64().unwrap())))
}

#[test]
fn threads_run_for_the_same_time_in_every_view() {
    for seed in 0..8 {
        for loss in [Loss::Nothing, Loss::Packets, Loss::Events] {
            let (dir, out) = (TempDir::new().unwrap(), TempDir::new().unwrap());
            machine::write(dir.path(), &mut Random(seed), 4, 3, loss);
            let summary = rtrace(&["report", "--json"], dir.path());
            let summary: Value = serde_json::from_slice(&summary).unwrap();
            let summary = sum_of_rows(&summary["tasks"], "cpu_time_ns");
            assert!(!summary.is_empty(), "seed {seed}, {loss:?}");

            let threads = rtrace(&["report", "--threads", "--json"], dir.path());
            let threads: Value = serde_json::from_slice(&threads).unwrap();
            let threads = sum_of_rows(&threads["threads"]["threads"], "running_ns");
            let (index, slices) = page(dir.path(), out.path());
            let tasks = slices.iter().filter(|(kind, ..)| kind == "tasks");
            let page = sum(tasks.map(|(_, ns, thread)| {
                let thread = &index["threads"][*thread as usize];
                (thread["tid"].as_i64().unwrap(), *ns)
            }));
            let slices = slices_of_chrome(dir.path());
            let tasks = slices
                .iter()
                .filter_map(|slice| Some((slice["args"].get("tid")?.as_i64()?, ns(slice))));
            let chrome = sum(tasks);
            let table = sum(rows(dir.path(), out.path(), "slices").iter().map(|row| {
                let number = |name: &str| number(&row[name]).unwrap();
                (number("tid"), number("duration_ns") as u64)
            }));
            for (view, running) in [
                ("--threads", threads),
                ("page", page),
                ("chrome", chrome),
                ("tables", table),
            ] {
                assert_eq!(running, summary, "{view}, seed {seed}, {loss:?}");
            }
        }
    }
}

#[test]
fn calls_are_the_same_in_every_view() {
    for seed in 0..8 {
        for loss in [Loss::Nothing, Loss::Packets, Loss::Events] {
            let (dir, out) = (TempDir::new().unwrap(), TempDir::new().unwrap());
            machine::write(dir.path(), &mut Random(seed), 4, 3, loss);
            let report = report(dir.path());
            assert!(!report.is_empty(), "seed {seed}, {loss:?}");
            let views = [
                ("page", calls_of_page(dir.path(), out.path())),
                ("chrome", calls_of_chrome(dir.path())),
                ("tables", calls_of_table(dir.path(), out.path())),
            ];
            let counts = report
                .iter()
                .map(|(name, (count, _))| (name.clone(), *count));
            let counts: BTreeMap<_, _> = counts.collect();
            assert_eq!(trace(dir.path()), counts, "trace, seed {seed}, {loss:?}");
            for (view, calls) in views {
                assert_eq!(calls, report, "{view}, seed {seed}, {loss:?}");
            }
        }
    }
}
