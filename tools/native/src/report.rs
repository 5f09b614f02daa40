// SPDX-License-Identifier: GPL-2.0

//! Makes a table and JSON of the results of benches/native.rs.
//!
//! Usage: rtrace-native-report WORK OUT.json COMMIT WHY: WORK holds Criterion's samples and the
//! facts; WHY says why lttng-ust was left out, or is empty.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The other results of a case, beside its times.
#[derive(Deserialize)]
struct Fact {
    scenario: String,
    writer: String,
    bytes: u64,
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// Criterion's sample.json.
#[derive(Deserialize)]
struct Sample {
    iters: Vec<f64>,
    times: Vec<f64>,
}

/// A line of the table.
#[derive(Serialize)]
struct Row {
    scenario: String,
    writer: String,
    bytes: u64,
    ns_min: f64,
    ns_median: f64,
    /// From the shortest time, like all fields below.
    records_per_second: f64,
    /// [`None`] if nothing is written.
    gb_per_second: Option<f64>,
    /// Time divided by that of a memcpy of the same bytes.
    times_memcpy: Option<f64>,
    /// lttng-ust's time in the same scenario with the same clock, divided by this one's.
    lttng_ust_takes_times: Option<f64>,
    #[serde(flatten)]
    facts: BTreeMap<String, Value>,
}

#[derive(Serialize)]
struct Report {
    commit: String,
    processor: String,
    kernel: String,
    load: String,
    lttng_ust: Option<String>,
    lttng_ust_left_out: Option<String>,
    rows: Vec<Row>,
}

/// The order of the table.
const SCENARIOS: [(&str, &str); 6] = [
    ("overwrite", "flight recorder, 4 x 1 MiB, going round"),
    (
        "switch",
        "flight recorder, 4 x 4 KiB: a sub-buffer each 180 records",
    ),
    ("nested", "every other record in the middle of another"),
    (
        "signal",
        "a signal handler records, too, 10000 times a second",
    ),
    (
        "reader",
        "as overwrite, while a reader on another CPU moves packets to a file",
    ),
    ("full", "discard mode, the buffer is full: a refused record"),
];
const WRITERS: [&str; 6] = [
    "memcpy",
    "memcpy+tsc",
    "rtrace-tsc",
    "lttng-ust-tsc",
    "rtrace-mono",
    "lttng-ust-mono",
];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [work, out, commit, why] = &arguments[..] else {
        anyhow::bail!("usage: rtrace-native-report WORK OUT.json COMMIT WHY");
    };
    let work = Path::new(work);
    let report = Report {
        commit: commit.clone(),
        processor: processor()?,
        kernel: line("/proc/sys/kernel/osrelease")?,
        load: line("/proc/loadavg")?,
        lttng_ust: fs::read_to_string(work.join("lttng-version"))
            .ok()
            .map(|version| version.trim().to_owned()),
        lttng_ust_left_out: (!why.is_empty()).then(|| why.clone()),
        rows: rows(work)?,
    };
    print(&report);
    fs::write(out, serde_json::to_string_pretty(&report)? + "\n")
        .with_context(|| format!("cannot write {out}"))
}

fn line(path: &str) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    Ok(text.trim().to_owned())
}

fn processor() -> Result<String> {
    let info = line("/proc/cpuinfo")?;
    let field = |name: &str| {
        let value = info.lines().find(|line| line.starts_with(name));
        value
            .and_then(|line| line.split(": ").nth(1))
            .unwrap_or("?")
    };
    Ok(format!(
        "{} (family {} model {}, {} MHz), {} CPUs",
        field("model name"),
        field("cpu family"),
        field("model\t"),
        field("cpu MHz"),
        std::thread::available_parallelism()?
    ))
}

fn rows(work: &Path) -> Result<Vec<Row>> {
    let path = work.join("facts");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
    let mut cases: BTreeMap<_, BTreeMap<String, Value>> = BTreeMap::new();
    for line in text.lines() {
        let fact: Fact = serde_json::from_str(line)?;
        let key = (fact.scenario, fact.writer, fact.bytes);
        cases.entry(key).or_default().extend(fact.more);
    }
    let mut rows = Vec::new();
    for ((scenario, writer, bytes), facts) in cases {
        let (ns_min, ns_median) = times(work, &scenario, &writer, bytes)?;
        rows.push(Row {
            ns_min,
            ns_median,
            records_per_second: 1e9 / ns_min,
            gb_per_second: (scenario != "full").then_some(bytes as f64 / ns_min),
            times_memcpy: None,
            lttng_ust_takes_times: None,
            scenario,
            writer,
            bytes,
            facts,
        });
    }
    compare(&mut rows);
    rows.sort_by_key(|row| {
        let scenario = SCENARIOS.iter().position(|(name, _)| *name == row.scenario);
        let writer = WRITERS.iter().position(|name| *name == row.writer);
        (scenario, row.bytes, writer)
    });
    Ok(rows)
}

