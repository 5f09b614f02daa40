// SPDX-License-Identifier: GPL-2.0

//! Options of `rtrace record`, converted from the arguments as typed.

use super::setup::{add_state, config, probe_filters};
use super::wrong;
use crate::args::RecordArgs;
use crate::run::condition::Condition;
use crate::session::channels::ChannelSetup;
use crate::session::given::Given;
use crate::session::maker::Maker;
use crate::session::setup::Setup;
use control::{BufferSize, Mode};
use network::{Destination, Directory};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use store::{OutputOptions, Rotate, Writing};
use system::time;

/// Conditions that end a recording or cause a snapshot.
#[derive(Debug, Default)]
pub struct Conditions {
    /// Conditions that end the recording.
    pub until: Vec<Condition>,
    /// Number of packets to record after an event that ends the recording. Without it, the event ends the recording at
    /// once.
    pub after: Option<u64>,
    /// Conditions that cause a snapshot.
    pub snapshot_on: Vec<Condition>,
    /// Number of snapshots after which the recording ends.
    pub snapshots: Option<u64>,
    /// Maximum duration of the recording.
    pub duration: Option<Duration>,
}

impl Conditions {
    /// Converts the arguments. The error is a text for the user.
    fn new(args: &mut RecordArgs, channels: &[ChannelSetup]) -> Result<Self, String> {
        let conditions = Self {
            until: args.until.drain(..).collect(),
            after: args.after,
            snapshot_on: args.snapshot_on.drain(..).collect(),
            snapshots: args.snapshots,
            duration: args.duration,
        };
        let Self {
            until, snapshot_on, ..
        } = &conditions;
        if conditions.after.is_some() && !until.iter().any(Condition::is_event) {
            return Err("--after needs an --until event:...".to_owned());
        }
        if args.command.is_empty() && until.iter().chain(snapshot_on).any(Condition::is_failure) {
            return Err("`failure` needs a COMMAND whose exit status it checks".to_owned());
        }
        if !snapshot_on.is_empty() && !channels.iter().all(ChannelSetup::is_flight_recorder) {
            return Err("--snapshot-on needs --overwrite, for all channels".to_owned());
        }
        Ok(conditions)
    }
}

/// A recording.
pub struct Record {
    /// Settings of the session.
    pub setup: Setup,
    /// Conditions that end the recording or cause a snapshot.
    pub conditions: Conditions,
    /// Specifications of the probe events that the recording defines.
    pub probes: Vec<String>,
    /// Name of the session that the recording makes, if the user named it.
    pub session: Option<Given<String>>,
    /// Whether the user named the destination. Otherwise it is a directory named after the time.
    pub is_named: bool,
    /// Destination of the trace.
    pub destination: Destination,
    /// Whether the names of functions are written with the trace.
    pub symbols: bool,
    /// Whether debuginfod servers are asked for names that this machine does not know.
    pub debuginfod: bool,
    /// Whether losses are a failure.
    pub fail_on_loss: bool,
    /// The command to run, if any.
    pub command: Option<(OsString, Vec<OsString>)>,
}

