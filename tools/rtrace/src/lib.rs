// SPDX-License-Identifier: GPL-2.0

//! rtrace: records and reports what the Linux kernel does.
//!
//! The whole command `rtrace`. The public items besides [`main`] are what `tools/fuzz` calls.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod compat;
mod complete;
mod exit;
mod failure;
mod newest;
mod options;
mod probe;
mod recipes;
mod recording;
mod report;
mod run;
mod session;
mod state;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::CompleteEnv;
use commands::{
    control, count, diff, doctor, latency, list, mark, profile, recover, sessions, show, snapshot,
    status, top,
};
use options::Action;
use std::process::ExitCode;

pub use session::channels::may_pick_nothing;
pub use session::config::parse as parse_config;

/// Executes the command line.
pub fn main() -> ExitCode {
    CompleteEnv::with_factory(args::Cli::command).complete();
    system::files::open_many();
    let cli = args::Cli::from_words(std::env::args_os()).unwrap_or_else(|error| error.exit());
    cli.apply();
    let (place, action) = options::from_cli(cli).unwrap_or_else(|error| error.exit());
    let done = match action {
        Action::Record(mut options) => return recording::record(&place, &mut options),
        Action::Profile(options) => return profile::profile(&place, *options),
        Action::Latency(options) => return latency::latency(&place, &options),
        Action::LatencyOf {
            dir,
            measured,
            rows,
        } => latency::print(&dir, measured, rows),
        Action::Show(mut options) => return show::show(&place, &mut options),
        Action::Count(options) => return count::count(&place, &options),
        Action::ListRecipes => terminal::print(&recipes::all()).map_err(anyhow::Error::from),
        Action::Top(options) => top::top(&place, &options),
        Action::Report {
            dir,
            questions,
            choice,
            output,
        } => report::report(&dir, &questions, &choice, &output),
        Action::Graph {
            dir,
            choice,
            summary,
        } => show::graph(&dir, choice, summary),
        Action::Export(options) => export::export(&options),
        Action::Query(options) => query::query(&options),
        Action::ListQueries { dirs } => {
            query::list(&dirs).and_then(|text| Ok(terminal::print(&text)?))
        }
        Action::Diff { a, b, output } => diff::diff(&a, &b, &output),
        Action::List {
            patterns,
            verbose,
            json,
        } => list::list(&place, &patterns, verbose, json),
        Action::ListAwaited { patterns, json } => list::list_awaited(&place, &patterns, json),
        Action::ListFunctions { pattern, json } => {
            probe::functions(&place, &pattern).and_then(|functions| list::names(&functions, json))
        }
        Action::ListContexts { json } => list::list_contexts(&place, json),
        Action::Status { json } => status::status(&place, json),
        Action::Start { config, ensure } => control::start(&place, &config, ensure),
        Action::Stop => control::stop(&place),
        Action::Free => control::free(&place),
        Action::Reset => control::reset(&place),
        Action::Snapshot {
            dir,
            output_options,
        } => snapshot::snapshot(&place, &dir, output_options),
        Action::Recover(options) => recover::recover(&place, &options),
        Action::Mark { text } => mark::mark(&place, &text),
        Action::State => state::state(&place),
        Action::AddProbes { specs } => probe::add(&place, &specs),
        Action::ListProbes { json } => probe::list(&place, json),
        Action::DeleteProbes { names } => probe::delete(&place, &names),
        Action::Create { name, maps } => sessions::create(&place, &name, &maps),
        Action::Destroy { name } => sessions::destroy(&place, &name),
        Action::Sessions { json } => sessions::list(&place, json),
        Action::Doctor { root, json } => match doctor::doctor(&place, &root, json) {
            Ok(false) => return ExitCode::from(exit::DAMAGED),
            result => result.map(drop),
        },
        Action::Generate { dir } => manual::write(args::Cli::command(), &dir)
            .with_context(|| format!("cannot write to {}", dir.display())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(failure::report(&error)),
    }
}
