// SPDX-License-Identifier: GPL-2.0

//! Choice of the events and lines of `rtrace trace`, by its arguments.

use super::call_filter::{check, picks_calls, CallFilter, FAILED};
use super::output::Output;
use super::paths::Sources;
use crate::args::settings::choice;
use crate::args::{trace, wrong, ChoiceArgs, Filtered, FunctionArgs, ShowArgs};
use analysis::choice::Part;
use control::{BufferSize, Mode};
use decode::{is_call, Architecture};
use network::{Credentials, Security};
use record::compat::{self, Patterns};
use record::session::channels::{may_pick_nothing, patterns, patterns_of};
use record::session::given::Given;
use record::session::setup::Setup;
use std::path::{Path, PathBuf};

/// Pattern of the events that are printed without -e and -x.
const CALLS: &str = "syscalls";

/// Events that are recorded beside system calls and are not printed. They say from which process a process inherits
/// descriptors, that a process ends, and which thread continues when a process executes a program.
const PROCESSES: [&str; 3] = ["sched_process_fork", EXIT, "sched_process_exec"];

/// Event of the end of a thread.
const EXIT: &str = "sched_process_exit";

/// Events of a signal that is sent, and of one that reaches a thread. Signals are printed with the system calls, as the end
/// of a thread is.
const SIGNALS: [&str; 2] = ["signal:signal_generate", "signal:signal_deliver"];

/// System calls that are recorded and not printed if only some calls are chosen, `close` among them. They too make
/// descriptors stand for other files.
const REPLACING: [&str; 5] = ["dup2", "dup3", "close_range", "execve", "execveat"];

/// Contexts with the process and thread of a line.
const CONTEXTS: [&str; 3] = ["pid", "tid", "comm"];

/// Context with the call stack of a line.
const STACK: &str = "callstack-user";

/// Choice of the lines to print.
pub struct Show {
    /// Source of the trace.
    pub input: Input,
    /// Filters of completed system calls.
    pub filters: Vec<CallFilter>,
    /// Patterns of the printed events of a recorded or received trace, as `set_event` takes them; all, if there is
    /// none.
    pub picked: Option<Vec<String>>,
    /// The printed part of a recorded or received trace.
    pub part: Part,
    /// Whether a tree of calls is printed, not lines.
    pub is_tree: bool,
    /// Whether requests of io_uring are printed if their events cost nothing until a program makes one.
    pub wants_requests: bool,
    /// Events that are recorded and not printed.
    pub unprinted: Vec<&'static str>,
    /// Patterns of the chosen calls, if more calls are recorded: all calls of 32-bit programs may be recorded.
    pub chosen: Option<Patterns>,
    /// Sources of the files that descriptors stand for.
    pub files: Sources,
    /// The arguments, as far as they are not in the other fields.
    pub args: ShowArgs,
}

impl Show {
    /// Opens the output.
    pub fn open(&self) -> anyhow::Result<Output> {
        Output::open(self.file(), self.args.force)
    }

    /// The file to print to; standard output, if there is none.
    pub fn file(&self) -> Option<&Path> {
        let file = self.args.output.as_deref();
        file.filter(|file| file.as_os_str() != "-")
    }

    /// The rows of a table of system calls at the end. Without it there is no table.
    pub fn summary(&self) -> Option<usize> {
        let has_table = self.args.summary || self.args.summary_only;
        has_table.then_some(self.args.rows)
    }
}

/// Source of the events.
pub enum Input {
    /// A recorded trace in this directory.
    Recorded(PathBuf),
    /// A trace that a receiver gets at this moment.
    Received {
        /// Address of the receiver.
        address: String,
        /// How the connection is protected.
        security: Security<Credentials>,
        /// The machine or the trace; the newest, if there is none.
        name: Option<String>,
    },
    /// A trace that is recorded now.
    Live {
        /// Settings of the session.
        setup: Box<Setup>,
    },
}