/// With --session: no option that changes what the session records.
fn without_setup(args: &RecordArgs) -> Result<(), clap::Error> {
    let RecordArgs { setup, .. } = args;
    let given = [
        ("--config", setup.config.is_some()),
        ("--channel", !setup.channels.is_empty()),
        ("--filter", !setup.choice.filters.is_empty()),
        ("--probe", !args.probes.is_empty()),
        (
            "--trace-funcs",
            !setup.choice.functions.functions.is_empty(),
        ),
        ("--graph-funcs", !setup.choice.functions.graph.is_empty()),
        ("--context", !setup.contexts.is_empty()),
        ("--state", setup.state),
        ("--map", !setup.maps.is_empty()),
        ("--freq", setup.sample_freq.is_some()),
        ("--call-graph", setup.call_graph),
        ("--aux-size", setup.aux_size.is_some()),
        ("--snapshot-memory", setup.snapshot_memory.is_some()),
        ("--barrier", setup.barrier.is_some()),
        ("--cpu", setup.choice.cpus.is_some()),
        ("--pid", !setup.choice.pids.is_empty()),
        ("--cgroup", !setup.choice.cgroups.is_empty()),
        ("--only", args.only),
        ("--until", !args.until.is_empty()),
        ("--snapshot-on", !args.snapshot_on.is_empty()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return Err(wrong(format_args!(
            "{option} cannot be used with --session: the session keeps its settings"
        )));
    }
    Ok(())
}

/// Converts the arguments, for the session that was given or for one that the recording makes.
pub fn record(mut args: RecordArgs, has_session: bool) -> Result<Record, clap::Error> {
    if has_session {
        without_setup(&args)?;
    }
    let mode = if args.overwrite {
        Mode::Overwrite
    } else {
        Mode::Discard
    };
    let size = args.setup.choice.buffer.unwrap_or(BufferSize::DEFAULT);
    let mut config = config(&args.setup)?;
    let setup = &mut config.setup;
    for channel in &setup.channels {
        if channel.events.is_none() && !channel.is_first() {
            return Err(wrong(channel.without_events()));
        }
    }
    if !args.probes.is_empty() {
        let me = Maker::me().map_err(|error| wrong(format_args!("{error:#}")))?;
        setup.record_also(format!("{}:*", me.subsystem()));
        let filters = probe_filters(&args.setup.choice, &args.probes, &me.subsystem());
        // The events of -k are in the first channel.
        if let Some(first) = setup.channels.iter_mut().find(|channel| channel.is_first()) {
            first.filters.extend(filters);
        }
        // Without these contexts, the thread of a call is unknown.
        let own = || ["tid", "comm"].map(str::to_owned).to_vec().into();
        setup.contexts.get_or_insert_with(own);
    }
    setup.complete_first();
    // Earlier settings of the session do not affect a recording.
    setup.fill(Some(mode), Some(size));
    if args.only {
        setup.tasks.only_command = Some(().into());
    }
    if let Some(only) = &setup.tasks.only_command {
        if args.command.is_empty() {
            return Err(wrong(only.wrong("--only needs a COMMAND")));
        }
    }
    let conditions = Conditions::new(&mut args, &config.setup.channels).map_err(wrong)?;
    let rotate = Rotate::new(args.rotate, args.keep);
    if rotate.is_some() {
        let channels = &config.setup.channels;
        can_rotate(channels, &conditions).map_err(wrong)?;
    }
    add_state(&mut config.setup)?;
    // A receiver has no place for names of functions.
    let symbols = args.symbols || args.setup.call_graph && args.connect.is_none();
    if args.connect.is_some() && !config.setup.maps.is_empty() {
        return Err(wrong(
            "--map cannot be used with --connect: a receiver takes no maps",
        ));
    }
    let is_named = args.connect.is_some() || args.output.is_some();
    let destination = match args.connect {
        Some(address) => Destination::Receiver {
            address,
            security: args.network.security(),
        },
        None => Destination::Directory(Directory {
            path: args.output.unwrap_or_else(new_directory),
            options: OutputOptions {
                writing: Writing::from_direct(args.direct),
                access: args.access.access(),
                rotate,
            },
        }),
    };
    let mut command = args.command.into_iter();
    let mut probes = args.probes;
    probes.append(&mut config.setup.maps.probes);
    Ok(Record {
        conditions,
        probes,
        setup: config.setup,
        session: config.session,
        is_named,
        destination,
        symbols,
        debuginfod: args.debuginfod,
        fail_on_loss: args.fail_on_loss,
        command: command.next().map(|program| (program, command.collect())),
    })
}

/// The directory for a recording that was given none.
pub fn new_directory() -> PathBuf {
    format!("rtrace-{}", time::name_of_now()).into()
}

/// Whether the recording can be cut into chunks. The error is a text for the user.
fn can_rotate(channels: &[ChannelSetup], conditions: &Conditions) -> Result<(), &'static str> {
    if channels.iter().all(ChannelSetup::is_flight_recorder) {
        return Err(
            "--rotate needs a channel in discard mode: channels in overwrite mode are read only at the end",
        );
    }
    if conditions.until.iter().any(Condition::is_failure) {
        return Err("--rotate cannot be used with --until failure: it writes chunks before the command fails");
    }
    Ok(())
}
