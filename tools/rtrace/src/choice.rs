// SPDX-License-Identifier: GPL-2.0

//! What of the chosen events is recorded: which records, whose, on which CPUs, and what beside them.

use crate::args::RecordArgs;
use crate::cgroup;
use crate::channels::ChannelSetup;
use anyhow::Context;
use rustix::thread::gettid;
use std::fs;
use std::io;
use std::process::{Child, Command};
use std::thread;
use trace::session::Session;

/// What is asked for; nothing by default.
#[derive(Debug, Default)]
pub struct Choice {
    filters: Vec<Filter>,
    contexts: Vec<String>,
    cpus: Option<String>,
    pids: Vec<u32>,
    /// Paths, as the kernel has them.
    cgroups: Vec<String>,
    /// Only the command, and what it starts.
    only_command: bool,
}

/// A filter of some events of a channel.
#[derive(Debug)]
struct Filter {
    channel: String,
    patterns: Vec<String>,
    expression: String,
}

impl Choice {
    /// From the command line. The error is for people.
    pub fn new(args: &mut RecordArgs, channels: &[ChannelSetup]) -> Result<Self, String> {
        let mut filters = Vec::new();
        for (expression, at) in args.filters.drain(..).zip(&args.places.filters) {
            let place = args.places.events.get(at.start).filter(|_| !at.is_empty());
            let Some(channel) = place.and_then(|place| channels.get(*place)) else {
                return Err(format!(
                    "--filter `{expression}` stands behind no -e: it is for the events of the -e before it"
                ));
            };
            filters.push(Filter {
                channel: channel.name.clone(),
                patterns: args.setup.events[at.clone()].to_vec(),
                expression,
            });
        }
        if args.only && args.command.is_empty() {
            return Err("--only needs a COMMAND".to_owned());
        }
        Ok(Self {
            filters,
            contexts: args.contexts.drain(..).collect(),
            cpus: args.cpus.take(),
            pids: args.pids.drain(..).collect(),
            cgroups: cgroup::paths(&args.cgroups),
            only_command: args.only,
        })
    }

    /// Sets it.
    pub fn apply(&self, session: &Session) -> anyhow::Result<()> {
        for channel in session.channels()? {
            if !self.contexts.is_empty() {
                channel.set_contexts(&self.contexts)?;
            }
            if let Some(cpus) = &self.cpus {
                channel.set_cpus(cpus)?;
            }
            for filter in self.filters.iter().filter(|f| f.channel == channel.name()) {
                for pattern in &filter.patterns {
                    channel.set_filter(pattern, &filter.expression)?;
                }
            }
        }
        if !self.cgroups.is_empty() {
            session.set_cgroups(&self.cgroups)?;
        }
        let mut tasks = Vec::new();
        for pid in &self.pids {
            let threads = threads(*pid).with_context(|| format!("there is no process {pid}"))?;
            tasks.extend(threads);
        }
        if self.only_command {
            // Until the command comes.
            tasks.push(own_thread());
        }
        if !tasks.is_empty() {
            session.follow_tasks()?;
            session.set_tasks(&tasks)?;
        }
        Ok(())
    }

    /// Runs a command whose events are recorded, and those of what it starts.
    pub fn spawn(&self, session: &Session, mut command: Command) -> io::Result<Child> {
        if !self.only_command {
            return command.spawn();
        }
        let mut tasks = Vec::new();
        for pid in &self.pids {
            tasks.extend(threads(*pid).unwrap_or_default());
        }
        // A thread of its own: what it forks is recorded, and then it ends.
        thread::scope(|scope| {
            let spawning = scope.spawn(|| {
                tasks.push(own_thread());
                session.set_tasks(&tasks).map_err(io::Error::other)?;
                command.spawn()
            });
            spawning
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
        })
    }
}

fn own_thread() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The threads that a process has now.
fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(names.collect())
}
