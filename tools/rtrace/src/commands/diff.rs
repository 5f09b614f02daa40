// SPDX-License-Identifier: GPL-2.0

//! `rtrace diff`: what changed between two traces.

use crate::report::Output;
use anyhow::Context;
use std::path::Path;
use terminal::{harmless_json, print, say};

/// Compares two traces, and prints what changed or writes it to a page.
pub fn diff(a: &Path, b: &Path, output: &Output) -> anyhow::Result<()> {
    let target = match output {
        Output::Page(target) => Some((target, target.open(true)?)),
        Output::Text { .. } | Output::Json | Output::Served => None,
    };
    let (compared, verdict) = ::diff::compare(a, b)?;
    if let Some((target, mut file)) = target {
        let failed = || format!("cannot write {target}");
        let page = compared.html()?;
        file.writer()
            .write_all(page.as_bytes())
            .with_context(failed)?;
        file.finish().with_context(failed)?;
        say(format_args!("{target}: a page of the comparison"));
        return verdict;
    }
    let text = match output {
        Output::Text { rows } => compared.text(*rows)?,
        _ => harmless_json(serde_json::to_string_pretty(&compared)? + "\n"),
    };
    print(&text)?;
    verdict
}
