// SPDX-License-Identifier: GPL-2.0

//! The values that the program uses, from the command line as typed.

use crate::args::Args;
use crate::metrics::Metrics;
use crate::receive::Receive;
use clap::CommandFactory;
use network::{absolute_address, Destination, Directory, Security};
use rustix::process::Signal;
use std::io;
use std::path::{absolute, PathBuf};
use store::{OutputOptions, Rotate, Writing};
use system::access::Access;

/// The action of the program.
pub enum Action {
    /// Start the second process, and wait until it is ready.
    Detach,
    /// Write the trace.
    Serve(Options),
    /// Receive traces of other machines.
    Receive(Receive),
    /// Serve metrics.
    Metrics(Metrics),
    /// Write man pages and completions.
    Generate(PathBuf),
}

/// Settings for writing a trace.
pub struct Options {
    /// Destination of the trace.
    pub destination: Destination,
    /// Session to read.
    pub session: String,
    /// Directory that contains the tracer's directory.
    pub debugfs: PathBuf,
    /// File for the process id.
    pub pid_file: Option<PathBuf>,
    /// Take the unread part of a trace that was stopped before.
    pub leftover: bool,
    /// Write a snapshot at each request, and nothing else.
    pub snapshot_on: Option<Signal>,
    /// Write each trace to a directory of its own in the destination, and keep this number of them; 0: all.
    pub keep_traces: Option<usize>,
    /// Detach as soon as it waits, or the streams are open.
    pub detached: bool,
}

impl Action {
    /// Converts the command line. Only this function does that.
    pub fn from_args(args: Args) -> io::Result<Self> {
        if let Some(dir) = args.generate {
            return Ok(Self::Generate(dir));
        }
        if !args.foreground && !args.detached {
            return Ok(Self::Detach);
        }
        let file = |path: Option<PathBuf>| path.map(absolute).transpose();
        let (ca, cert, key) = (file(args.ca)?, file(args.cert)?, file(args.key)?);
        let security = Security::new(ca, cert, key, args.plain);
        let pid_file = file(args.pid_file)?;
        let debugfs = args.debugfs.unwrap_or_else(control::usual_place);
        if let Some(address) = args.metrics {
            return Ok(Self::Metrics(Metrics {
                address,
                keys: args.metrics_keys,
                security,
                session: args.session,
                debugfs,
                pid_file,
                detached: args.detached,
            }));
        }
        let connect = args.connect.map(absolute_address).transpose()?;
        let listen = args.listen.map(absolute_address).transpose()?;
        let destination = match (args.output, connect) {
            (_, Some(address)) => Destination::Receiver { address, security },
            (Some(path), None) => {
                let directory = Directory {
                    path: absolute(path)?,
                    options: OutputOptions {
                        writing: Writing::from_direct(args.direct),
                        access: Access::new(args.mode, args.group),
                        rotate: Rotate::new(args.rotate, args.keep),
                    },
                };
                if let Some(address) = listen {
                    return Ok(Self::Receive(Receive {
                        address,
                        security,
                        directory,
                        quota: args.quota,
                        pid_file,
                        detached: args.detached,
                    }));
                }
                Destination::Directory(directory)
            }
            (None, None) => Args::command()
                .error(clap::error::ErrorKind::MissingRequiredArgument, "--output")
                .exit(),
        };
        Ok(Self::Serve(Options {
            destination,
            session: args.session,
            debugfs,
            pid_file,
            leftover: args.leftover,
            snapshot_on: args.snapshot_on,
            keep_traces: args.keep_traces,
            detached: args.detached,
        }))
    }
}
