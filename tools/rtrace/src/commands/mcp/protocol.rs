// SPDX-License-Identifier: GPL-2.0

//! Messages of the Model Context Protocol, as JSON-RPC 2.0.

use super::call::{Limits, Outcome, Running};
use super::place::Root;
use super::tools::{self, Asked, Tool};
use serde_json::{json, Value};
use std::ffi::OsString;

/// Versions of the protocol, the newest first. The messages of these tools are alike in all of them.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Advice for the program.
const INSTRUCTIONS: &str = "Traces of the Linux kernel by rtrace. Call list first. report without questions \
    summarises a trace; why says what threads waited for; query answers SQL. An answer that names lost events or left \
    out rows is not complete.";

/// Codes of errors.
const NO_JSON: i64 = -32700;
const NO_REQUEST: i64 = -32600;
const NO_METHOD: i64 = -32601;
const WRONG_PARAMS: i64 = -32602;
const BUSY: i64 = -32000;

/// The reply to a message.
pub enum Reply {
    None,
    Now(Value),
    /// The call with this id shall end.
    Cancel(Value),
    /// A call of a tool: the id and the parameters.
    Call(Value, Value),
}

/// The server.
pub struct Server {
    /// Options of all calls.
    options: Vec<OsString>,
    root: Root,
    limits: Limits,
    tools: Vec<Tool>,
}

impl Server {
    /// Creates the server of a directory.
    pub fn new(options: Vec<OsString>, root: Root, limits: Limits) -> Self {
        Self {
            options,
            root,
            tools: tools::all(&limits),
            limits,
        }
    }

    /// Replies to a message.
    pub fn reply(&self, line: &[u8]) -> Reply {
        if line.trim_ascii().is_empty() {
            return Reply::None;
        }
        let message: Value = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(what) => return Reply::Now(error(&Value::Null, NO_JSON, &what.to_string())),
        };
        let id = message.get("id").cloned();
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            // The server asks nothing, so no message is an answer to it.
            let is_answer = message.get("result").or(message.get("error")).is_some();
            return match is_answer {
                true => Reply::None,
                false => Reply::Now(error(&Value::Null, NO_REQUEST, "a message has a method")),
            };
        };
        let params = message.get("params").cloned().unwrap_or_default();
        let Some(id) = id else {
            return match method {
                "notifications/cancelled" => Reply::Cancel(params["requestId"].clone()),
                _ => Reply::None,
            };
        };
        if !id.is_string() && !id.is_number() {
            return Reply::Now(error(
                &Value::Null,
                NO_REQUEST,
                "an id is a text or a number",
            ));
        }
        match method {
            "initialize" => Reply::Now(result(&id, self.initialize(&params))),
            "ping" => Reply::Now(result(&id, json!({}))),
            "tools/list" => {
                let tools = self.tools.iter().map(Tool::describe);
                Reply::Now(result(&id, json!({ "tools": tools.collect::<Vec<_>>() })))
            }
            "tools/call" => match self.tool(&params) {
                Some(_) => Reply::Call(id, params),
                None => Reply::Now(error(&id, WRONG_PARAMS, "there is no tool with this name")),
            },
            _ => Reply::Now(error(&id, NO_METHOD, "there is no method with this name")),
        }
    }

    fn initialize(&self, params: &Value) -> Value {
        let asked = params["protocolVersion"].as_str();
        let version = VERSIONS.iter().find(|version| Some(**version) == asked);
        json!({
            "protocolVersion": version.unwrap_or(&VERSIONS[0]),
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "rtrace", "version": env!("CARGO_PKG_VERSION") },
            "instructions": INSTRUCTIONS,
        })
    }

    fn tool(&self, params: &Value) -> Option<&Tool> {
        let name = params["name"].as_str()?;
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Calls a tool. Returns the result for the program.
    pub fn call(&self, running: &Running, params: &Value) -> Value {
        let arguments = match &params["arguments"] {
            Value::Null => json!({}),
            arguments => arguments.clone(),
        };
        let Some(tool) = self.tool(params) else {
            return failure("there is no tool with this name");
        };
        let outcome = match (tool.ask)(arguments, &self.root, &self.limits) {
            Ok(Asked::Text(text)) => return content(&[&text], false),
            Ok(Asked::Call(call)) => call.run(&self.options, &self.root.path, running),
            Err(what) => return failure(&what),
        };
        match outcome {
            Ok(outcome) => shown(&outcome),
            Err(error) => failure(&format!("cannot run rtrace: {error}")),
        }
    }
}

/// The result of a call that a child process answered.
fn shown(outcome: &Outcome) -> Value {
    let end = match (&outcome.ended, outcome.code) {
        (Some(reason), _) => reason.clone(),
        (None, Some(0)) => String::new(),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "a signal ended rtrace".to_owned(),
    };
    let texts = [&outcome.output, &outcome.messages, &end].map(String::as_str);
    // A damaged trace has an answer, too, and a recording ends well at its limits.
    let is_answer = outcome.code == Some(0) || !outcome.output.is_empty();
    let is_error = !is_answer && !outcome.has_recorded;
    content(&texts, is_error)
}

fn content(texts: &[&str], is_error: bool) -> Value {
    let texts = texts.iter().filter(|text| !text.is_empty());
    let texts = texts.map(|text| json!({ "type": "text", "text": text }));
    json!({ "content": texts.collect::<Vec<_>>(), "isError": is_error })
}

fn failure(what: &str) -> Value {
    content(&[what], true)
}

/// Returns the answer to a request.
pub fn result(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn error(id: &Value, code: i64, what: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": what } })
}

/// Returns the answer to a request that is too long to be read.
pub fn too_long() -> Value {
    error(&Value::Null, NO_REQUEST, "the request exceeds 1 MiB")
}

/// Returns the answer to a call while too many others wait.
pub fn busy(id: &Value) -> Value {
    error(id, BUSY, "too many calls wait")
}
