// SPDX-License-Identifier: GPL-2.0

//! The command `rtrace`: records and reports what the Linux kernel does.

#![forbid(unsafe_code)]

mod args;
mod cause;
mod commands;
mod complete;
mod condition;
mod definitions;
mod failure;
mod finder;
mod newest;
mod report;
mod schema;

use ::record::exit::{Code, DONE};
use ::record::place::Place;
use ::record::state;
use anyhow::Context;
use args::{wrong, Cli, Command, SessionCommand};
use clap::CommandFactory;
use clap_complete::CompleteEnv;
use commands::{
    control, count, diff, doctor, export, latency, list, mark, profile, query, record, recover,
    sessions, show, snapshot, status, top,
};
use std::process::ExitCode;

/// Executes the command line.
fn main() -> ExitCode {
    CompleteEnv::with_factory(Cli::command).complete();
    system::files::open_many();
    let cli = Cli::from_words(std::env::args_os()).unwrap_or_else(|error| error.exit());
    cli.apply();
    ExitCode::from(run(cli).unwrap_or_else(|error| failure::report(&error)))
}

/// Executes a command, and returns the exit code.
fn run(cli: Cli) -> anyhow::Result<Code> {
    let place = &Place {
        debugfs: cli.debugfs.unwrap_or_else(::control::usual_place),
        session: cli.session,
    };
    if place.session.is_some() && cli.command.makes_its_session() {
        return Err(wrong(
            "--session cannot be used with this command, which creates its own session",
        )
        .into());
    }
    match cli.command {
        Command::Record(args) => return record::record(place, *args),
        Command::Profile(args) => return profile::profile(place, *args),
        Command::Latency(args) => return latency::latency(place, args),
        Command::Trace(args) => return show::show(place, *args),
        Command::Count(args) => return count::count(place, &args),
        Command::Mcp(args) => return commands::mcp::serve(place, cli.utc, &args),
        Command::Doctor(args) => return doctor::doctor(place, &args),
        Command::Top(args) => top::top(place, args),
        Command::Report(args) if args.graph => show::graph(&args),
        Command::Report(args) => commands::report::report(args),
        Command::Why(args) => commands::why::explain(args),
        Command::Export(args) => export::export(args),
        Command::Query(args) => query::query(args),
        Command::Diff(args) => diff::diff(args),
        Command::List(args) => list::list(place, &args),
        Command::Schema(args) => definitions::print(args.answer),
        Command::Status(args) => status::status(place, args.json),
        Command::Start(args) => control::start(place, &args),
        Command::Stop => control::stop(place),
        Command::Snapshot(args) => snapshot::snapshot(place, &args),
        Command::Recover(args) => recover::recover(place, &args),
        Command::Mark(args) => mark::mark(place, &args),
        Command::State(_) => state::record(&place.session()?),
        Command::Probe(args) => commands::probe::probe(place, &args),
        Command::Session(SessionCommand::List(args)) => sessions::list(place, args.json),
        Command::Session(SessionCommand::Create(args)) => sessions::create(place, &args),
        Command::Session(SessionCommand::Destroy(args)) => sessions::destroy(place, &args.name),
        Command::Session(SessionCommand::Reset) => control::reset(place),
        Command::Session(SessionCommand::Free) => control::free(place),
        Command::Generate(args) => manual::write(Cli::command(), &args.dir)
            .with_context(|| format!("cannot write to {}", args.dir.display())),
    }?;
    Ok(DONE)
}
