// SPDX-License-Identifier: GPL-2.0

//! What the program works with, from what was typed.

use crate::args::Args;
use clap::CommandFactory;
use std::io;
use std::path::{absolute, PathBuf};
use trace::access::Access;
use trace::output::OutputOptions;
use trace::rotate::Rotate;
use trace::writing::Writing;

/// What to do.
pub enum Action {
    /// Start the detached half and wait until it is ready.
    Detach,
    /// Write the trace.
    Serve(Options),
    /// Write man pages and completions.
    Generate(PathBuf),
}

/// How to write the trace.
pub struct Options {
    /// Directory for it.
    pub output: PathBuf,
    /// How to write there.
    pub output_options: OutputOptions,
    /// Session to read.
    pub session: String,
    /// Where debugfs is mounted.
    pub debugfs: PathBuf,
    /// Where the process id goes.
    pub pid_file: Option<PathBuf>,
    /// Take what is left of a trace that was stopped before.
    pub leftover: bool,
    /// Write what the buffers hold each time that it is asked for, and nothing else.
    pub snapshots: bool,
    /// Detach as soon as it waits, or the streams are open.
    pub detached: bool,
}

impl Action {
    /// The one conversion.
    pub fn from_args(args: Args) -> io::Result<Self> {
        let Some(output) = args.output else {
            return Ok(match args.generate {
                Some(dir) => Self::Generate(dir),
                None => Args::command()
                    .error(clap::error::ErrorKind::MissingRequiredArgument, "--output")
                    .exit(),
            });
        };
        if !args.foreground && !args.detached {
            return Ok(Self::Detach);
        }
        Ok(Self::Serve(Options {
            output: absolute(output)?,
            output_options: OutputOptions {
                writing: Writing::from_direct(args.direct),
                access: Access::new(args.mode, args.group),
                rotate: Rotate::new(args.rotate, args.keep),
            },
            session: args.session,
            debugfs: args.debugfs,
            pid_file: args.pid_file.map(absolute).transpose()?,
            leftover: args.leftover,
            snapshots: args.snapshots,
            detached: args.detached,
        }))
    }
}
