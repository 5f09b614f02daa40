// SPDX-License-Identifier: GPL-2.0

//! `rtrace mcp`, by a program that speaks the protocol.

use assert_cmd::cargo::cargo_bin;
use rustix::process::{kill_process, Pid, Signal};
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// A program that uses the server.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Client {
    fn new(dir: &Path, options: &[&str]) -> Self {
        let mut child = Command::new(cargo_bin("rtrace"))
            .args(["--debugfs", "/nowhere", "mcp", "--dir"])
            .arg(dir)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            last: 0,
        }
    }

    fn send(&mut self, line: &[u8]) {
        self.input.write_all(line).unwrap();
        self.input.write_all(b"\n").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert!(
            self.output.read_line(&mut line).unwrap() > 0,
            "the server has ended"
        );
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(request.to_string().as_bytes());
        let answer = self.receive();
        assert_eq!(answer["id"], id);
        answer
    }

    /// Calls a tool. Returns whether it failed, and its text.
    fn call(&mut self, name: &str, arguments: Value) -> (bool, String) {
        let params = json!({"name": name, "arguments": arguments});
        let result = self.ask("tools/call", params)["result"].take();
        let texts = result["content"].as_array().unwrap().iter();
        let texts = texts.map(|part| part["text"].as_str().unwrap());
        let text = texts.collect::<Vec<_>>().join("\n");
        (result["isError"].as_bool().unwrap(), text)
    }

    fn works(&mut self, name: &str, arguments: Value) -> String {
        let (is_error, text) = self.call(name, arguments);
        assert!(!is_error, "{name}: {text}");
        text
    }

    fn fails(&mut self, name: &str, arguments: Value, why: &str) {
        let (is_error, text) = self.call(name, arguments.clone());
        assert!(is_error && text.contains(why), "{name} {arguments}: {text}");
    }

    /// Closes standard input. Returns the exit code.
    fn end(self) -> Option<i32> {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        child.wait().unwrap().code()
    }
}