/// Takes the choice out of the arguments.
pub fn options(mut args: ShowArgs) -> Result<Show, clap::Error> {
    let is_live = args.input.is_none() && args.connect.is_none();
    for word in args
        .choice
        .events
        .iter_mut()
        .chain(&mut args.choice.exclude)
    {
        if let Some(call) = call_of(word) {
            *word = call;
        }
    }
    let mut unprinted = unprinted(&args);
    let FunctionArgs {
        functions, graph, ..
    } = &args.choice.functions;
    let is_tree = !functions.is_empty() || !graph.is_empty();
    let has_table = args.summary || args.summary_only;
    let mut chosen = None;
    let mut wants_requests = false;
    let mut filters = filters(&mut args, is_live);
    for CallFilter { expression, .. } in &filters {
        check(expression).map_err(|why| wrong(format_args!("--filter:\n{why}")))?;
    }
    if has_table && !filters.is_empty() {
        return Err(wrong(
            "--filter cannot be used with a summary: the table counts all calls",
        ));
    }
    if args.failed {
        for filter in &mut filters {
            filter.expression = format!("({}) && {FAILED}", filter.expression);
        }
        filters.insert(
            0,
            CallFilter {
                pattern: None,
                expression: FAILED.to_owned(),
            },
        );
    }
    let is_filtered = !filters.is_empty() || !args.choice.filters.is_empty();
    let typed = |words: &[String]| words.iter().cloned().map(Given::from).collect();
    // Default events as in a live trace, which records nothing else then.
    if !is_live && !filters.is_empty() && args.choice.events.is_empty() {
        args.choice.events.push(CALLS.to_owned());
    }
    let picked =
        (!is_live).then(|| patterns(typed(&args.choice.events), typed(&args.choice.exclude)));
    let picked = picked
        .flatten()
        .map(|picked| picked.into_iter().map(|given| given.value).collect());
    let part = match is_live {
        true => Part::default(),
        false => Part {
            from: args.from,
            to: args.to,
            pids: args.choice.pids.clone(),
            comms: args.comms.clone(),
            events: None,
        },
    };
    let input = match (args.input.take(), args.connect.take()) {
        (Some(dir), _) => Input::Recorded(trace(dir)?),
        (None, Some(address)) => Input::Received {
            address,
            security: args.network.security(),
            name: args.of.take(),
        },
        (None, None) => {
            let mut setup = choice(&args.choice, &[])?;
            for channel in &mut setup.channels {
                for filter in &mut channel.filters {
                    filter.patterns.retain(|pattern| !is_of_calls(pattern));
                }
                channel.filters.retain(|filter| !filter.patterns.is_empty());
                channel
                    .events
                    .get_or_insert_with(|| vec![CALLS.to_owned().into()]);
            }
            let patterns = Patterns::of(&setup);
            // The table counts all recorded calls, and the tree has all events. Filters do not apply to calls of 32-bit
            // programs.
            if !has_table && !is_tree && !is_filtered && patterns.miss_compat() {
                setup.record_also(compat::EVENTS.to_owned());
            }
            chosen = Some(patterns);
            let size = args.choice.buffer.unwrap_or(BufferSize::DEFAULT);
            let are_default = args.choice.events.is_empty() && args.choice.exclude.is_empty();
            if are_default && !is_filtered && !is_tree && !args.summary_only {
                wants_requests = true;
                unprinted.retain(|name| *name != EXIT);
                setup.record_also(format!("sched:{EXIT}"));
                SIGNALS.map(|event| setup.record_also(event.to_owned()));
            }
            let moving = match (args.bytes, are_default || args.choice.events.is_empty()) {
                (None, _) => Vec::new(),
                (Some(_), true) => vec!["syscall_data:*".to_owned()],
                (Some(_), false) => events_of_data(&args.choice.events),
            };
            moving
                .into_iter()
                .for_each(|event| setup.record_also(event));
            for name in &unprinted {
                if !is_call(name) {
                    setup.record_also(format!("sched:{name}"));
                    continue;
                }
                for pattern in patterns_of(name) {
                    setup.record_also(pattern);
                }
            }
            setup.fill(Some(Mode::Discard), Some(size));
            let stack = args.stack_trace.then_some(STACK);
            let contexts = CONTEXTS.into_iter().chain(stack);
            setup.contexts = Some(contexts.map(str::to_owned).collect::<Vec<_>>().into());
            setup.tasks.only_command = (!args.command.is_empty()).then(|| ().into());
            Input::Live {
                setup: Box::new(setup),
            }
        }
    };
    Ok(Show {
        files: match &input {
            _ if args.summary_only => Sources::None,
            // Calls are missing, and some of them may have closed descriptors.
            Input::Live { setup } if setup.cpus.is_some() || is_filtered => Sources::None,
            Input::Live { .. } => Sources::EventsAndProc,
            Input::Recorded(_) | Input::Received { .. } => Sources::Events,
        },
        unprinted,
        chosen,
        is_tree,
        wants_requests,
        input,
        filters,
        picked,
        part,
        args,
    })
}