/// The shortest and the median time per record.
fn times(work: &Path, scenario: &str, writer: &str, bytes: u64) -> Result<(f64, f64)> {
    let path = work.join(format!(
        "criterion/{scenario}/{writer}/{bytes}/new/sample.json"
    ));
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
    let sample: Sample = serde_json::from_str(&text)?;
    let mut each: Vec<f64> = sample
        .times
        .iter()
        .zip(&sample.iters)
        .map(|(time, records)| time / records)
        .collect();
    each.sort_by(f64::total_cmp);
    let min = *each.first().context("no samples")?;
    Ok((min, each[each.len() / 2]))
}

fn compare(rows: &mut [Row]) {
    let known: BTreeMap<_, f64> = rows
        .iter()
        .map(|row| {
            let key = (row.scenario.clone(), row.writer.clone(), row.bytes);
            (key, row.ns_min)
        })
        .collect();
    let time = |scenario: &str, writer: &str, bytes: u64| {
        known
            .get(&(scenario.to_owned(), writer.to_owned(), bytes))
            .copied()
    };
    for row in rows {
        if row.scenario != "full" {
            row.times_memcpy =
                time("overwrite", "memcpy", row.bytes).map(|memcpy| row.ns_min / memcpy);
        }
        if let Some(clock) = row.writer.strip_prefix("rtrace-") {
            let rival = format!("lttng-ust-{clock}");
            row.lttng_ust_takes_times =
                time(&row.scenario, &rival, row.bytes).map(|rival| rival / row.ns_min);
        }
    }
}

fn print(report: &Report) {
    println!("processor: {}", report.processor);
    println!("kernel:    {}, load {}", report.kernel, report.load);
    match (&report.lttng_ust, &report.lttng_ust_left_out) {
        (_, Some(why)) => println!("lttng-ust: left out, {why}"),
        (Some(version), None) => println!("lttng-ust: {version}"),
        (None, None) => {}
    }
    println!("rtrace:    {}", report.commit);
    for (scenario, what) in SCENARIOS {
        let mut bytes = 0;
        for row in report.rows.iter().filter(|row| row.scenario == scenario) {
            if bytes == 0 {
                println!("\n{scenario}: {what}");
                println!(
                    "{:5}  {:14} {:>8} {:>8} {:>7} {:>10} {:>7} {:>8} {:>9}  lost",
                    "bytes",
                    "writer",
                    "ns min",
                    "median",
                    "instr",
                    "records/s",
                    "GB/s",
                    "x memcpy",
                    "lttng-ust"
                );
            }
            let size = if bytes == row.bytes {
                String::new()
            } else {
                row.bytes.to_string()
            };
            bytes = row.bytes;
            print_row(&size, row);
        }
    }
    println!(
        "
ns min: CPU time of the writing thread, the fastest of 200 samples, which the other columns
go by; median: that of all samples.
instr: instructions per record in user mode, single-stepped; x memcpy: time as a multiple of
copying as many bytes; lttng-ust: its time as a multiple of ours, same clock. tsc and mono are
the clocks: rdtsc and clock_gettime(CLOCK_MONOTONIC), the latter lttng-ust's default."
    );
}

fn print_row(size: &str, row: &Row) {
    let times = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.1}x"));
    let instructions = row.facts.get("instructions").and_then(Value::as_f64);
    println!(
        "{:>5}  {:14} {:8.1} {:8.1} {:>7} {:9.1}M {:>7} {:>8} {:>9}  {}",
        size,
        row.writer,
        row.ns_min,
        row.ns_median,
        instructions.map_or(String::new(), |count| format!("{count:.1}")),
        row.records_per_second / 1e6,
        row.gb_per_second
            .map_or(String::new(), |rate| format!("{rate:.2}")),
        times(row.times_memcpy),
        times(row.lttng_ust_takes_times),
        lost(row)
    );
}

/// The share of lost records, if there were any; or that of read records, if there was a reader.
fn lost(row: &Row) -> String {
    let outcome = |name: &str| row.facts.get("outcome")?.get(name)?.as_f64();
    let discarded = row.facts.get("discarded").and_then(Value::as_f64);
    if let (Some(fired), Some(read)) = (outcome("fired"), outcome("read")) {
        if read > 0.0 {
            return format!("{:.0}% read", 100.0 * read / fired);
        }
    }
    match (outcome("fired"), discarded.or(outcome("lost"))) {
        (Some(fired), Some(lost)) if lost > 0.0 => format!("{:.1}%", 100.0 * lost / fired),
        _ => String::new(),
    }
}
