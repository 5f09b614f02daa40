// SPDX-License-Identifier: GPL-2.0

//! The tools: their arguments, and the command line of a call.

use super::call::{Call, Limits, MOST_TIME};
use super::place::Root;
use schemars::{schema_for, JsonSchema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Tokens of an answer, if the program gives no budget.
const BUDGET: u32 = 4000;
/// Time that a recording has to end, beside its duration.
const END: Duration = Duration::from_secs(30);
/// Seconds of a recording, if the program gives none.
const SECONDS: u64 = 10;

/// A tool.
pub struct Tool {
    pub name: &'static str,
    about: &'static str,
    reads_only: bool,
    schema: fn() -> Value,
    /// Turns the arguments into a call. The error is a text for the user.
    pub ask: fn(Value, &Root, &Limits) -> Result<Asked, String>,
}

/// Request of a program.
pub enum Asked {
    /// A text, which is known already.
    Text(String),
    /// A command line.
    Call(Call),
}

/// Arguments of a tool.
trait Arguments: DeserializeOwned + JsonSchema {
    fn ask(self, root: &Root, limits: &Limits) -> Result<Asked, String>;
}

impl Tool {
    fn new<A: Arguments>(name: &'static str, about: &'static str, reads_only: bool) -> Self {
        Self {
            name,
            about,
            reads_only,
            schema: || schema_for!(A).into(),
            ask: |arguments, root, limits| {
                known(&arguments, &schema_for!(A).into())?;
                let arguments: A =
                    serde_json::from_value(arguments).map_err(|error| error.to_string())?;
                arguments.ask(root, limits)
            },
        }
    }

    /// Returns the description for the program.
    pub fn describe(&self) -> Value {
        let mut schema = (self.schema)();
        schema["additionalProperties"] = false.into();
        json!({
            "name": self.name,
            "description": self.about,
            "inputSchema": schema,
            "annotations": {
                "readOnlyHint": self.reads_only,
                "destructiveHint": false,
                "openWorldHint": false,
            },
        })
    }
}

/// Fails if an argument is not in the schema. It would be ignored otherwise, and the answer be one to another question.
fn known(arguments: &Value, schema: &Value) -> Result<(), String> {
    let known = &schema["properties"];
    let mut names = arguments.as_object().into_iter().flatten();
    match names.find(|(name, _)| known.get(name.as_str()).is_none()) {
        Some((name, _)) => {
            let known = known.as_object().into_iter().flatten();
            let known: Vec<_> = known.map(|(name, _)| name.as_str()).collect();
            Err(format!(
                "no argument is called `{name}`: the tool has {}",
                known.join(", ")
            ))
        }
        None => Ok(()),
    }
}

/// Returns the tools that the server offers.
pub fn all(limits: &Limits) -> Vec<Tool> {
    let mut tools = vec![
        Tool::new::<List>(
            "list",
            "List the traces in the server's directory, or what this machine can record.",
            true,
        ),
        Tool::new::<Report>(
            "report",
            "Summarise a trace, or answer questions about it: system calls, latencies, CPUs, interrupts, I/O, locks.",
            true,
        ),
        Tool::new::<Why>(
            "why",
            "Say why a thread or command waited: the causes, those with most time first.",
            true,
        ),
        Tool::new::<Query>(
            "query",
            "Answer a question about traces in SQL (SQLite). Without sql: list the samples, tables and columns.",
            true,
        ),
        Tool::new::<Diff>(
            "diff",
            "Compare two traces: what changed, and what of it exceeds the traces' own variation.",
            true,
        ),
        Tool::new::<Page>(
            "page",
            "Write a page for a browser: timeline, tables and flame graph of a trace.",
            false,
        ),
    ];
    if limits.may_record {
        tools.push(Tool::new::<Record>(
            "record",
            "Record a trace for some seconds, of the whole machine or of processes.",
            false,
        ));
    }
    tools
}

/// Size and form of an answer.
#[derive(Deserialize, JsonSchema)]
struct Size {
    /// Number of tokens of the answer, about. Rows that do not fit are left out, and counted [default: 4000]
    budget: Option<u32>,
    /// Whether the answer is JSON, which `rtrace schema` describes.
    #[serde(default)]
    json: bool,
}

impl Size {
    fn words(&self, json: &str) -> Vec<OsString> {
        let mut words = vec![option("--budget", self.budget.unwrap_or(BUDGET))];
        words.extend(self.json.then(|| json.into()));
        words
    }
}

/// An option with its value in one word, so that no value is taken for an option.
fn option(name: &str, value: impl std::fmt::Display) -> OsString {
    format!("{name}={value}").into()
}

fn path_option(name: &str, path: PathBuf) -> OsString {
    let mut word = OsString::from(format!("{name}="));
    word.push(path);
    word
}

/// A call of a command that reads.
fn read(command: &str, options: Vec<OsString>, rest: Vec<OsString>) -> Asked {
    let mut words = vec![OsString::from(command)];
    words.extend(options);
    words.push("--".into());
    words.extend(rest);
    Asked::Call(Call {
        words,
        recording: None,
        time: MOST_TIME,
    })
}

/// Kind of things to list.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Traces in the server's directory.
    #[default]
    Traces,
    /// Events that can be recorded.
    Events,
    /// Values that can be recorded beside an event.
    Contexts,
}

