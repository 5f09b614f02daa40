// SPDX-License-Identifier: GPL-2.0

//! `rtrace diff`: what changed between two traces.

use crate::args::DiffArgs;
use crate::schema::Schema;
use anyhow::Context;
use export::Target;
use terminal::budget::Size;
use terminal::{print, say};

/// Compares two traces, and prints what changed or writes it to a page.
pub fn diff(args: DiffArgs) -> anyhow::Result<()> {
    let target = args.html.map(|file| Target::named(file, args.force));
    let file = target
        .as_ref()
        .map(|target| target.open(true))
        .transpose()?;
    let (mut compared, verdict) = ::diff::compare(&args.a, &args.b)?;
    if let (Some(target), Some(mut file)) = (target, file) {
        let failed = || format!("cannot write {target}");
        let page = compared.html()?;
        file.writer()
            .write_all(page.as_bytes())
            .with_context(failed)?;
        file.finish().with_context(failed)?;
        say(format_args!("{target}: a page of the comparison"));
        return verdict;
    }
    let text = match args.json {
        true => {
            if args.size.budget.is_some() {
                compared.mark_first();
            }
            Schema::Diff.json(&compared, args.size.budget)?
        }
        false => Size::new(args.rows, args.size.budget).text(|rows| compared.text(rows))?,
    };
    print(&text)?;
    verdict
}
