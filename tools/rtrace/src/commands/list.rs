// SPDX-License-Identifier: GPL-2.0

//! `rtrace list`: the events that can be recorded, the contexts, and the probes in programs.

use crate::args::ListArgs;
use crate::schema::Schema;
use anyhow::bail;
use control::events::{self, Event};
use control::Tracer;
use record::place::Place;
use record::probe::{self, Argument, FileProbes};
use record::session::channels::{may_pick_nothing, patterns_of};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::slice;
use terminal::budget::Size;
use terminal::{print, printable};

/// Prints events, contexts or functions.
pub fn list(place: &Place, args: &ListArgs) -> anyhow::Result<()> {
    if let Some(pattern) = &args.functions {
        return names(&probe::functions(place, pattern)?, args);
    }
    if let Some(target) = &args.usdt {
        return in_programs(&probe::in_programs(target)?, args);
    }
    let tracer = place.tracer()?;
    match args {
        _ if args.contexts => names(&tracer.available_contexts()?, args),
        _ if args.awaited => awaited(&tracer, args),
        _ => available(&tracer, args),
    }
}

/// Prints the events that the patterns pick, as `set_event` takes them; all, without a pattern.
fn available(tracer: &Tracer, args: &ListArgs) -> anyhow::Result<()> {
    let ListArgs {
        patterns,
        verbose,
        json,
        ..
    } = args;
    let mut events = events::available(tracer)?;
    events.extend(events::of_ftrace(tracer, &events));
    let patterns: Vec<_> = patterns.iter().flat_map(|word| patterns_of(word)).collect();
    for word in &patterns {
        if may_pick_nothing(word) {
            continue;
        }
        if let Some(complaint) = events::unmatched(&events, slice::from_ref(word)) {
            if events::unmatched(&events::awaited(tracer)?, slice::from_ref(word)).is_none() {
                bail!("no event of a loaded module matches `{word}`: --awaited lists the events of other modules");
            }
            bail!(complaint);
        }
    }
    let picked = picked(&events, &patterns);
    if *json {
        let events = picked.into_iter().map(|event| Row {
            name: &event.name,
            aliases: &event.aliases,
            is_perf: event.is_of_ftrace,
            fields: verbose.then(|| events::fields(tracer, event)),
        });
        let events = events.collect();
        return Schema::Events.print(&Events { events }, args.size.budget);
    }
    let lines = picked.into_iter().map(|event| {
        let mut text = String::new();
        text.push_str(&event.name);
        if *verbose && !event.aliases.is_empty() {
            text.push_str(&format!(" ({})", event.aliases.join(", ")));
        }
        if event.is_of_ftrace {
            text.push_str(" [perf]");
        }
        text.push('\n');
        if *verbose {
            for field in events::fields(tracer, event).iter() {
                text.push_str(&format!("    {field}\n"));
            }
        }
        text
    });
    print_lines(&lines.collect::<Vec<_>>(), args)
}

/// The events, for JSON.
#[derive(JsonSchema, Serialize)]
pub struct Events<'a> {
    events: Vec<Row<'a>>,
}

/// Names of events, contexts or functions, for JSON.
#[derive(JsonSchema, Serialize)]
pub struct Names<'a> {
    names: &'a [String],
}

/// An event.
#[derive(JsonSchema, Serialize)]
struct Row<'a> {
    /// Name, as for `record -e`.
    name: &'a str,
    /// Names in ftrace and perf, if they differ.
    aliases: &'a [String],
    /// Whether perf provides the event.
    is_perf: bool,
    /// Fields, with --verbose.
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Cow<'a, [String]>>,
}

/// Prints names: a line each, or as JSON.
fn names(names: &[String], args: &ListArgs) -> anyhow::Result<()> {
    if args.json {
        return Schema::Names.print(&Names { names }, args.size.budget);
    }
    let lines = names.iter().map(|name| format!("{name}\n"));
    print_lines(&lines.collect::<Vec<_>>(), args)
}

/// The probes in the code of programs, for JSON.
#[derive(JsonSchema, Serialize)]
pub struct InPrograms<'a> {
    files: &'a [FileProbes],
}

/// Prints the probes of files: each location of a probe in a line.
fn in_programs(files: &[FileProbes], args: &ListArgs) -> anyhow::Result<()> {
    if args.json {
        return Schema::Usdt.print(&InPrograms { files }, args.size.budget);
    }
    let mut lines = Vec::new();
    for FileProbes { file, probes } in files {
        lines.push(format!("{}:\n", printable(file)));
        lines.extend(probes.iter().map(|site| {
            let arguments = (1..).zip(&site.arguments);
            let arguments = arguments.map(|(number, argument)| {
                let Argument {
                    ty, place, value, ..
                } = argument;
                let why = value.as_ref().err();
                let why = why.map(|reason| format!(" [not readable: {reason}]"));
                format!("arg{number}: {ty} {place}{}", why.unwrap_or_default())
            });
            let arguments: Vec<_> = arguments.collect();
            let semaphore = site.semaphore.as_ref();
            let semaphore = semaphore.map(|at| format!(", semaphore {:#x}", at.address));
            format!(
                "  {}:{}({}) at {:#x}{}\n",
                site.provider,
                site.name,
                arguments.join("; "),
                site.address,
                semaphore.unwrap_or_default()
            )
        }));
    }
    print_lines(&lines, args)
}

/// Prints a text for each row.
fn print_lines(lines: &[String], args: &ListArgs) -> anyhow::Result<()> {
    let size = Size::new(usize::MAX, args.size.budget);
    Ok(print(&size.text(|rows| {
        Ok(lines.iter().take(rows).map(String::as_str).collect())
    })?)?)
}

/// Prints the events of modules that are not loaded.
fn awaited(tracer: &Tracer, args: &ListArgs) -> anyhow::Result<()> {
    let events = events::awaited(tracer)?;
    if let Some(complaint) = events::unmatched(&events, &args.patterns) {
        bail!(complaint);
    }
    let picked = picked(&events, &args.patterns).into_iter();
    let picked: Vec<_> = picked.map(|event| event.name.clone()).collect();
    names(&picked, args)
}

/// The events that patterns pick; all, without a pattern.
fn picked<'a>(events: &'a [Event], patterns: &[String]) -> Vec<&'a Event> {
    if patterns.is_empty() {
        return events.iter().collect();
    }
    events::picked(events, patterns)
}
