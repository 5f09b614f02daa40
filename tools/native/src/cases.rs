// SPDX-License-Identifier: GPL-2.0

//! The writers to measure, in several scenarios.

use crate::writer::{Scenario, Writer};
use crate::{memcpy, rtrace, ust};
use anyhow::{Context, Result};
use rtrace_record::clock::TraceClock;
use rtrace_record::format::{CompactMonotonic, CompactTsc};

/// A writer in a scenario.
pub struct Case {
    /// The scenario.
    pub scenario: Scenario,
    /// The writer's name.
    pub writer: &'static str,
    /// Size of a record in bytes, header included.
    pub bytes: u64,
    /// Creates the writer.
    pub make: Box<dyn Fn() -> Result<Box<dyn Writer>>>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.scenario.name(), self.writer, self.bytes)
    }
}

/// All cases of this process. If the environment names a provider of lttng-ust (`RTRACE_UST_PROVIDER`, a
/// library), its cases: of the scenario of the session (`RTRACE_UST_SCENARIO`), with its clock
/// (`RTRACE_UST_CLOCK`, tsc or mono). Otherwise our own.
pub fn cases() -> Result<Vec<Case>> {
    let Some(provider) = std::env::var_os("RTRACE_UST_PROVIDER") else {
        return Ok(own_cases());
    };
    let name = std::env::var("RTRACE_UST_SCENARIO").context("RTRACE_UST_SCENARIO")?;
    let scenario = Scenario::by_name(&name).context("no such scenario")?;
    let writer = match std::env::var("RTRACE_UST_CLOCK").as_deref() {
        Ok("tsc") => "lttng-ust-tsc",
        _ => "lttng-ust-mono",
    };
    let provider = ust::Provider::load(&provider)?;
    Ok(scenario
        .sizes()
        .iter()
        .map(|&bytes| Case {
            scenario,
            writer,
            bytes,
            make: Box::new(move || Ok(Box::new(provider.writer(scenario, bytes)?))),
        })
        .collect())
}

fn own_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for scenario in Scenario::ALL {
        for &bytes in scenario.sizes() {
            let mut add = |writer, make: Box<dyn Fn() -> Result<Box<dyn Writer>>>| {
                cases.push(Case {
                    scenario,
                    writer,
                    bytes,
                    make,
                });
            };
            if scenario == Scenario::Overwrite {
                add("memcpy", Box::new(move || memcpy::writer::<false>(bytes)));
                add(
                    "memcpy+tsc",
                    Box::new(move || memcpy::writer::<true>(bytes)),
                );
            }
            add(
                "rtrace-tsc",
                Box::new(move || rtrace::writer::<CompactTsc>(TraceClock::tsc(), scenario, bytes)),
            );
            add(
                "rtrace-mono",
                Box::new(move || {
                    rtrace::writer::<CompactMonotonic>(TraceClock::monotonic(), scenario, bytes)
                }),
            );
        }
    }
    cases
}
