// SPDX-License-Identifier: GPL-2.0

//! The answer to `--profile`.

use super::ends::UserStacks;
use crate::text::{more, percent, table};
use crate::Answer;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::fmt::{self, Write};
use terminal::printable;

/// Functions and threads that used the time of the CPUs.
#[derive(Debug, JsonSchema, Serialize)]
pub struct ProfileAnswer {
    /// Names of the sampling events.
    pub events: Vec<String>,
    /// Number of all samples.
    pub samples: u64,
    /// Number of samples of idle CPUs. The functions and threads do not include them.
    pub idle: u64,
    /// Number of samples that a late timer did not take.
    pub missed: u64,
    /// Number of times that the kernel stopped the sampling for a moment, because there were too many
    /// samples.
    pub throttled: u64,
    /// How the stacks of programs ended. Absent if the trace does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_stacks: Option<UserStacks>,
    /// Functions, the one with most own samples first.
    pub functions: Vec<Function>,
    /// Names of threads, the one with most samples first.
    pub comms: Vec<Comm>,
}

/// Row of a function.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Function {
    pub name: String,
    /// File of the function; for the kernel and its modules, the name in brackets. Empty for the row of the
    /// stacks that are cut for one reason.
    pub object: String,
    /// Number of samples in the function itself.
    #[serde(rename = "self")]
    pub own: u64,
    /// Number of samples in the function and in the functions that it called.
    pub total: u64,
}

/// Row of all threads with one name.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Comm {
    pub comm: String,
    pub samples: u64,
}

impl Answer for ProfileAnswer {
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
            let row = format!(
                "{own:>8} {:>7} {:>7}  {}  {}",
                percent(*own, busy),
                percent(*total, busy),
                printable(name),
                printable(object)
            );
            row.trim_end().to_owned()
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
        if let Some(stacks) = &self.user_stacks {
            writeln!(out, "{stacks}")?;
        }
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
                "The kernel paused the sampling {} times: a lower frequency helps.",
                self.throttled
            )?;
        }
        Ok(())
    }
}
