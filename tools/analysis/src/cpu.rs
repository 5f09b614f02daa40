// SPDX-License-Identifier: GPL-2.0

//! Time that each CPU was busy, idle, and in interrupts (`--cpu`).

use super::busy::Times;
use super::interrupts::{Interrupt, Interrupts};
use super::schedule::{Schedule, Span};
use super::schedule_events::Activity;
use super::text::{or_dash, percent, table};
use super::{Analysis, Answer, Catalogue, Missing};
use ctf::Clock;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use terminal::duration;

/// Analysis of the CPUs of a trace.
pub struct Cpus {
    clock: Clock,
    has_hard: bool,
    has_soft: bool,
    /// CPUs by number.
    cpus: BTreeMap<u32, Cpu>,
}

/// A CPU's time, in clock ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    times: Times,
    hard: u64,
    soft: u64,
}

impl Cpus {
    /// Creates the analysis for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>) -> Result<Self, Missing> {
        if !catalogue.has_switches() {
            return Err(Missing {
                option: "--cpu",
                events: "sched_switch",
                record: "-e sched_switch,irq".into(),
            });
        }
        let interrupts = Interrupts::new(catalogue);
        Ok(Self {
            clock: catalogue.metadata().clock,
            has_hard: interrupts.has_hard(),
            has_soft: interrupts.has_soft(),
            cpus: BTreeMap::new(),
        })
    }
}

impl Analysis for Cpus {
    fn wants_interrupts(&self) -> bool {
        true
    }

    fn cpu(&mut self, number: u32) {
        self.cpus.entry(number).or_default();
    }

    fn span(&mut self, span: &Span, schedule: &Schedule) {
        let (Activity::Running, Some(cpu)) = (span.state, span.cpu) else {
            return;
        };
        let cpu = self.cpus.entry(schedule.number(cpu)).or_default();
        cpu.times.add(span);
    }

    fn interrupt(&mut self, interrupt: &Interrupt<'_>, schedule: &Schedule) {
        let cpu = self.cpus.entry(schedule.number(interrupt.cpu)).or_default();
        let sum = if interrupt.source.is_hard {
            &mut cpu.hard
        } else {
            &mut cpu.soft
        };
        *sum = sum.saturating_add(interrupt.own_ticks);
    }

    fn answer(self: Box<Self>, ticks: u64) -> Box<dyn Answer> {
        let clock = self.clock;
        let rows = self
            .cpus
            .into_iter()
            .map(|(cpu, Cpu { times, hard, soft })| Row {
                cpu,
                busy_ns: clock.nanoseconds(times.busy),
                idle_ns: clock.nanoseconds(times.idle),
                unknown_ns: clock.nanoseconds(times.unknown(ticks)),
                hard_ns: self.has_hard.then(|| clock.nanoseconds(hard)),
                soft_ns: self.has_soft.then(|| clock.nanoseconds(soft)),
            });
        Box::new(CpuAnswer {
            cpus: rows.collect(),
        })
    }
}

/// Answer to `--cpu`.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct CpuAnswer {
    cpus: Vec<Row>,
}

/// Row of a CPU.
#[derive(Debug, JsonSchema, Serialize)]
struct Row {
    cpu: u32,
    /// Time in which a thread ran.
    busy_ns: u64,
    /// Time in which the idle task ran.
    idle_ns: u64,
    /// Time for which the running task is not known: before the first event of the CPU, or where events
    /// were lost.
    unknown_ns: u64,
    /// Time in hard interrupts, and in soft interrupts without nested hard interrupts. Both are parts of
    /// the busy or idle time. `None` if the trace does not have these interrupts.
    hard_ns: Option<u64>,
    soft_ns: Option<u64>,
}

impl Answer for CpuAnswer {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, _rows: usize) -> fmt::Result {
        if self.cpus.is_empty() {
            return writeln!(out, "\nThere are no events of any CPU.");
        }
        let heading = format!(
            "{:>5} {:>10} {:>6} {:>10} {:>10} {:>10} {:>6} {:>10} {:>6}",
            "CPU", "busy", "", "idle", "unknown", "hard irq", "", "soft irq", ""
        );
        table(out, &heading, &self.cpus, usize::MAX, |row| {
            let known = row.busy_ns.saturating_add(row.idle_ns);
            let part = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| percent(ns, known));
            format!(
                "{:>5} {:>10} {:>6} {:>10} {:>10} {:>10} {:>6} {:>10} {:>6}",
                row.cpu,
                duration(row.busy_ns),
                percent(row.busy_ns, known),
                duration(row.idle_ns),
                duration(row.unknown_ns),
                or_dash(row.hard_ns),
                part(row.hard_ns),
                or_dash(row.soft_ns),
                part(row.soft_ns),
            )
        })?;
        writeln!(
            out,
            "\nInterrupts are parts of the time busy and idle. Time is unknown before the first event of the CPU, and where events were lost."
        )?;
        if self
            .cpus
            .iter()
            .any(|row| row.hard_ns.is_none() || row.soft_ns.is_none())
        {
            writeln!(
                out,
                "Some interrupts are not in the trace: `rtrace record -e irq` records them."
            )?;
        }
        Ok(())
    }
}
