// SPDX-License-Identifier: GPL-2.0

//! rtraced: moves a trace from the kernel to disk.

#![forbid(unsafe_code)]

mod args;
mod detach;
mod failure;
mod log;
mod look;
mod metrics;
mod notify;
mod options;
mod pid_file;
mod receive;
mod serve;
mod snapshots;
mod traces;

use anyhow::Context;
use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use failure::Failure;
use log::Log;
use options::Action;
use std::process::ExitCode;

fn main() -> ExitCode {
    CompleteEnv::with_factory(args::Args::command).complete();
    let log = Log::stderr();
    run(args::Args::parse(), &log).unwrap_or_else(|failure| {
        log.error(&failure.to_string());
        failure.exit_code()
    })
}

fn run(args: args::Args, log: &Log) -> Result<ExitCode, Failure> {
    match Action::from_args(args).context("cannot find the current directory")? {
        Action::Detach => detach::detach(),
        Action::Serve(options) => serve::serve(&options, log),
        Action::Metrics(options) => metrics::serve(&options, log),
        Action::Receive(options) => receive::receive(&options, log),
        Action::Generate(dir) => manual::write(args::Args::command(), &dir)
            .with_context(|| format!("cannot write to {}", dir.display()))
            .map(|()| ExitCode::SUCCESS)
            .map_err(Failure::from),
    }
}