/// The events with the bytes that the chosen calls move.
fn events_of_data(words: &[String]) -> Vec<String> {
    let is_all = words.iter().any(|word| word == CALLS);
    if is_all {
        return vec!["syscall_data:*".to_owned()];
    }
    let calls = words.iter().flat_map(|word| decode::chosen(word));
    let calls = calls.filter(|call| decode::data(call).is_some());
    calls
        .map(|call| format!("syscall_data:syscall_data_{call}"))
        .collect()
}

/// The call whose begin or end is this event, by rtrace's name or ftrace's. A line shows the call.
fn call_of(event: &str) -> Option<String> {
    let (not, name) = match event.strip_prefix('!') {
        Some(name) => ("!", name),
        None => ("", event),
    };
    let name = name.strip_prefix("syscalls:").unwrap_or(name);
    let mut prefixes = ["sys_enter_", "sys_exit_", "syscall_entry_", "syscall_exit_"].into_iter();
    let call = prefixes.find_map(|prefix| name.strip_prefix(prefix))?;
    is_call(call).then(|| format!("{not}{call}"))
}

/// Whether a pattern may pick system calls, or is the part for other events of such a pattern.
fn is_of_calls(pattern: &str) -> bool {
    picks_calls(pattern) || may_pick_nothing(pattern)
}

/// The filters for system calls. In a live trace, the kernel applies the others.
fn filters(args: &mut ShowArgs, is_live: bool) -> Vec<CallFilter> {
    let ChoiceArgs {
        events,
        filters,
        places,
        ..
    } = &mut args.choice;
    let mut of_calls = Vec::new();
    let mut others = Vec::new();
    for (expression, filtered) in filters.drain(..).zip(places.filters.drain(..)) {
        // The command has no -k.
        let Filtered::Patterns(words) = filtered else {
            continue;
        };
        let mut push = |pattern| {
            of_calls.push(CallFilter {
                pattern,
                expression: expression.clone(),
            });
        };
        if words.is_empty() && (events.is_empty() || !is_live) {
            push(is_live.then(|| CALLS.to_owned()));
            continue;
        }
        let patterns = events[words.clone()]
            .iter()
            .flat_map(|word| patterns_of(word));
        let (calls, rest): (Vec<_>, Vec<_>) =
            patterns.partition(|pattern| !is_live || is_of_calls(pattern));
        calls.into_iter().for_each(|pattern| push(Some(pattern)));
        if !rest.is_empty() || words.is_empty() {
            others.push((expression, Filtered::Patterns(words)));
        }
    }
    (*filters, places.filters) = others.into_iter().unzip();
    of_calls
}

/// Events that are recorded beside the chosen ones, for the names of files.
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
    // Without `close` no names are shown. The table counts all recorded calls.
    if !has("close") || args.summary || args.summary_only {
        return Vec::new();
    }
    // arm64 has no dup2.
    let exists = |call: &&str| decode::number(Architecture::HERE, call).is_some();
    let replacing = REPLACING
        .into_iter()
        .filter(|call| exists(call) && !has(call));
    PROCESSES.into_iter().chain(replacing).collect()
}
