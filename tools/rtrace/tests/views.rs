// SPDX-License-Identifier: GPL-2.0

//! The same trace in every view. Each quantity has the same value in all views, even after losses.

#[path = "questions/machine.rs"]
#[allow(dead_code)]
mod machine;

mod schema;

use assert_cmd::Command;
use base64::prelude::{Engine, BASE64_STANDARD};
use flate2::read::ZlibDecoder;
use machine::{Channels, Loss, Random};
use parquet::file::reader::SerializedFileReader;
use parquet::record::Field;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use tempfile::TempDir;

/// Number of calls or interrupts by name, and their durations in all, in nanoseconds.
type Sums = BTreeMap<String, (u64, u64)>;

fn add(sums: &mut Sums, name: &str, ns: u64) {
    let (count, total) = sums.entry(name.to_owned()).or_default();
    *count += 1;
    *total += ns;
}

/// Runs `rtrace` with these arguments. Returns its output.
fn rtrace(arguments: &[&str], dir: &Path) -> Vec<u8> {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    let done = command.args(arguments).arg(dir).assert().success();
    done.get_output().stdout.clone()
}

/// Returns the calls in the answer to `--syscalls`.
fn calls_of(json: &Value) -> Sums {
    let calls = json["syscalls"]["calls"].as_array().unwrap().iter();
    let timed = calls.filter(|call| call["timed"] != 0);
    timed
        .map(|call| {
            let name = call["name"].as_str().unwrap().to_owned();
            (name, (unsigned(call, "timed"), unsigned(call, "total_ns")))
        })
        .collect()
}

/// A slice of the page: the kind of its lane, its length, and its value.
type Slice = (String, u64, u64);

/// Returns the index of the page, and its slices.
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
            // The lowest bit says whether the slice is mixed.
            assert_eq!(value & 1, 0);
            slices.push((kind.to_owned(), ns, value >> 1));
        }
    }
    (index, slices)
}

/// Returns the trace events that are slices.
fn slices_of_chrome(dir: &Path) -> Vec<Value> {
    let json: Value = serde_json::from_slice(&rtrace(&["export", "chrome"], dir)).unwrap();
    let events = json["traceEvents"].as_array().unwrap().iter();
    events.filter(|event| event["ph"] == "X").cloned().collect()
}

fn ns(slice: &Value) -> u64 {
    (slice["dur"].as_f64().unwrap() * 1000.0).round() as u64
}

/// Returns the rows of a table in the folder `to`.
fn read_rows(to: &Path, table: &str) -> Vec<BTreeMap<String, Field>> {
    let folder = to.join(table).join("host=nowhere/date=2023-11-14");
    let files = fs::read_dir(folder).unwrap();
    let rows = files.flat_map(|file| {
        let file = File::open(file.unwrap().path()).unwrap();
        SerializedFileReader::new(file).unwrap().into_iter()
    });
    rows.map(|row| row.unwrap().into_columns().into_iter().collect())
        .collect()
}

/// Returns a number; none if the cell is empty.
fn number(cell: &Field) -> Option<i64> {
    cell.to_string().parse().ok()
}

/// Returns, by name, the number of lines of `rtrace trace` with a duration. The command rounds durations.
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

/// Returns the sum of a field by thread.
fn sum_of_rows(rows: &Value, field: &str) -> Running {
    let rows = rows.as_array().unwrap().iter();
    sum(rows.map(|row| (row["tid"].as_i64().unwrap(), row[field].as_u64().unwrap())))
}

/// Returns the JSON of `rtrace report` with this question.
fn question(dir: &Path, option: &str) -> Value {
    schema::read(&rtrace(&["report", option, "--json"], dir))
}

/// Sums up rows with times above 0.
fn sums(rows: impl IntoIterator<Item = (String, u64)>) -> Sums {
    let mut sums = Sums::new();
    for (name, ns) in rows.into_iter().filter(|(_, ns)| *ns > 0) {
        add(&mut sums, &name, ns);
    }
    sums
}

fn times(sums: Sums) -> BTreeMap<String, u64> {
    sums.into_iter().map(|(name, (_, ns))| (name, ns)).collect()
}

