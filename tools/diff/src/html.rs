// SPDX-License-Identifier: GPL-2.0

//! A comparison as a page for a browser, without script and network.

use crate::change::{Compared, NameChanges};
use std::fmt::{self, Write};
use terminal::printable;

/// Head of the page.
const HEAD: &str = r#"<!DOCTYPE html>
<!-- Written by `rtrace diff --html`. -->
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="color-scheme" content="light dark">
<title>rtrace diff</title>
<style>
body { font: 14px/1.5 system-ui, sans-serif; margin: 1.5em; max-width: 1100px; }
pre { white-space: pre-wrap; }
table { border-collapse: collapse; }
th, td { padding: 2px 14px 2px 0; text-align: left; border-bottom: 1px solid #8884; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.exceeds td.number, tr.exceeds td.mark { font-weight: bold; }
summary { font-size: 1.15em; font-weight: 600; margin-top: 1em; cursor: pointer; }
</style>
</head>
<body>
<h1>What changed between two traces</h1>
"#;

impl Compared {
    /// Returns the comparison as a page, with all names.
    pub fn html(&self) -> Result<String, fmt::Error> {
        let mut out = HEAD.to_owned();
        let mut head = String::new();
        self.head(&mut head)?;
        writeln!(out, "<pre>{}</pre>", escaped(&head))?;
        for rows in self.rows.chunk_by(|a, b| a.kind == b.kind) {
            table(rows, &mut out)?;
        }
        out.push_str("</body>\n</html>\n");
        Ok(out)
    }
}

fn table(rows: &[NameChanges], out: &mut String) -> fmt::Result {
    let heading = rows.first().map_or("", |row| row.kind.heading());
    let marked = rows.iter().flat_map(|row| &row.changes);
    let marked = marked.filter(|change| change.exceeds).count();
    let open = if marked > 0 { " open" } else { "" };
    writeln!(
        out,
        "<details{open}>\n<summary>{heading} ({marked} changes exceed the variation)</summary>\n<table>\n\
         <thead><tr><th>name</th><th>quantity</th><th>A</th><th>B</th><th>change</th><th></th></tr></thead>\n<tbody>"
    )?;
    for row in rows {
        let mut name = escaped(&printable(&row.name));
        for change in &row.changes {
            let (class, mark) = match change.exceeds {
                true => (" class=\"exceeds\"", "*"),
                false => ("", ""),
            };
            let quantity = change.quantity;
            let numbers = [
                quantity.show(change.a),
                quantity.show(change.b),
                change.show(),
            ];
            let cells =
                numbers.map(|number| format!("<td class=\"number\">{}</td>", escaped(&number)));
            writeln!(
                out,
                "<tr{class}><td>{}</td><td>{}</td>{}<td class=\"mark\">{mark}</td></tr>",
                std::mem::take(&mut name),
                quantity.heading(),
                cells.concat()
            )?;
        }
    }
    writeln!(out, "</tbody>\n</table>\n</details>")
}

/// A text in which no character is markup.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}
