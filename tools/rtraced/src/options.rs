// SPDX-License-Identifier: GPL-2.0

//! What the program works with, from what was typed.

use crate::args::Args;
use crate::receive::Receive;
use clap::CommandFactory;
use network::{absolute_address, Destination, Directory, Security};
use std::io;
use std::path::{absolute, PathBuf};
use store::{OutputOptions, Rotate, Writing};
use system::access::Access;

/// What to do.
pub enum Action {
    /// Start the detached half and wait until it is ready.
    Detach,
    /// Write the trace.
    Serve(Options),
    /// Take traces of other machines.
    Receive(Receive),
    /// Write man pages and completions.
    Generate(PathBuf),
}

/// How to write the trace.
pub struct Options {
    /// Where it goes.
    pub destination: Destination,
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
            debugfs: args.debugfs,
            pid_file,
            leftover: args.leftover,
            snapshots: args.snapshots,
            detached: args.detached,
        }))
    }
}