/// Returns the rows of an answer.
fn answer<'a>(report: &'a Value, question: &str, table: &str) -> &'a [Value] {
    report[question][table].as_array().unwrap()
}

fn unsigned(row: &Value, field: &str) -> u64 {
    row[field]
        .as_u64()
        .unwrap_or_else(|| panic!("no {field} in {row}"))
}

/// All views with quantities in common.
struct Views<'a> {
    name: &'a str,
    dir: &'a Path,
    tables: TempDir,
    summary: Value,
    index: Value,
    slices: Vec<Slice>,
    chrome: Vec<Value>,
    /// `rtrace top`, all tables.
    top: Vec<Value>,
}

impl<'a> Views<'a> {
    fn of(name: &'a str, dir: &'a Path) -> Self {
        let tables = TempDir::new().unwrap();
        let (index, slices) = page(dir, tables.path());
        let top = rtrace(&["top", "--json", "-i"], dir);
        let top = String::from_utf8(top).unwrap();
        let to = tables.path().join("tables");
        rtrace(&["export", "parquet", "-o", to.to_str().unwrap()], dir);
        Self {
            name,
            dir,
            summary: serde_json::from_slice(&rtrace(&["report", "--json"], dir)).unwrap(),
            index,
            slices,
            chrome: slices_of_chrome(dir),
            top: top
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
            tables,
        }
    }

    fn rows(&self, table: &str) -> Vec<BTreeMap<String, Field>> {
        read_rows(&self.tables.path().join("tables"), table)
    }

    fn same<T: PartialEq + std::fmt::Debug>(&self, what: &str, first: &T, others: &[(&str, T)]) {
        for (view, other) in others {
            assert_eq!(other, first, "{what} in {view}, {}", self.name);
        }
    }

    fn cpus(&self) {
        let cpu = question(self.dir, "--cpu");
        let of = |rows: &[Value]| -> Vec<_> {
            let fields = ["cpu", "busy_ns", "idle_ns", "unknown_ns"];
            rows.iter()
                .map(|row| fields.map(|field| unsigned(row, field)))
                .collect()
        };
        let summary = of(self.summary["cpus"].as_array().unwrap());
        self.same(
            "CPU time",
            &summary,
            &[("--cpu", of(answer(&cpu, "cpu", "cpus")))],
        );
        for [cpu, busy, idle, unknown] in summary {
            let all = unsigned(&self.summary, "duration_ns");
            assert_eq!(busy + idle + unknown, all, "CPU {cpu}, {}", self.name);
        }
    }

    fn threads(&self) {
        let threads = question(self.dir, "--threads");
        let running = sum_of_rows(&self.summary["tasks"], "cpu_time_ns");
        assert!(!running.is_empty(), "{}", self.name);
        let tasks = self.slices.iter().filter(|(kind, ..)| kind == "tasks");
        let page = sum(tasks.map(|(_, ns, thread)| {
            let thread = &self.index["threads"][*thread as usize];
            (thread["tid"].as_i64().unwrap(), *ns)
        }));
        let tasks = self.chrome.iter();
        let chrome =
            sum(tasks.filter_map(|slice| Some((slice["args"].get("tid")?.as_i64()?, ns(slice)))));
        let table = sum(self.rows("slices").iter().map(|row| {
            let number = |name: &str| number(&row[name]).unwrap();
            (number("tid"), number("duration_ns") as u64)
        }));
        let top = self
            .top
            .iter()
            .flat_map(|table| answer_rows(&table["threads"]));
        let top = sum(top.map(|row| (row["tid"].as_i64().unwrap(), unsigned(row, "cpu_ns"))));
        let table_of = &threads["threads"]["threads"];
        self.same(
            "time on CPUs",
            &running,
            &[
                ("--threads", sum_of_rows(table_of, "running_ns")),
                ("the page", page),
                ("chrome", chrome),
                ("the table", table),
                ("top", top),
            ],
        );
        // Times in which threads do not run. The page has all of them in one lane.
        let doing = |is_it: fn(u64) -> bool| -> u64 {
            let states = self.slices.iter().filter(|(kind, ..)| kind == "states");
            states
                .filter(|(_, _, value)| is_it(value & 0xf))
                .map(|(_, ns, _)| ns)
                .sum()
        };
        let all = |field: &str| -> u64 { sum_of_rows(table_of, field).values().sum() };
        self.same(
            "time woken",
            &all("runnable_woken_ns"),
            &[("the page", doing(|doing| doing == 1))],
        );
        self.same(
            "time preempted",
            &all("runnable_sent_off_ns"),
            &[("the page", doing(|doing| doing == 2))],
        );
        self.same(
            "time blocked",
            &all("blocked_ns"),
            &[("the page", doing(|doing| doing >= 3))],
        );
    }

