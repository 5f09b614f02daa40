// SPDX-License-Identifier: GPL-2.0

//! What `rtrace trace` works with.

use super::rows;
use super::setup::choice;
use crate::args::{ChoiceArgs, FunctionArgs, NetworkArgs, ShowArgs};
use crate::decode::is_call;
use crate::setup::Setup;
use network::{Credentials, Security};
use std::ffi::OsString;
use std::path::PathBuf;
use trace::settings::{BufferSize, Mode};

/// What is printed without -e and -x.
const CALLS: &str = "syscalls";

/// Contexts by which a line says whose it is.
const CONTEXTS: [&str; 3] = ["pid", "tid", "comm"];

/// What is to be printed.
pub struct Show {
    /// Which trace.
    pub input: Input,
    /// The rows of a table of system calls at the end; none: there is no table.
    pub summary: Option<usize>,
    /// Whether a tree of calls is printed, not lines.
    pub is_tree: bool,
    /// The file to print to; standard output, if there is none.
    pub output: Option<PathBuf>,
}

/// Where events come from.
pub enum Input {
    /// One that was recorded, in this directory.
    Recorded(PathBuf),
    /// One that comes in at a receiver meanwhile.
    Received {
        /// Where that listens.
        address: String,
        /// How the connection is protected.
        security: Security<Credentials>,
        /// The machine, or the trace; any, if there is none.
        name: Option<String>,
    },
    /// One that is recorded meanwhile.
    Live {
        /// What to set.
        setup: Box<Setup>,
        /// The command to run, if any.
        command: Option<(OsString, Vec<OsString>)>,
    },
}

/// From the command line.
pub(super) fn show(mut args: ShowArgs) -> Result<Show, clap::Error> {
    let ChoiceArgs {
        events, exclude, ..
    } = &mut args.choice;
    for pattern in events.iter_mut().chain(exclude) {
        // Its begin and its end, whatever else is called so.
        if is_call(pattern) {
            *pattern = format!("syscall_*_{pattern}");
        }
    }
    let NetworkArgs {
        ca,
        cert,
        key,
        plain,
    } = args.network;
    let FunctionArgs {
        functions, graph, ..
    } = &args.choice.functions;
    let is_tree = !functions.is_empty() || !graph.is_empty();
    let input = match (args.input, args.from) {
        (Some(dir), _) => Input::Recorded(dir),
        (None, Some(address)) => Input::Received {
            address,
            security: Security::new(ca, cert, key, plain),
            name: args.of,
        },
        (None, None) => {
            let mut setup = choice(&args.choice, &[])?;
            for channel in &mut setup.channels {
                channel
                    .events
                    .get_or_insert_with(|| vec![CALLS.to_owned().into()]);
            }
            let size = args.choice.buffer.unwrap_or(BufferSize::DEFAULT);
            setup.fill(Some(Mode::Discard), Some(size));
            setup.contexts = Some(CONTEXTS.map(str::to_owned).to_vec().into());
            let mut command = args.command.into_iter();
            let command = command.next().map(|program| (program, command.collect()));
            setup.tasks.only_command = command.is_some().then(|| ().into());
            Input::Live {
                setup: Box::new(setup),
                command,
            }
        }
    };
    Ok(Show {
        is_tree,
        input,
        summary: args.summary.then_some(rows(args.rows)),
        output: args.output,
    })
}