/// A directory with two traces, and links to the outside.
fn traces() -> TempDir {
    let dir = TempDir::new().unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/traces");
    for (from, to) in [("2026-11-22", "old"), ("2026-11-29", "below/new")] {
        let to = dir.path().join(to);
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(kept.join(from)).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
    symlink(kept.join("2026-11-22"), dir.path().join("link")).unwrap();
    symlink("below/new", dir.path().join("inner")).unwrap();
    symlink("/", dir.path().join("top")).unwrap();
    let partly = dir.path().join("partly");
    fs::create_dir(&partly).unwrap();
    fs::copy(dir.path().join("old/metadata"), partly.join("metadata")).unwrap();
    symlink("/etc/passwd", partly.join("channel0_cpu0")).unwrap();
    dir
}

#[test]
fn the_protocol_is_spoken() {
    let dir = traces();
    let mut client = Client::new(dir.path(), &[]);
    for (asked, version) in [("2024-11-05", "2024-11-05"), ("2999-01-01", "2025-11-25")] {
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let answer = client.ask("initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], version);
        assert_eq!(answer["result"]["serverInfo"]["name"], "rtrace");
        assert!(answer["result"]["capabilities"]["tools"].is_object());
    }
    client.send(br#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#);
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].take();
    let names: BTreeSet<_> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        BTreeSet::from(["diff", "list", "page", "query", "report", "why"])
    );
    for tool in tools.as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object");
        jsonschema::meta::validate(&tool["inputSchema"]).unwrap();
        assert_eq!(tool["annotations"]["readOnlyHint"], tool["name"] != "page");
    }
    for (line, code) in [
        (&b"{"[..], -32700),
        (b"\xff", -32700),
        (b"[]", -32600),
        (br#"{"jsonrpc": "2.0", "id": 1}"#, -32600),
        (br#"{"id": null, "method": "ping"}"#, -32600),
        (br#"{"id": 1, "method": "resources/list"}"#, -32601),
        (br#"{"id": 1, "method": "tools/call"}"#, -32602),
        (
            br#"{"id": 1, "method": "tools/call", "params": {"name": "record"}}"#,
            -32602,
        ),
        (&vec![b' '; 3 << 20], -32600),
        (&vec![b'['; 1 << 19], -32700),
    ] {
        client.send(line);
        let answer = client.receive();
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    // Neither needs an answer.
    client.send(b"");
    client.send(br#"{"jsonrpc": "2.0", "id": 9, "result": {}}"#);
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    assert_eq!(client.end(), Some(0));
}

#[test]
fn tools_answer() {
    let dir = traces();
    let mut client = Client::new(dir.path(), &[]);
    assert_eq!(client.works("list", json!({})), "below/new\nold\npartly\n");
    let summary = client.works("report", json!({"trace": "old"}));
    assert!(summary.contains("events recorded, 0 lost"), "{summary}");
    assert_eq!(
        client.works("report", json!({"trace": dir.path().join("old")})),
        summary
    );
    let report =
        json!({"trace": "inner", "questions": ["threads", "cpu"], "json": true, "budget": 900});
    let report: Value = serde_json::from_str(&client.works("report", report)).unwrap();
    assert_eq!(report["schema"], "report/1");
    assert!(
        report["threads"].is_object() && report["cpu"].is_object(),
        "{report}"
    );
    let why = client.works("why", json!({"trace": "old", "who": "*"}));
    assert!(why.contains("waited"), "{why}");
    client.fails("why", json!({"trace": "old"}), "Usage");
    client.fails(
        "why",
        json!({"trace": "old", "who": "a", "pid": 1}),
        "not both",
    );
    let sql = json!({"traces": ["old", "inner"], "sql": "SELECT trace, COUNT(*) AS n FROM sched_switch GROUP BY trace"});
    let rows = client.works("query", sql);
    assert!(rows.contains("below/new") && rows.contains("old"), "{rows}");
    assert!(client
        .works("query", json!({"traces": ["old"]}))
        .contains("sched_switch: "));
    let long = json!({"traces": ["old"], "sql": "SELECT * FROM sched_switch", "budget": 200});
    let long = client.works("query", long);
    assert!(
        long.len() <= 600 && long.contains(" rows left out"),
        "{long}"
    );
    let diff = client.works("diff", json!({"a": "old", "b": "below/new", "budget": 300}));
    assert!(diff.len() <= 900, "{diff}");
    let page = client.works("page", json!({"trace": "old", "file": "below/page.html"}));
    assert!(page.contains("below/page.html"), "{page}");
    let html = fs::read_to_string(dir.path().join("below/page.html")).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>"), "{}", &html[..40]);
    assert_eq!(client.end(), Some(0));
}

/// Traces of other tracers are listed and read: a file of perf, one of trace-cmd, and a session of LTTng.
#[test]
fn traces_of_other_tracers_are_served() {
    let dir = TempDir::new().unwrap();
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let seed = |name: &str| fs::read(seeds.join(name)).unwrap();
    let perf = [b"PERFILE2", &seed("perf_data/file")[..]].concat();
    fs::write(dir.path().join("perf.data"), perf).unwrap();
    let ftrace = [b"\x17\x08\x44tracing", &seed("trace_dat/version-7")[..]].concat();
    fs::write(dir.path().join("trace.dat"), ftrace).unwrap();
    fs::write(dir.path().join("notes.txt"), "no trace").unwrap();
    let deep = dir.path().join("session/ust/uid/1000/64-bit");
    fs::create_dir_all(&deep).unwrap();
    let lttng = seed("foreign/compact");
    let end = lttng.iter().position(|byte| *byte == 0).unwrap();
    fs::write(deep.join("metadata"), &lttng[..end]).unwrap();
    fs::write(deep.join("channel0_0"), &lttng[end + 1..]).unwrap();
    let mut client = Client::new(dir.path(), &[]);
    let list = client.works("list", json!({}));
    assert_eq!(list, "perf.data\nsession\ntrace.dat\n");
    for trace in list.lines() {
        let summary = client.works("report", json!({"trace": trace}));
        assert!(summary.contains(" events recorded, "), "{summary}");
    }
    client.fails("report", json!({"trace": "notes.txt"}), "no trace");
    // A link at any depth of a session leads to the outside.
    symlink("/etc/passwd", deep.join("channel0_1")).unwrap();
    let is_outside = "is outside of the server's directory";
    client.fails("report", json!({"trace": "session"}), is_outside);
    assert_eq!(client.end(), Some(0));
}

#[test]
fn no_tool_leaves_the_directory() {
    let dir = traces();
    let outside = TempDir::new().unwrap();
    let target = outside.path().join("page.html");
    symlink(&target, dir.path().join("dangling")).unwrap();
    symlink(outside.path(), dir.path().join("away")).unwrap();
    let mut client = Client::new(dir.path(), &[]);
    let is_outside = "is outside of the server's directory";
    for trace in [
        "..",
        "/",
        "link",
        "top/etc",
        "old/../../",
        "/proc/self/root",
        "top",
    ] {
        client.fails("report", json!({"trace": trace}), is_outside);
        client.fails("why", json!({"trace": trace, "who": "a"}), is_outside);
        client.fails(
            "query",
            json!({"traces": ["old", trace], "sql": "SELECT 1"}),
            is_outside,
        );
        client.fails("diff", json!({"a": "old", "b": trace}), is_outside);
        client.fails(
            "page",
            json!({"trace": trace, "file": "x.html"}),
            is_outside,
        );
    }
    client.fails("report", json!({"trace": "partly"}), is_outside);
    for file in ["../x.html", "/tmp/x.html", "away/x.html", "top/tmp/x.html"] {
        client.fails("page", json!({"trace": "old", "file": file}), is_outside);
    }
    client.fails(
        "page",
        json!({"trace": "old", "file": "dangling"}),
        "exists already",
    );
    client.fails(
        "page",
        json!({"trace": "old", "file": "old/metadata"}),
        "exists already",
    );
    client.fails("page", json!({"trace": "old", "file": ".."}), "no name");
    // This name is a file, not standard output.
    assert!(client
        .works("page", json!({"trace": "old", "file": "-"}))
        .contains("./-: a page"));
    // No text is taken for an option.
    client.fails("report", json!({"trace": "--html=x.html"}), "No such file");
    client.fails(
        "why",
        json!({"trace": "old", "who": "--html=x.html"}),
        "--html=x.html",
    );
    client.fails(
        "query",
        json!({"traces": ["old"], "sql": "--output=x.html"}),
        "the query is empty",
    );
    client.fails(
        "query",
        json!({"traces": ["old"], "sql": "ATTACH 'x.db' AS x"}),
        "a query only reads",
    );
    client.fails(
        "report",
        json!({"trace": "old", "from": "x --html=x.html"}),
        "--from",
    );
    assert!(fs::read_dir(outside.path()).unwrap().next().is_none());
    let names = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert!(names
        .into_iter()
        .all(|name| name != "x.html" && name != "x.db"));
    assert_eq!(client.end(), Some(0));
}

#[test]
fn arguments_are_checked() {
    let dir = traces();
    let mut client = Client::new(dir.path(), &[]);
    client.fails("report", json!({}), "missing field `trace`");
    client.fails(
        "report",
        json!({"trace": "old", "pid": 1}),
        "no argument is called `pid`",
    );
    client.fails("report", json!({"trace": 7}), "invalid type");
    client.fails(
        "report",
        json!({"trace": "old", "questions": ["moon"]}),
        "moon",
    );
    client.fails(
        "report",
        json!({"trace": "old", "budget": 5}),
        "at least 100 tokens",
    );
    client.fails("report", json!({"trace": "old\u{0}x"}), "old");
    client.fails("report", json!({"trace": "below"}), "no trace");
    client.fails("query", json!({"traces": []}), "at least one trace");
    client.fails(
        "query",
        json!({"traces": ["old"], "sql": "SELECT nope FROM sched_switch"}),
        "no such column",
    );
    client.fails("list", json!({"what": "events"}), "rtrace");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn recording_needs_permission() {
    let dir = traces();
    let options = ["--allow-record", "--most-time", "5s", "--most-bytes", "1M"];
    let mut client = Client::new(dir.path(), &options);
    let tools = client.ask("tools/list", json!({}));
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 7);
    let record = |more: Value| {
        let mut arguments = json!({"output": "new"});
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        arguments
    };
    client.fails("record", record(json!({"seconds": 6})), "at most 5 s");
    client.fails("record", record(json!({"seconds": 0})), "at least 1 s");
    client.fails(
        "record",
        record(json!({"bytes": 2 << 20})),
        "at most 1048576 bytes",
    );
    client.fails(
        "record",
        record(json!({"command": ["touch", "x"]})),
        "--allow-commands",
    );
    client.fails("record", record(json!({"output": "old"})), "exists already");
    client.fails("record", record(json!({"output": "../new"})), "is outside");
    // There is no module here.
    client.fails("record", record(json!({"seconds": 1})), "/nowhere");
    assert!(!dir.path().join("new").exists());
    assert_eq!(client.end(), Some(0));
    let alone = Command::new(cargo_bin("rtrace"))
        .args(["mcp", "--allow-commands"])
        .output()
        .unwrap();
    assert_eq!(alone.status.code(), Some(2));
}

/// A query that does not end.
fn endless() -> Value {
    let sql =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n";
    json!({"name": "query", "arguments": {"traces": ["old"], "sql": sql}})
}

#[test]
fn a_call_can_be_cancelled() {
    let dir = traces();
    let mut client = Client::new(dir.path(), &[]);
    let request = json!({"id": "long", "method": "tools/call", "params": endless()});
    client.send(request.to_string().as_bytes());
    // Requests are answered meanwhile.
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    let cancel = |id| json!({"method": "notifications/cancelled", "params": {"requestId": id}});
    client.send(cancel("other").to_string().as_bytes());
    // The call may not run yet: then nothing is cancelled.
    let params = json!({"name": "list", "arguments": {}});
    let next = json!({"id": "next", "method": "tools/call", "params": params});
    client.send(next.to_string().as_bytes());
    let mut cancelling = client.input;
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        while is_done
            .recv_timeout(std::time::Duration::from_millis(50))
            .is_err()
        {
            cancelling
                .write_all(format!("{}\n", cancel("long")).as_bytes())
                .unwrap();
        }
        drop(cancelling);
    });
    let mut line = String::new();
    client.output.read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(answer["id"], "next", "{answer}");
    done.send(()).unwrap();
    thread.join().unwrap();
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_signal_ends_the_server() {
    let dir = traces();
    let mut client = Client::new(dir.path(), &[]);
    let request = json!({"id": 1, "method": "tools/call", "params": endless()});
    client.send(request.to_string().as_bytes());
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    kill_process(Pid::from_child(&client.child), Signal::TERM).unwrap();
    assert_eq!(client.child.wait().unwrap().code(), Some(128 + 15));
}

#[test]
fn the_end_of_the_input_comes_after_the_answers() {
    let dir = traces();
    let mut client = Client::new(dir.path(), &[]);
    let params = json!({"name": "report", "arguments": {"trace": "old"}});
    for id in 0..5 {
        let request = json!({"id": id, "method": "tools/call", "params": params});
        client.send(request.to_string().as_bytes());
    }
    // The last line has no end.
    client
        .input
        .write_all(br#"{"id": 5, "method": "ping"}"#)
        .unwrap();
    let Client {
        mut child,
        input,
        output,
        ..
    } = client;
    drop(input);
    let answers = output
        .lines()
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let ids: BTreeSet<_> = answers.map(|answer| answer["id"].as_u64()).collect();
    assert_eq!(ids, (0..6).map(Some).collect());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
