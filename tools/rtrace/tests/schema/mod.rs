// SPDX-License-Identifier: GPL-2.0

//! Answers of `--json`, checked against the schemas that `rtrace schema` prints.

use assert_cmd::Command;
use serde_json::{json, Value};

/// Parses an answer. Its schema must describe the answer, and each of its fields.
pub fn read(text: &[u8]) -> Value {
    let answer: Value = serde_json::from_slice(text).unwrap();
    let id = answer["schema"].as_str().expect("the name of a schema");
    let mut schema = schema(id.split('/').next().unwrap());
    assert_eq!(schema["title"], id);
    close(&mut schema, false);
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(&answer).collect();
    assert!(errors.is_empty(), "{id}: {errors:#?}\n{answer:#}");
    answer
}

/// Returns a schema.
pub fn schema(name: &str) -> Value {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    let output = command.args(["schema", name]).assert().success();
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

/// Makes a schema refuse fields that it does not describe. `is_part`: the fields belong to an object whose schema is
/// further out.
fn close(schema: &mut Value, is_part: bool) {
    match schema {
        Value::Object(fields) => {
            let is_object = fields.contains_key("properties");
            for (name, value) in fields.iter_mut() {
                let is_choice = ["allOf", "anyOf", "oneOf"].contains(&name.as_str());
                close(value, is_choice && (is_object || is_part));
            }
            if is_object && !is_part && !fields.contains_key("additionalProperties") {
                fields.insert("unevaluatedProperties".to_owned(), json!(false));
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| close(value, is_part)),
        _ => {}
    }
}
