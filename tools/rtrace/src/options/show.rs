// SPDX-License-Identifier: GPL-2.0

//! What `rtrace trace` works with.

use super::setup::choice;
use super::{rows, security};
use crate::args::{ChoiceArgs, FunctionArgs, ShowArgs};
use crate::commands::show::paths::Sources;
use crate::compat::{self, Patterns};
use crate::session::channels::pattern;
use crate::session::setup::Setup;
use control::{BufferSize, Mode};
use decode::is_call;
use network::{Credentials, Security};
use std::ffi::OsString;
use std::path::PathBuf;

/// What is printed without -e and -x.
const CALLS: &str = "syscalls";

/// Events that are recorded beside system calls, and not printed: whose descriptors a process gets, that it
/// ends, and which thread goes on when it executes a program.
const PROCESSES: [&str; 3] = [
    "sched_process_fork",
    "sched_process_exit",
    "sched_process_exec",
];

/// The same, where only some calls are printed, `close` among them: what else makes descriptors stand for other
/// files.
const REPLACING: [&str; 5] = ["dup2", "dup3", "close_range", "execve", "execveat"];

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
    /// Events that are recorded and not printed.
    pub unprinted: Vec<&'static str>,
    /// Patterns of the chosen calls, if more calls are recorded: those of 32-bit programs may be recorded all.
    pub chosen: Option<Patterns>,
    /// Sources of the files that descriptors stand for.
    pub files: Sources,
    /// The file to print to; standard output, if there is none.
    pub output: Option<PathBuf>,
    /// Whether that may be there already, and is replaced then.
    pub force: bool,
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
pub(super) fn show(args: ShowArgs) -> Result<Show, clap::Error> {
    let unprinted = unprinted(&args);
    let FunctionArgs {
        functions, graph, ..
    } = &args.choice.functions;
    let is_tree = !functions.is_empty() || !graph.is_empty();
    let mut chosen = None;
    let is_filtered = !args.choice.filters.is_empty();
    let input = match (args.input, args.from) {
        (Some(dir), _) => Input::Recorded(dir),
        (None, Some(address)) => Input::Received {
            address,
            security: security(args.network),
            name: args.of,
        },
        (None, None) => {
            let mut setup = choice(&args.choice, &[])?;
            for channel in &mut setup.channels {
                channel
                    .events
                    .get_or_insert_with(|| vec![CALLS.to_owned().into()]);
            }
            let patterns = Patterns::of(&setup);
            // The table counts what is recorded, the tree has all of it, and no filter is for these.
            if !args.summary && !is_tree && !is_filtered && patterns.miss_compat() {
                setup.record_also(compat::EVENTS.to_owned());
            }
            chosen = Some(patterns);
            let size = args.choice.buffer.unwrap_or(BufferSize::DEFAULT);
            for name in &unprinted {
                setup.record_also(match is_call(name) {
                    true => pattern(name),
                    false => format!("sched:{name}"),
                });
            }
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
        files: match &input {
            // Calls are missing: descriptors may have been closed by them.
            Input::Live { setup, .. } if setup.cpus.is_some() || is_filtered => Sources::None,
            Input::Live { .. } => Sources::EventsAndProc,
            Input::Recorded(_) | Input::Received { .. } => Sources::Events,
        },
        unprinted,
        chosen,
        is_tree,
        input,
        summary: args.summary.then_some(rows(args.rows)),
        output: args.output.filter(|file| file.as_os_str() != "-"),
        force: args.force,
    })
}

/// What is recorded beside what is chosen, for the names of files.
fn unprinted(args: &ShowArgs) -> Vec<&'static str> {
    let ChoiceArgs {
        events,
        exclude,
        functions,
        ..
    } = &args.choice;
    let has = |wanted: &str| events.iter().any(|pattern| pattern == wanted);
    let are_calls = events
        .iter()
        .all(|pattern| is_call(pattern) || pattern == CALLS);
    let is_all_but = events.is_empty() && !exclude.is_empty();
    let has_functions = !functions.functions.is_empty() || !functions.graph.is_empty();
    if !are_calls || is_all_but || has_functions {
        return Vec::new();
    }
    if events.is_empty() || has(CALLS) {
        return PROCESSES.to_vec();
    }
    // Without `close` there are no names. The table counts what is recorded.
    if !has("close") || args.summary {
        return Vec::new();
    }
    let replacing = REPLACING.into_iter().filter(|call| !has(call));
    PROCESSES.into_iter().chain(replacing).collect()
}