#[derive(Deserialize, JsonSchema)]
struct List {
    #[serde(default)]
    what: Kind,
    /// For events: only those that match, such as sched or 'block_rq_*'
    pattern: Option<String>,
    /// Number of tokens of the answer, about [default: 4000]
    budget: Option<u32>,
}

impl Arguments for List {
    fn ask(self, root: &Root, _limits: &Limits) -> Result<Asked, String> {
        let budget = option("--budget", self.budget.unwrap_or(BUDGET));
        match self.what {
            Kind::Traces => {
                let (traces, is_cut) = root.traces();
                let mut text = String::new();
                for trace in &traces {
                    text.push_str(&terminal::printable(&trace.to_string_lossy()));
                    text.push('\n');
                }
                if traces.is_empty() {
                    text.push_str("no trace\n");
                }
                if is_cut {
                    text.push_str("the directory has too many entries: there may be more traces\n");
                }
                let budget = self.budget.unwrap_or(BUDGET).max(100).to_string();
                let budget = budget.parse().map(terminal::budget::Size::Tokens)?;
                let lines: Vec<_> = text.split_inclusive('\n').collect();
                let text = budget.text(|rows| Ok(lines.iter().take(rows).copied().collect()));
                text.map(Asked::Text).map_err(|error| error.to_string())
            }
            Kind::Events => {
                let pattern = self.pattern.map(OsString::from);
                Ok(read("list", vec![budget], pattern.into_iter().collect()))
            }
            Kind::Contexts => Ok(read("list", vec![budget, "--contexts".into()], Vec::new())),
        }
    }
}

/// Questions of `rtrace report`, by the names of its options.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
enum Question {
    Syscalls,
    Latency,
    Threads,
    Cpu,
    Irq,
    Io,
    Locks,
    Profile,
    Maps,
    Aux,
}

#[derive(Deserialize, JsonSchema)]
struct Report {
    /// The trace
    trace: PathBuf,
    /// Questions; without any, the answer is a summary
    #[serde(default)]
    questions: Vec<Question>,
    /// The critical path of the thread with this id
    critical_path: Option<u32>,
    /// Only what happened from this time on: 23:00:01, or +5s after the trace's begin
    from: Option<String>,
    /// Only what happened up to this time
    to: Option<String>,
    /// Only what these processes did
    #[serde(default)]
    pids: Vec<u32>,
    /// Only what threads of this name did; it may have *
    comm: Option<String>,
    #[serde(flatten)]
    size: Size,
}

impl Arguments for Report {
    fn ask(self, root: &Root, _limits: &Limits) -> Result<Asked, String> {
        let mut words = self.size.words("--json");
        for question in self.questions {
            let name = serde_json::to_value(question).map_err(|error| error.to_string())?;
            words.push(format!("--{}", name.as_str().unwrap_or_default()).into());
        }
        words.extend(self.critical_path.map(|tid| option("--critical-path", tid)));
        words.extend(self.from.map(|time| option("--from", time)));
        words.extend(self.to.map(|time| option("--to", time)));
        words.extend(self.pids.iter().map(|pid| option("--pid", pid)));
        words.extend(self.comm.map(|comm| option("--comm", comm)));
        Ok(read("report", words, vec![root.trace(&self.trace)?.into()]))
    }
}

#[derive(Deserialize, JsonSchema)]
struct Why {
    /// The trace
    trace: PathBuf,
    /// A thread id, or the name of threads, which may have *
    who: Option<String>,
    /// Instead: the threads of this process
    pid: Option<u32>,
    #[serde(flatten)]
    size: Size,
}

