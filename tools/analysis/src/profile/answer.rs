// SPDX-License-Identifier: GPL-2.0

//! What was found by samples.

use crate::text::{more, percent, table};
use crate::Answer;
use serde::Serialize;
use serde_json::Value as Json;
use std::fmt::{self, Write};
use terminal::printable;

/// Where the time of the CPUs went by.
#[derive(Debug, Serialize)]
pub struct Found {
    /// What was sampled by.
    pub events: Vec<String>,
    /// All samples.
    pub samples: u64,
    /// Those of them in which the CPU had nothing to do; they are not among the others.
    pub idle: u64,
    /// Those of a timer that did not come, for it was late.
    pub missed: u64,
    /// How often the kernel stopped the sampling for a moment, for there were too many.
    pub throttled: u64,
    /// The one with most samples in itself first.
    pub functions: Vec<Function>,
    /// The one with most samples first.
    pub comms: Vec<Comm>,
}

/// A function.
#[derive(Debug, Serialize)]
pub struct Function {
    pub name: String,
    /// The file that it is in; a module of the kernel, or the kernel, in brackets.
    pub object: String,
    /// Samples in it.
    #[serde(rename = "self")]
    pub own: u64,
    /// Those in what it called, too.
    pub total: u64,
}

/// All threads of a name.
#[derive(Debug, Serialize)]
pub struct Comm {
    pub comm: String,
    pub samples: u64,
}

impl Answer for Found {
    fn name(&self) -> &'static str {
        "profile"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        let busy = self.samples - self.idle;
        let heading = format!("{:>8} {:>7} {:>7}  function", "samples", "self", "total");
        table(out, &heading, &self.functions, rows, |function| {
            let Function {
                name,
                object,
                own,
                total,
            } = function;
            format!(
                "{own:>8} {:>7} {:>7}  {}  {}",
                percent(*own, busy),
                percent(*total, busy),
                printable(name),
                printable(object)
            )
        })?;
        more(out, self.functions.len(), rows, "functions")?;
        let heading = format!("{:>8} {:>7}  threads", "samples", "share");
        table(out, &heading, &self.comms, rows, |comm| {
            let share = percent(comm.samples, busy);
            format!("{:>8} {share:>7}  {}", comm.samples, printable(&comm.comm))
        })?;
        more(out, self.comms.len(), rows, "names")?;
        writeln!(
            out,
            "\n{} samples by {}, and {} of idle CPUs, which are not counted above.",
            busy,
            self.events.join(", "),
            self.idle
        )?;
        if self.missed > 0 {
            writeln!(
                out,
                "{} samples are missing: the timer was late.",
                self.missed
            )?;
        }
        if self.throttled > 0 {
            writeln!(
                out,
                "{} times the kernel stopped the sampling for a moment: a lower frequency helps.",
                self.throttled
            )?;
        }
        Ok(())
    }
}
