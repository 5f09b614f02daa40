// SPDX-License-Identifier: GPL-2.0

//! Options of `rtrace profile`, converted from the arguments as typed.

use super::record::{new_directory, Conditions, Record};
use crate::args::ProfileArgs;
use crate::commands::profile::Pace;
use crate::report::Output;
use crate::session::channels::ChannelSetup;
use crate::session::setup::Setup;
use crate::session::tasks::Tasks;
use control::{BufferSize, Mode, FIRST_CHANNEL};
use network::{Destination, Directory};

/// Contexts recorded with each sample.
const CONTEXTS: [&str; 5] = ["pid", "tid", "comm", "callstack-kernel", "callstack-user"];

/// A profile.
pub struct Profile {
    /// Options of the recording, without the event of the samples.
    pub record: Record,
    /// Trigger of the samples. Without it, the best one that this machine has.
    pub pace: Option<Pace>,
    /// How the functions are printed.
    pub output: Output,
}

/// Converts the arguments.
pub fn profile(args: ProfileArgs) -> Profile {
    let mut command = args.command.into_iter();
    let command = command.next().map(|program| (program, command.collect()));
    let is_only = command.is_some() && !args.all_cpus && args.pids.is_empty();
    let mut setup = Setup {
        contexts: Some(CONTEXTS.map(str::to_owned).to_vec().into()),
        cpus: args.cpus.map(Into::into),
        sample_frequency: Some(args.freq.into()),
        tasks: Tasks {
            pids: (!args.pids.is_empty()).then(|| args.pids.into()),
            cgroups: None,
            only_command: is_only.then(|| ().into()),
        },
        channels: vec![ChannelSetup::named(FIRST_CHANNEL)],
        ..Setup::default()
    };
    let size = args.buffer.unwrap_or(BufferSize::DEFAULT);
    setup.fill(Some(Mode::Discard), Some(size));
    let record = Record {
        setup,
        conditions: Conditions {
            duration: args.duration,
            ..Conditions::default()
        },
        probes: Vec::new(),
        session: None,
        is_named: args.output.is_some(),
        destination: Destination::Directory(Directory {
            path: args.output.unwrap_or_else(new_directory),
            options: args.access.output(),
        }),
        symbols: true,
        debuginfod: args.debuginfod,
        fail_on_loss: false,
        command,
    };
    Profile {
        record,
        pace: args.by,
        output: match args.json {
            true => Output::Json,
            false => Output::Text { rows: args.rows },
        },
    }
}
