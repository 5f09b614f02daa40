// SPDX-License-Identifier: GPL-2.0

//! Settings of a recording, from the command line and from a file.

use super::{wrong, ChoiceArgs, Cli, Filtered, FunctionArgs, SetupArgs};
use clap::error::ErrorKind;
use clap::CommandFactory;
use control::{Mode, FIRST_CHANNEL};
use record::probe::event_name;
use record::session::channels::{patterns, patterns_of, ChannelArg, ChannelSetup, Filter};
use record::session::config::{self, Config};
use record::session::functions::Functions;
use record::session::given::Given;
use record::session::maps::Maps;
use record::session::setup::Setup;
use record::session::tasks::Tasks;
use record::state;

/// Contexts of --call-graph.
const STACKS: [&str; 2] = ["callstack-kernel", "callstack-user"];

/// Converts the arguments, on top of the file if one is given.
pub fn config(args: &SetupArgs) -> Result<Config, clap::Error> {
    let typed = typed(args)?;
    let Some(file) = &args.config else {
        return Ok(Config {
            session: None,
            setup: typed,
        });
    };
    let mut config = config::read(file)
        .map_err(|what| Cli::command().error(ErrorKind::ValueValidation, what))?;
    config.setup.override_with(typed);
    Ok(config)
}

/// Refuses maps with events of their own, for a session that exists after the command.
pub fn without_probes(maps: &Maps) -> Result<(), clap::Error> {
    match maps.probes.is_empty() {
        true => Ok(()),
        false => Err(wrong(
            "a recipe with lines `-k` works only with `rtrace record` and `rtrace count`: its events are deleted when the command ends",
        )),
    }
}

/// Converts the arguments on the command line.
fn typed(args: &SetupArgs) -> Result<Setup, clap::Error> {
    let choice = choice(&args.choice, &args.channels)?;
    let mut contexts = args.contexts.clone();
    // Otherwise the thread of a call or stack and its name are unknown.
    if contexts.is_empty() && (choice.functions.is_graph() || args.call_graph) {
        contexts.extend(["tid", "comm"].map(str::to_owned));
    }
    for stack in STACKS.iter().filter(|_| args.call_graph) {
        if !contexts.iter().any(|context| context == stack) {
            contexts.push((*stack).to_owned());
        }
    }
    Ok(Setup {
        maps: maps(&args.maps)?,
        clock: args.clock.clone().map(Given::from),
        sample_frequency: args.sample_freq.map(Given::from),
        aux_size: args.aux_size.map(Given::from),
        texts: [
            ("snapshot_memory", &args.snapshot_memory),
            ("barrier", &args.barrier),
        ]
        .into_iter()
        .filter_map(|(setting, text)| Some((setting, text.clone()?.into())))
        .collect(),
        marker_channel: args.marker_channel.clone().map(Given::from),
        contexts: several(&contexts),
        state: args.state,
        ..choice
    })
}

/// Converts the maps of --map.
pub fn maps(given: &[String]) -> Result<Maps, clap::Error> {
    let mut maps = Maps::default();
    for map in given {
        maps.add(&map.clone().into()).map_err(wrong)?;
    }
    Ok(maps)
}

/// Converts the choice of events and tasks, for the first channel and the `channels` of --channel.
pub fn choice(args: &ChoiceArgs, channels: &[ChannelArg]) -> Result<Setup, clap::Error> {
    let mut setup = Setup {
        cpus: args.cpus.clone().map(Given::from),
        tasks: Tasks {
            cgroups: several(&args.cgroups),
            ..Tasks::new(&args.pids, false)
        },
        channels: self::channels(args, channels)?,
        functions: functions(&args.functions)?,
        ..Setup::default()
    };
    if let Some(events) = setup.functions.events() {
        setup.record_also(events.to_owned());
    }
    Ok(setup)
}