impl Arguments for Why {
    fn ask(self, root: &Root, _limits: &Limits) -> Result<Asked, String> {
        let mut words = self.size.words("--json");
        let trace = root.trace(&self.trace)?.into();
        let rest = match (self.who, self.pid) {
            (Some(_), Some(_)) => return Err("give who or pid, not both".to_owned()),
            (Some(who), None) => vec![who.into(), trace],
            (None, pid) => {
                words.extend(pid.map(|pid| option("--pid", pid)));
                vec![trace]
            }
        };
        Ok(read("why", words, rest))
    }
}

#[derive(Deserialize, JsonSchema)]
struct Query {
    /// The traces
    traces: Vec<PathBuf>,
    /// The query, or the name of a sample
    sql: Option<String>,
    #[serde(flatten)]
    size: Size,
}

impl Arguments for Query {
    fn ask(self, root: &Root, _limits: &Limits) -> Result<Asked, String> {
        if self.traces.is_empty() {
            return Err("give at least one trace".to_owned());
        }
        let traces = self.traces.iter();
        let traces = traces.map(|trace| root.trace(trace).map(OsString::from));
        let traces = traces.collect::<Result<Vec<_>, _>>()?;
        let Some(sql) = self.sql else {
            return Ok(read("query", vec!["--list".into()], traces));
        };
        let words = self.size.words("--format=json");
        let rest = [vec![sql.into()], traces].concat();
        Ok(read("query", words, rest))
    }
}

#[derive(Deserialize, JsonSchema)]
struct Diff {
    /// The first trace
    a: PathBuf,
    /// The second trace
    b: PathBuf,
    #[serde(flatten)]
    size: Size,
}

impl Arguments for Diff {
    fn ask(self, root: &Root, _limits: &Limits) -> Result<Asked, String> {
        let words = self.size.words("--json");
        let traces = vec![root.trace(&self.a)?.into(), root.trace(&self.b)?.into()];
        Ok(read("diff", words, traces))
    }
}

#[derive(Deserialize, JsonSchema)]
struct Page {
    /// The trace
    trace: PathBuf,
    /// The new file
    file: PathBuf,
}

impl Arguments for Page {
    fn ask(self, root: &Root, _limits: &Limits) -> Result<Asked, String> {
        let file = path_option("--html", root.new_path(&self.file)?);
        Ok(read(
            "report",
            vec![file],
            vec![root.trace(&self.trace)?.into()],
        ))
    }
}

#[derive(Deserialize, JsonSchema)]
struct Record {
    /// Directory for the trace: new
    output: PathBuf,
    /// Events: EVENT, SYSTEM:EVENT or SYSTEM, with *; without any, the default events
    #[serde(default)]
    events: Vec<String>,
    /// Values to record beside each event, such as callstack-kernel
    #[serde(default)]
    contexts: Vec<String>,
    /// Only these processes
    #[serde(default)]
    pids: Vec<u32>,
    /// Duration in seconds [default: 10]
    seconds: Option<u64>,
    /// Size at which the recording ends
    bytes: Option<u64>,
    /// Command to run meanwhile, if the server allows it: program and arguments
    #[serde(default)]
    command: Vec<String>,
}

impl Arguments for Record {
    fn ask(self, root: &Root, limits: &Limits) -> Result<Asked, String> {
        let most = limits.time.as_secs();
        let seconds = self.seconds.unwrap_or(SECONDS.min(most));
        if seconds == 0 || seconds > most {
            return Err(format!(
                "the server records at least 1 s, and at most {most} s"
            ));
        }
        let bytes = self.bytes.unwrap_or(limits.bytes);
        if bytes > limits.bytes {
            return Err(format!("the server records at most {} bytes", limits.bytes));
        }
        if !self.command.is_empty() && !limits.may_run {
            return Err(
                "the server runs no command: it was started without --allow-commands".to_owned(),
            );
        }
        let output = root.new_path(&self.output)?;
        let mut words = vec!["record".into(), path_option("--output", output.clone())];
        words.push(option("--duration", format_args!("{seconds}s")));
        words.extend(self.events.iter().map(|event| option("--event", event)));
        words.extend(self.contexts.iter().map(|name| option("--context", name)));
        words.extend(self.pids.iter().map(|pid| option("--pid", pid)));
        words.push("--".into());
        words.extend(self.command.into_iter().map(OsString::from));
        Ok(Asked::Call(Call {
            words,
            recording: Some((output, bytes)),
            time: Duration::from_secs(seconds) + END,
        }))
    }
}