    fn waits(&self) {
        let latency = question(self.dir, "--latency");
        let latency = &latency["latency"];
        let table = self.rows("wakeups");
        let of_table = table
            .iter()
            .map(|row| number(&row["duration_ns"]).unwrap() as u64);
        let top = self
            .top
            .iter()
            .flat_map(|table| answer_rows(&table["threads"]));
        let waits = (unsigned(latency, "timed"), unsigned(latency, "total_ns"));
        assert!(waits.0 > 0, "{}", self.name);
        self.same(
            "waits",
            &waits,
            &[("the table", (table.len() as u64, of_table.sum()))],
        );
        let woken = top.map(|row| unsigned(row, "wakeups")).sum();
        self.same("wake-ups", &waits.0, &[("top", woken)]);
    }

    fn calls(&self) {
        let json = question(self.dir, "--syscalls");
        let report = calls_of(&json);
        assert!(!report.is_empty(), "{}", self.name);
        let mut page = Sums::new();
        for (_, ns, value) in self.slices.iter().filter(|(kind, ..)| kind == "calls") {
            let name = &self.index["calls"][(value >> 1) as usize];
            add(&mut page, name.as_str().unwrap(), *ns);
        }
        let mut chrome = Sums::new();
        for slice in self
            .chrome
            .iter()
            .filter(|slice| slice["args"].get("ret").is_some())
        {
            add(&mut chrome, slice["name"].as_str().unwrap(), ns(slice));
        }
        let mut table = Sums::new();
        for row in self.rows("syscalls") {
            if let (Field::Str(name), Some(ns)) = (&row["name"], number(&row["duration_ns"])) {
                add(&mut table, name, ns as u64);
            }
        }
        self.same(
            "calls",
            &report,
            &[("the page", page), ("chrome", chrome), ("the table", table)],
        );
        let rows = answer(&json, "syscalls", "calls");
        let all = rows.iter().map(|call| {
            let name = call["name"].as_str().unwrap().to_owned();
            (name, (unsigned(call, "calls"), unsigned(call, "errors")))
        });
        let mut table = Sums::new();
        for row in self.rows("syscalls") {
            if let Field::Str(name) = &row["name"] {
                add(&mut table, name, u64::from(row["error"] != Field::Null));
            }
        }
        self.same("calls and errors", &all.collect(), &[("the table", table)]);
        let counts: BTreeMap<_, _> = report
            .iter()
            .map(|(name, (count, _))| (name.clone(), *count))
            .collect();
        self.same("timed calls", &counts, &[("trace", trace(self.dir))]);
        let begun: u64 = answer(&json, "syscalls", "calls")
            .iter()
            .map(|call| unsigned(call, "calls"))
            .sum();
        let unknown = self
            .top
            .iter()
            .map(|table| unsigned(table, "unknown_calls"));
        let top = self
            .top
            .iter()
            .flat_map(|table| answer_rows(&table["threads"]));
        let top = top.map(|row| unsigned(row, "calls")).chain(unknown).sum();
        self.same("calls begun", &begun, &[("top", top)]);
    }