/// Converts the choice of kernel functions.
fn functions(args: &FunctionArgs) -> Result<Functions, clap::Error> {
    let FunctionArgs {
        functions,
        graph,
        notrace,
        max_depth,
    } = args;
    let functions = Functions::new(functions, graph);
    if functions.only.is_empty() && !notrace.is_empty() {
        return Err(wrong(
            "-N needs -T or -G: it excludes functions from theirs",
        ));
    }
    Ok(Functions {
        not: notrace.clone(),
        max_depth: *max_depth,
        ..functions
    })
}

/// Adds the channel of the state. The error is for a channel of the same name.
pub fn add_state(setup: &mut Setup) -> Result<(), clap::Error> {
    if !setup.state {
        return Ok(());
    }
    if setup
        .channels
        .iter()
        .any(|known| known.name == state::CHANNEL)
    {
        let name = state::CHANNEL;
        return Err(wrong(format_args!(
            "--state creates a channel `{name}`: choose another name for your channel"
        )));
    }
    setup.channels.push(ChannelSetup {
        events: Some(vec![state::EVENTS.to_owned().into()]),
        mode: Some(Mode::Discard),
        size: Some(state::SIZE),
        // Contexts would be those of rtrace itself.
        contexts: Some(Vec::new().into()),
        ..ChannelSetup::named(state::CHANNEL)
    });
    Ok(())
}

/// Values of an option that can be given several times. `None` if it was not given.
fn several<T: Clone>(values: &[T]) -> Option<Given<Vec<T>>> {
    (!values.is_empty()).then(|| values.to_vec().into())
}

/// The first channel, and the channels of --channel.
fn channels(args: &ChoiceArgs, given: &[ChannelArg]) -> Result<Vec<ChannelSetup>, clap::Error> {
    // The patterns with this number of channels before them.
    let of = |patterns: &[String], places: &[usize], place| -> Vec<Given<String>> {
        let placed = patterns.iter().zip(places);
        let here = placed.filter(|(_, at)| **at == place);
        here.map(|(pattern, _)| pattern.clone().into()).collect()
    };
    let patterns = |place| {
        let events = of(&args.events, &args.places.events, place);
        let exclude = of(&args.exclude, &args.places.exclude, place);
        patterns(events, exclude)
    };
    let mut all = vec![ChannelSetup {
        events: patterns(0),
        ..ChannelSetup::named(FIRST_CHANNEL)
    }];
    for (place, channel) in (1..).zip(given) {
        let name = &channel.name;
        if all.iter().any(|known| known.name == *name) {
            return Err(wrong(format_args!("channel `{name}` is given twice")));
        }
        all.push(ChannelSetup {
            events: patterns(place),
            mode: channel.mode,
            size: channel.size,
            ..ChannelSetup::named(name)
        });
    }
    for (expression, filtered) in args.filters.iter().zip(&args.places.filters) {
        // `probe_filters` has those of -k and -u.
        let Filtered::Patterns(events) = filtered else {
            continue;
        };
        let place = args.places.events.get(events.start);
        let place = place.filter(|_| !events.is_empty());
        let Some(channel) = place.and_then(|place| all.get_mut(*place)) else {
            return Err(wrong(format_args!(
                "--filter `{expression}` needs an -e before it: a filter applies to the events of that -e, or of a -k or -u"
            )));
        };
        let patterns = args.events[events.clone()].iter();
        channel.filters.extend(patterns.map(|pattern| Filter {
            patterns: patterns_of(pattern),
            expression: expression.clone().into(),
        }));
    }
    Ok(all)
}

/// The filters after a -k or -u: each for the event of that specification, in the maker's `subsystem`. A wrong specification
/// has none, because it defines no event.
pub fn probe_filters(args: &ChoiceArgs, probes: &[String], subsystem: &str) -> Vec<Filter> {
    let placed = args.filters.iter().zip(&args.places.filters);
    let of_probes = placed.filter_map(|(expression, filtered)| {
        let Filtered::Probe(probe) = filtered else {
            return None;
        };
        let event = event_name(probes.get(*probe)?)?;
        Some(Filter {
            patterns: vec![format!("{subsystem}:{event}")],
            expression: expression.clone().into(),
        })
    });
    of_probes.collect()
}
