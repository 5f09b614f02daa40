// SPDX-License-Identifier: GPL-2.0

//! The table in Documentation/verification.md.

use super::Suite;
use std::path::Path;

const HEAD: &str = "| fault | what is wrong | found by | which says |\n| --- | --- | --- | --- |\n";

/// Checks that the table of `suite` there consists of `lines`. With `RTRACE_TABLES=write` it writes
/// the table.
pub fn check(suite: Suite, lines: &str) -> Result<(), String> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../Documentation/verification.md");
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{file:?}: {error}"))?;
    let (begin, end) = (format!("<!-- faults: {suite:?} -->\n"), "<!-- end -->");
    let table = text.split_once(&begin).and_then(|(before, rest)| {
        let (table, after) = rest.split_once(end)?;
        Some((before, table, after))
    });
    let (before, table, after) = table.ok_or(format!("{file:?} has no table after {begin}"))?;
    let expected = format!("{HEAD}{lines}");
    if table == expected {
        Ok(())
    } else if std::env::var("RTRACE_TABLES").is_ok_and(|value| value == "write") {
        let text = format!("{before}{begin}{expected}{end}{after}");
        std::fs::write(&file, text).map_err(|error| format!("{file:?}: {error}"))
    } else {
        Err(format!(
            "the table of {suite:?} in Documentation/verification.md is not what was found; \
             scripts/verify-tables writes it"
        ))
    }
}
