// SPDX-License-Identifier: GPL-2.0

//! The answers in JSON. Each names the version of its schema, which `rtrace schema` prints.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;
use terminal::budget::{Budget, LeftOut};
use terminal::harmless_json;

/// Schema of an answer that a command prints with `--json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Schema {
    /// `rtrace trace -c --json`
    Calls,
    /// `rtrace count --json`: each table
    Count,
    /// `rtrace diff --json`
    Diff,
    /// `rtrace doctor --json`
    Doctor,
    /// `rtrace list --json`
    Events,
    /// `rtrace list --json` with --contexts, --awaited or --functions
    Names,
    /// `rtrace probe --json`
    Probes,
    /// `rtrace query --format json`
    Query,
    /// `rtrace report --json` with questions; also `rtrace profile --json` and `rtrace latency -i DIR --json`
    Report,
    /// `rtrace session list --json`
    Sessions,
    /// `rtrace status --json`
    Status,
    /// `rtrace report --json` without a question
    Summary,
    /// `rtrace top --json`: each line
    Top,
    /// `rtrace list --usdt --json`
    Usdt,
    /// `rtrace why --json`
    Why,
}

impl Schema {
    /// Name and version of the schema. The version changes when a field disappears or gets another meaning, not when a
    /// field is added.
    pub fn id(self) -> &'static str {
        match self {
            Self::Calls => "calls/1",
            Self::Count => "count/1",
            Self::Diff => "diff/1",
            Self::Doctor => "doctor/1",
            Self::Events => "events/1",
            Self::Names => "names/1",
            Self::Probes => "probes/1",
            Self::Query => "query/1",
            Self::Report => "report/1",
            Self::Sessions => "sessions/1",
            Self::Status => "status/1",
            Self::Summary => "summary/1",
            Self::Top => "top/1",
            Self::Usdt => "usdt/1",
            Self::Why => "why/1",
        }
    }

    /// Returns the command that prints the answer.
    pub fn command(self) -> String {
        let value = self.to_possible_value();
        let help = value.as_ref().and_then(|value| value.get_help());
        help.map_or(String::new(), ToString::to_string)
    }

    /// Returns the answer as a text of JSON: at most one line of `budget`, or indented.
    pub fn json(
        self,
        answer: &impl Serialize,
        budget: Option<Budget>,
    ) -> serde_json::Result<String> {
        let named = Named {
            schema: self.id(),
            answer,
            left_out: None,
        };
        let Some(budget) = budget else {
            return Ok(harmless_json(serde_json::to_string_pretty(&named)? + "\n"));
        };
        let mut value = serde_json::to_value(&named)?;
        if let Some(left) = budget.cut(&mut value)? {
            value["left_out"] = serde_json::to_value(left)?;
        }
        Ok(harmless_json(format!("{value}\n")))
    }

    /// Returns the answer as one line of JSON.
    pub fn line(self, answer: &impl Serialize) -> serde_json::Result<String> {
        let named = Named {
            schema: self.id(),
            answer,
            left_out: None,
        };
        Ok(harmless_json(serde_json::to_string(&named)? + "\n"))
    }

    /// Prints the answer as JSON.
    pub fn print(self, answer: &impl Serialize, budget: Option<Budget>) -> anyhow::Result<()> {
        Ok(terminal::print(&self.json(answer, budget)?)?)
    }
}

/// An answer, with the name of its schema.
#[derive(JsonSchema, Serialize)]
pub struct Named<T> {
    /// Name and version of the answer's schema: `rtrace schema NAME` prints it.
    schema: &'static str,
    #[serde(flatten)]
    answer: T,
    /// Rows that `--budget` left out. Without this field there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<LeftOut>,
}
