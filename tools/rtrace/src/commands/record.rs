// SPDX-License-Identifier: GPL-2.0

//! `rtrace record`.

use crate::args::settings::{add_state, config, probe_filters};
use crate::args::{wrong, RecordArgs};
use crate::cause;
use control::{BufferSize, Mode};
use network::{Destination, Directory};
use record::exit::Code;
use record::place::Place;
use record::recording::{self, new_directory, Record};
use record::run::condition::{Condition, Conditions};
use record::session::channels::{take_from_rings, ChannelSetup};
use record::session::maker::Maker;
use store::{OutputOptions, Rotate, Writing};

/// Records, and returns the exit code.
pub fn record(place: &Place, args: RecordArgs) -> anyhow::Result<Code> {
    let mut options = options(args, place.session.is_some())?;
    recording::record(place, &mut options)
}

/// With --session: no option that changes what the session records.
fn without_setup(args: &RecordArgs) -> Result<(), clap::Error> {
    let RecordArgs { setup, .. } = args;
    let given = [
        ("--config", setup.config.is_some()),
        ("--channel", !setup.channels.is_empty()),
        ("--filter", !setup.choice.filters.is_empty()),
        ("--probe", !args.probes.is_empty()),
        ("--usdt", !args.usdt.is_empty()),
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
        ("--source", args.source.is_some()),
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

/// The recording of the arguments, in the session that was given or in one that the recording makes.
pub fn options(mut args: RecordArgs, has_session: bool) -> Result<Record, clap::Error> {
    if has_session {
        without_setup(&args)?;
    }
    args.probes.append(&mut args.usdt);
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
    let me = Maker::me().map_err(|error| wrong(format_args!("{error:#}")))?;
    let mut filters = probe_filters(&args.setup.choice, &args.probes, &me.subsystem());
    for condition in args.until.iter_mut().chain(&mut args.snapshot_on) {
        if let Some((spec, filter)) = condition.define(&me.subsystem()) {
            if !args.probes.contains(&spec) {
                args.probes.push(spec);
                filters.push(filter);
            }
        }
    }
    if !args.probes.is_empty() {
        setup.record_also(format!("{}:*", me.subsystem()));
        // The events of -k and -u are in the first channel.
        if let Some(first) = setup.channels.iter_mut().find(|channel| channel.is_first()) {
            first.filters.extend(filters);
        }
        // Without these contexts, the thread of a call is unknown.
        let own = || ["tid", "comm"].map(str::to_owned).to_vec().into();
        setup.contexts.get_or_insert_with(own);
    }
    // A file says it for each channel.
    if !has_session && args.setup.config.is_none() && args.source.as_deref() != Some("probes") {
        take_from_rings(&mut setup.channels);
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
    let conditions = conditions(&mut args, &config.setup.channels).map_err(wrong)?;
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
        cause: cause::newest,
        fail_on_loss: args.fail_on_loss,
        command: args.command,
    })
}

/// The conditions of the arguments. The error is a text for the user.
fn conditions(args: &mut RecordArgs, channels: &[ChannelSetup]) -> Result<Conditions, String> {
    let conditions = Conditions {
        until: args.until.drain(..).collect(),
        after: args.after,
        snapshot_on: args.snapshot_on.drain(..).collect(),
        snapshots: args.count,
        interval: args.snapshot_interval,
        duration: args.duration,
    };
    let Conditions {
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
