// SPDX-License-Identifier: GPL-2.0

//! Measures the time of each case with Criterion, and counts its instructions.
//!
//! The time is the CPU time of the writing thread. So other programs on a busy machine do not count, except for
//! their effect on the caches.
//!
//! Criterion keeps its samples in CRITERION_HOME. The other results, instructions and counts of records, are
//! appended to RTRACE_NATIVE_FACTS, one line of JSON for each case.

use anyhow::Result;
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use rtrace_native::cases::{cases, Case};
use rtrace_native::machine::count_instructions;
use rtrace_native::writer::{cpu_time, pin, Outcome, Writer, WRITER_CPU};
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

/// Many short samples, of some milliseconds: the fastest one was hardly disturbed.
const SAMPLES: usize = 200;
/// Few, because the report uses the samples themselves.
const RESAMPLES: usize = 1001;
const WARM_UP: Duration = Duration::from_millis(300);
const MEASURE: Duration = Duration::from_millis(600);

#[derive(Serialize)]
struct Facts {
    scenario: &'static str,
    writer: &'static str,
    bytes: u64,
    /// Number per record.
    instructions: Option<f64>,
    outcome: Outcome,
}

fn main() -> Result<()> {
    pin(WRITER_CPU)?;
    let mut criterion = Criterion::default()
        .sample_size(SAMPLES)
        .warm_up_time(WARM_UP)
        .measurement_time(MEASURE)
        .nresamples(RESAMPLES)
        .configure_from_args();
    for case in cases()? {
        measure(&mut criterion, &case)?;
    }
    criterion.final_summary();
    Ok(())
}

fn measure(criterion: &mut Criterion, case: &Case) -> Result<()> {
    let mut writer: Option<Box<dyn Writer>> = None;
    let mut failed = None;
    let mut group = criterion.benchmark_group(case.scenario.name());
    // Each sample has the same number of records, so the shortest one is as good a measure as the median.
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Bytes(case.bytes));
    group.bench_function(BenchmarkId::new(case.writer, case.bytes), |bencher| {
        if writer.is_none() {
            match (case.make)() {
                Ok(made) => writer = Some(made),
                Err(why) => failed = Some(why),
            }
        }
        bencher.iter_custom(|records| {
            let start = cpu_time();
            if let Some(writer) = &mut writer {
                writer.fire(records);
            }
            cpu_time() - start
        });
    });
    group.finish();
    if let Some(why) = failed {
        return Err(why.context(format!("{case:?}")));
    }
    // There is no writer if the command line's filter left the case out.
    let Some(mut writer) = writer else {
        return Ok(());
    };
    let instructions = match case.scenario.is_quiet() {
        true => Some(instructions(case, writer.as_mut())?),
        false => None,
    };
    let outcome = writer
        .finish()
        .map_err(|why| why.context(format!("{case:?}")))?;
    keep(&Facts {
        scenario: case.scenario.name(),
        writer: case.writer,
        bytes: case.bytes,
        instructions,
        outcome,
    })
}

/// Instructions per record: the difference between more and fewer records, so that the code around them does
/// not count. Returns the minimum of several attempts: if the machine stops us for long, a record needs the
/// extended header.
fn instructions(case: &Case, writer: &mut dyn Writer) -> Result<f64> {
    const FEW: u64 = 10;
    const TRIES: usize = 2;
    let more = case.scenario.round();
    let mut least = [u64::MAX; 2];
    for _ in 0..TRIES {
        for (least, records) in least.iter_mut().zip([FEW, FEW + more]) {
            *least = count_instructions(&mut || writer.fire(records))?.min(*least);
        }
    }
    Ok((least[1] as f64 - least[0] as f64) / more as f64)
}

fn keep(facts: &Facts) -> Result<()> {
    let Some(path) = std::env::var_os("RTRACE_NATIVE_FACTS") else {
        return Ok(());
    };
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{}", serde_json::to_string(facts)?)?;
    Ok(())
}
