// SPDX-License-Identifier: GPL-2.0

//! `rtrace schema` and `--budget`.

mod schema;

use assert_cmd::Command;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The fields of all schemas, a line each.
const FIELDS: &str = "tests/schemas.text";

fn rtrace(words: &[&str]) -> String {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    let output = command.args(words).assert().success();
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

/// The traces that older versions recorded.
fn kept() -> Vec<PathBuf> {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/traces");
    let entries = fs::read_dir(traces).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let traces: Vec<_> = paths.filter(|path| path.is_dir()).collect();
    assert!(traces.len() >= 2);
    traces
}

/// The type that a part of a schema describes.
fn kind(schema: &Value) -> String {
    let list = |schemas: &Value, separator: &str| {
        let schemas = schemas.as_array().unwrap().iter();
        schemas.map(kind).collect::<Vec<_>>().join(separator)
    };
    let mut parts = Vec::new();
    for (key, value) in schema.as_object().into_iter().flatten() {
        parts.push(match key.as_str() {
            "$ref" => value
                .as_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
                .to_owned(),
            "type" | "enum" | "const" | "minimum" | "minItems" | "maxItems" => {
                format!("{key} {value}")
            }
            "items" | "additionalProperties" => format!("{key} ({})", kind(value)),
            "anyOf" | "oneOf" | "allOf" => format!("({})", list(value, " | ")),
            "prefixItems" => format!("[{}]", list(value, ", ")),
            "properties" => {
                let fields = value.as_object().unwrap().iter();
                let fields = fields.map(|(name, value)| format!("{name}: {}", kind(value)));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
            }
            "$schema" | "$defs" | "title" | "description" | "format" | "required" => continue,
            other => panic!("{other}: {value}"),
        });
    }
    parts.join(", ")
}

/// Adds a line for each field of a schema or of a definition in it.
fn fields(id: &str, name: &str, schema: &Value, lines: &mut BTreeSet<String>) {
    let required: Vec<_> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    for (field, value) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.iter().any(|name| *name == field);
        let optional = if is_required { "" } else { "?" };
        lines.insert(format!("{id} {name}.{field}{optional}: {}", kind(value)));
    }
    let mut rest = schema.clone();
    rest.as_object_mut().unwrap().remove("properties");
    lines.insert(format!("{id} {name}: {}", kind(&rest)));
}

/// If this test fails, a schema has changed. If it has only more fields, add their lines to the file: `UPDATE=1` does.
/// Otherwise raise the version of the schema first.
#[test]
fn a_version_of_a_schema_keeps_its_fields() {
    let mut lines = BTreeSet::new();
    let list = rtrace(&["schema"]);
    for line in list.lines() {
        let (id, command) = line.split_once(' ').unwrap();
        assert!(command.trim().starts_with("`rtrace "), "{line}");
        let (name, version) = id.split_once('/').unwrap();
        assert!(version.parse::<u32>().unwrap() > 0);
        let schema = schema::schema(name);
        assert_eq!(schema["title"], id);
        assert_eq!(schema["properties"]["schema"]["const"], id);
        fields(id, "answer", &schema, &mut lines);
        for (name, schema) in schema["$defs"].as_object().into_iter().flatten() {
            fields(id, name, schema, &mut lines);
        }
    }
    let text = lines
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join("\n")
        + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIELDS);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let before = fs::read_to_string(&path).unwrap();
    let before: BTreeSet<_> = before.lines().map(str::to_owned).collect();
    let gone: Vec<_> = before.difference(&lines).collect();
    assert!(gone.is_empty(), "gone or changed: {gone:#?}");
    let new: Vec<_> = lines.difference(&before).collect();
    assert!(new.is_empty(), "new: {new:#?}");
}

#[test]
fn answers_about_kept_traces_have_their_schemas() {
    for trace in kept() {
        let trace = trace.to_str().unwrap();
        let summary = schema::read(rtrace(&["report", "--json", trace]).as_bytes());
        assert_eq!(summary["schema"], "summary/1");
        assert!(summary["recorded"].as_u64() > Some(0));
        for question in ["--threads", "--latency", "--cpu", "--syscalls"] {
            let mut command = Command::cargo_bin("rtrace").unwrap();
            let output = command
                .args(["report", "--json", question, trace])
                .output()
                .unwrap();
            // A trace may lack the events of a question.
            if output.status.success() {
                assert_eq!(schema::read(&output.stdout)["schema"], "report/1");
            }
        }
        let diff = schema::read(rtrace(&["diff", "--json", trace, trace]).as_bytes());
        assert_eq!(diff["schema"], "diff/1");
        let why = schema::read(rtrace(&["why", "--json", "*", trace]).as_bytes());
        assert!(why["why"]["causes"]
            .as_array()
            .is_some_and(|causes| !causes.is_empty()));
    }
}

#[test]
fn a_budget_bounds_each_answer() {
    let trace = &kept()[0];
    let trace = trace.to_str().unwrap();
    let asks: [&[&str]; 5] = [
        &["report", trace],
        &["report", "--threads", "--cpu", trace],
        &["why", "*", trace],
        &["diff", trace, trace],
        &[
            "query",
            "SELECT ns, next_comm FROM sched_switch ORDER BY ns",
            trace,
        ],
    ];
    for ask in asks {
        let is_query = ask[0] == "query";
        let whole = rtrace(&[&ask[..1], &["-n", "0"], &ask[1..]].concat());
        let most = rtrace(&[&ask[..1], &["--budget", "1000000"], &ask[1..]].concat());
        assert_eq!(most, whole);
        let json: &[&str] = if is_query {
            &["--format", "json"]
        } else {
            &["--json"]
        };
        let object = schema::read(rtrace(&[&ask[..1], json, &ask[1..]].concat()).as_bytes());
        for budget in ["200", "500", "700"] {
            let most = 3 * budget.parse::<usize>().unwrap();
            let text = rtrace(&[&ask[..1], &["--budget", budget], &ask[1..]].concat());
            assert!(text.len() <= most, "{ask:?}: {} bytes: {text}", text.len());
            let is_left_out = text.lines().last().unwrap().contains(" left out: ");
            assert_eq!(is_left_out, text != whole, "{ask:?}: {text}");
            let cut = rtrace(&[&ask[..1], &["--budget", budget], json, &ask[1..]].concat());
            let cut = schema::read(cut.as_bytes());
            assert_eq!(cut.get("left_out").is_none(), cut == object, "{cut}");
            if is_query {
                let rows = |answer: &Value| answer["rows"].as_array().unwrap().len() as u64;
                let left = cut["left_out"]["rows"].as_u64().unwrap_or(0);
                assert_eq!(rows(&cut) + left, rows(&object), "{cut}");
            }
        }
    }
    for wrong in [
        &["report", "--budget", "10", trace][..],
        &["report", "--budget", "1000", "-n", "3", trace],
        &[
            "query", "--budget", "1000", "--format", "csv", "SELECT 1", trace,
        ],
    ] {
        let mut command = Command::cargo_bin("rtrace").unwrap();
        command.args(wrong).assert().code(2);
    }
}
