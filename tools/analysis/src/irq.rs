// SPDX-License-Identifier: GPL-2.0

//! Number and duration of the interrupts (`--irq`).

use super::durations::{accuracy, Durations, HEADINGS, PERCENTILE_ERROR};
use super::interrupts::{Interrupt, InterruptSource, Interrupts};
use super::schedule::Schedule;
use super::text::{more, table};
use super::{Analysis, Answer, Catalogue, Missing};
use ahash::{HashMap, HashMapExt};
use ctf::Clock;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::cmp::Reverse;
use std::fmt::{self, Write};
use terminal::{duration, printable};

/// Analysis of the interrupts of a trace.
pub struct Irq {
    clock: Clock,
    has_hard: bool,
    has_soft: bool,
    sources: HashMap<InterruptSource, Durations>,
}

impl Irq {
    /// Creates the analysis for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>) -> Result<Self, Missing> {
        let interrupts = Interrupts::new(catalogue);
        let (has_hard, has_soft) = (interrupts.has_hard(), interrupts.has_soft());
        if !has_hard && !has_soft {
            return Err(Missing {
                option: "--irq",
                events: "irq_handler_entry and irq_handler_exit, or irq_softirq_entry and irq_softirq_exit",
                record: "-e irq".into(),
            });
        }
        Ok(Self {
            clock: catalogue.metadata().clock,
            has_hard,
            has_soft,
            sources: HashMap::new(),
        })
    }
}

impl Analysis for Irq {
    fn wants_interrupts(&self) -> bool {
        true
    }

    fn interrupt(&mut self, interrupt: &Interrupt<'_>, _schedule: &Schedule) {
        let nanoseconds = self.clock.nanoseconds(interrupt.ticks);
        match self.sources.get_mut(interrupt.source) {
            Some(durations) => durations.add(nanoseconds),
            None => {
                let mut durations = Durations::new();
                durations.add(nanoseconds);
                self.sources.insert(interrupt.source.clone(), durations);
            }
        }
    }

    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        let mut interrupts: Vec<_> = self
            .sources
            .into_iter()
            .map(|(source, durations)| Row {
                kind: if source.is_hard { "hard" } else { "soft" },
                number: source.number,
                name: source.name,
                durations,
            })
            .collect();
        interrupts.sort_by(|a, b| {
            let key = |row: &Row| (Reverse(row.durations.total_ns()), row.kind, row.number);
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        Box::new(IrqAnswer {
            percentile_error: PERCENTILE_ERROR,
            hard_recorded: self.has_hard,
            soft_recorded: self.has_soft,
            interrupts,
        })
    }
}

/// Answer to `--irq`.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct IrqAnswer {
    /// Maximum share of its value by which a percentile is too large.
    percentile_error: f64,
    hard_recorded: bool,
    soft_recorded: bool,
    /// Rows, those with the longest total time first.
    interrupts: Vec<Row>,
}

/// Row of an interrupt, from entry to exit.
#[derive(Debug, JsonSchema, Serialize)]
struct Row {
    /// `hard` or `soft`.
    kind: &'static str,
    number: i64,
    name: String,
    #[serde(flatten)]
    durations: Durations,
}

impl Answer for IrqAnswer {
    fn name(&self) -> &'static str {
        "irq"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        if self.interrupts.is_empty() {
            writeln!(out, "\nNo interrupt was handled.")?;
        } else {
            self.table(out, rows)?;
        }
        for (is_recorded, what, event) in [
            (self.hard_recorded, "Hard", "irq_handler_*"),
            (self.soft_recorded, "Soft", "irq_softirq_*"),
        ] {
            if !is_recorded {
                writeln!(
                    out,
                    "{what} interrupts are not in the trace: `rtrace record -e '{event}'` records them."
                )?;
            }
        }
        Ok(())
    }
}

impl IrqAnswer {
    fn table(&self, out: &mut String, rows: usize) -> fmt::Result {
        let heading = format!("{:>10} {:>10}{HEADINGS}  interrupt", "times", "total");
        table(out, &heading, &self.interrupts, rows, |row| {
            format!(
                "{:>10} {:>10}{}  {} {} {}",
                row.durations.count(),
                duration(row.durations.total_ns()),
                row.durations.columns(),
                row.kind,
                row.number,
                printable(&row.name)
            )
        })?;
        more(out, self.interrupts.len(), rows, "interrupts")?;
        writeln!(
            out,
            "\nTimes are from entry to exit, and include the interrupts in between. {}",
            accuracy(self.percentile_error)
        )
    }
}