    fn interrupts(&self) {
        let report = question(self.dir, "--irq");
        let rows = answer(&report, "irq", "interrupts");
        let name = |row: &Value| {
            format!(
                "{} {}",
                row["kind"].as_str().unwrap(),
                row["name"].as_str().unwrap()
            )
        };
        let irq: Sums = rows
            .iter()
            .map(|row| {
                (
                    name(row),
                    (unsigned(row, "timed"), unsigned(row, "total_ns")),
                )
            })
            .collect();
        assert!(!irq.is_empty(), "{}", self.name);
        let kind = |is_hard| if is_hard { "hard" } else { "soft" };
        let page = self
            .slices
            .iter()
            .filter(|(lane, ..)| lane == "hard" || lane == "soft");
        let page = sums(page.map(|(_, ns, value)| {
            let source = &self.index["interrupts"][*value as usize];
            let kind = kind(source["is_hard"] == true);
            (format!("{kind} {}", source["name"].as_str().unwrap()), *ns)
        }));
        let chrome = self.chrome.iter().filter_map(|slice| {
            let is_hard = slice["args"].get("irq").is_some();
            let is_soft = slice["args"].get("softirq").is_some();
            let name = format!("{} {}", kind(is_hard), slice["name"].as_str().unwrap());
            (is_hard || is_soft).then(|| (name, ns(slice)))
        });
        let table = self.rows("interrupts");
        let (mut of_table, mut own) = (Sums::new(), Sums::new());
        for row in &table {
            let (Field::Str(kind), Field::Str(name)) = (&row["kind"], &row["name"]) else {
                panic!("{row:?}");
            };
            let ns = |column: &str| number(&row[column]).unwrap() as u64;
            add(&mut of_table, &format!("{kind} {name}"), ns("duration_ns"));
            add(&mut own, kind, ns("own_ns"));
        }
        self.same(
            "interrupts",
            &irq,
            &[
                ("the page", page),
                ("chrome", sums(chrome)),
                ("the table", of_table),
            ],
        );
        let cpu = question(self.dir, "--cpu");
        let cpu = answer(&cpu, "cpu", "cpus").iter();
        let cpu = cpu.flat_map(|row| {
            ["hard", "soft"].map(|kind| (kind.to_owned(), unsigned(row, &format!("{kind}_ns"))))
        });
        self.same(
            "time in interrupts",
            &times(own),
            &[("--cpu", times(sums(cpu)))],
        );
    }

    /// Checks events lost, packets missing between others, and packets missing before the first.
    fn losses(&self) {
        let field = |name: &str| unsigned(&self.summary, name);
        let [lost, between, before] = ["lost", "packets_lost", "packets_before"].map(field);
        let page = answer_rows(&self.index["gaps"]);
        let sum = |rows: &[Value], field: &str| -> u64 {
            rows.iter().map(|row| unsigned(row, field)).sum()
        };
        let page = (sum(page, "events"), sum(page, "packets"));
        let top = (sum(&self.top, "lost"), sum(&self.top, "packets_lost"));
        let text = String::from_utf8(rtrace(&["trace", "-i"], self.dir)).unwrap();
        let mut trace = (0, 0);
        for (_, line) in text.lines().filter_map(|line| line.split_once(" LOST ")) {
            let words: Vec<_> = line.split_whitespace().collect();
            for pair in words.windows(2) {
                match (pair[0].parse::<u64>(), pair[1]) {
                    (Ok(count), "events") => trace.0 += count,
                    (Ok(count), "packets") => trace.1 += count,
                    _ => {}
                }
            }
        }
        self.same(
            "losses",
            &(lost, between + before),
            &[("the page", page), ("top", top), ("trace", trace)],
        );
        let table = self.rows("losses");
        let of = |column: &str| -> u64 {
            table
                .iter()
                .map(|row| number(&row[column]).unwrap() as u64)
                .sum()
        };
        self.same(
            "losses",
            &(lost, between),
            &[("the table", (of("events"), of("packets")))],
        );
    }
}

fn answer_rows(rows: &Value) -> &[Value] {
    rows.as_array().unwrap()
}

#[test]
fn every_quantity_is_the_same_in_every_view() {
    for seed in 0..4 {
        for channels in [Channels::One, Channels::Three] {
            for loss in [Loss::Nothing, Loss::Packets, Loss::Events] {
                let dir = TempDir::new().unwrap();
                machine::write_with_interrupts(dir.path(), &mut Random(seed), channels, loss);
                let name = format!("seed {seed}, {channels:?}, {loss:?}");
                let views = Views::of(&name, dir.path());
                views.cpus();
                views.threads();
                views.waits();
                views.calls();
                views.interrupts();
                views.losses();
            }
        }
    }
}
