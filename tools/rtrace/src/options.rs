// SPDX-License-Identifier: GPL-2.0

//! What the program works with, from what was typed.

use crate::args::{AccessArgs, Cli, Command, ListArgs, RecordArgs, SetupArgs, StartArgs};
use crate::channels::{patterns, ChannelSetup, Filter};
use crate::condition::Condition;
use crate::config::{self, Config};
use crate::date;
use crate::given::Given;
use crate::probe::Probes;
use crate::report::Question;
use crate::setup::Setup;
use crate::tasks::Tasks;
use clap::error::ErrorKind;
use clap::CommandFactory;
use std::ffi::OsString;
use std::path::PathBuf;
use trace::access::Access;
use trace::output::OutputOptions;
use trace::rotate::Rotate;
use trace::session::Session;
use trace::settings::{BufferSize, Mode};
use trace::tracer::{Tracer, DEFAULT_SESSION, FIRST_CHANNEL};
use trace::writing::Writing;

/// Where the tracer is.
pub struct Place {
    /// The mounted debugfs.
    pub debugfs: PathBuf,
    /// The session's name, if one was given.
    pub session: Option<String>,
}

impl Place {
    /// The tracer.
    pub fn tracer(&self) -> trace::Result<Tracer> {
        Tracer::find(&self.debugfs)
    }

    /// The session that was given, or the one that is always there.
    pub fn session(&self) -> trace::Result<Session> {
        let name = self.session.as_deref().unwrap_or(DEFAULT_SESSION);
        self.tracer()?.session(name)
    }
}

/// What to do.
pub enum Action {
    Record(Box<Record>),
    Report {
        dir: PathBuf,
        questions: Vec<Question>,
        json: bool,
        rows: usize,
    },
    List {
        patterns: Vec<String>,
        verbose: bool,
    },
    ListContexts,
    Status {
        json: bool,
    },
    Start(Box<Config>),
    Stop,
    Free,
    Reset,
    Snapshot {
        dir: PathBuf,
        output_options: OutputOptions,
    },
    Mark {
        text: String,
    },
    /// Shows functions of the kernel.
    ListFunctions {
        pattern: String,
    },
    /// Defines dynamic events.
    AddProbes {
        specs: Vec<String>,
    },
    /// Shows them.
    ListProbes,
    /// Takes some away.
    DeleteProbes {
        names: Vec<String>,
    },
    Create {
        name: String,
    },
    Destroy {
        name: String,
    },
    Sessions {
        json: bool,
    },
    Doctor,
    Generate {
        dir: PathBuf,
    },
}

/// What a recording waits for.
#[derive(Debug, Default)]
pub struct Conditions {
    /// What ends it.
    pub until: Vec<Condition>,
    /// How many packets come behind an event that ends it; none: it ends at once.
    pub after: Option<u64>,
    /// What has it write a snapshot.
    pub snapshot_on: Vec<Condition>,
    /// After how many snapshots it ends.
    pub snapshots: Option<u64>,
}

impl Conditions {
    /// From the command line. The error is for people.
    fn new(args: &mut RecordArgs, channels: &[ChannelSetup]) -> Result<Self, String> {
        let conditions = Self {
            until: args.until.drain(..).collect(),
            after: args.after,
            snapshot_on: args.snapshot_on.drain(..).collect(),
            snapshots: args.snapshots,
        };
        let Self {
            until, snapshot_on, ..
        } = &conditions;
        if conditions.after.is_some() && !until.iter().any(Condition::is_event) {
            return Err("--after needs an --until event:...".to_owned());
        }
        if args.command.is_empty() && until.iter().chain(snapshot_on).any(Condition::is_failure) {
            return Err("`failure` is that of a COMMAND: there is none".to_owned());
        }
        if !snapshot_on.is_empty() && !channels.iter().all(ChannelSetup::is_flight_recorder) {
            return Err(
                "--snapshot-on needs --overwrite: all channels are flight recorders".to_owned(),
            );
        }
        Ok(conditions)
    }
}

/// A recording.
pub struct Record {
    /// What to set.
    pub setup: Setup,
    /// What it waits for.
    pub conditions: Conditions,
    /// The events at functions of the kernel that it defines.
    pub probes: Vec<String>,
    /// What the session that it makes is called, if that matters.
    pub session: Option<Given<String>>,
    /// Where the trace goes.
    pub dir: PathBuf,
    /// How it is written there.
    pub output_options: OutputOptions,
    /// Whether losses are a failure.
    pub fail_on_loss: bool,
    /// The command to run, if any.
    pub command: Option<(OsString, Vec<OsString>)>,
}

/// The one conversion.
pub fn from_cli(cli: Cli) -> Result<(Place, Action), clap::Error> {
    let action = match cli.command {
        Command::Record(args) => {
            if cli.session.is_some() {
                let RecordArgs { setup, .. } = &*args;
                let given = [
                    ("--config", setup.config.is_some()),
                    ("--channel", !setup.channels.is_empty()),
                    ("--filter", !setup.filters.is_empty()),
                    ("--probe", !args.probes.is_empty()),
                    ("--context", !setup.contexts.is_empty()),
                    ("--cpu", setup.cpus.is_some()),
                    ("--pid", !setup.pids.is_empty()),
                    ("--cgroup", !setup.cgroups.is_empty()),
                    ("--only", args.only),
                    ("--until", !args.until.is_empty()),
                    ("--snapshot-on", !args.snapshot_on.is_empty()),
                ];
                if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
                    return Err(wrong(format_args!(
                        "{option} cannot be used with --session: a session keeps what it has"
                    )));
                }
            }
            Action::Record(Box::new(record(*args)?))
        }
        Command::Report(args) => {
            let rows = if args.rows == 0 {
                usize::MAX
            } else {
                args.rows
            };
            let questions = [
                args.syscalls.then_some(Question::Syscalls {
                    by_process: args.by_process,
                }),
                args.latency.then_some(Question::Latency),
                args.threads.then_some(Question::Threads),
                args.cpu.then_some(Question::Cpu),
                args.irq.then_some(Question::Irq),
            ];
            Action::Report {
                dir: args.dir,
                questions: questions.into_iter().flatten().collect(),
                json: args.json,
                rows,
            }
        }
        Command::List(args) if args.contexts => Action::ListContexts,
        Command::List(ListArgs {
            functions: Some(pattern),
            ..
        }) => Action::ListFunctions { pattern },
        Command::List(args) => Action::List {
            patterns: args.patterns,
            verbose: args.verbose,
        },
        Command::Status(args) => Action::Status { json: args.json },
        Command::Start(args) => Action::Start(Box::new(start(&args)?)),
        Command::Stop => Action::Stop,
        Command::Free => Action::Free,
        Command::Reset => Action::Reset,
        Command::Snapshot(args) => Action::Snapshot {
            output_options: OutputOptions {
                access: access(&args.access),
                ..OutputOptions::default()
            },
            dir: args.output,
        },
        Command::Mark(args) => Action::Mark {
            text: args.text.join(" "),
        },
        Command::Probe(args) if !args.delete.is_empty() => {
            Action::DeleteProbes { names: args.delete }
        }
        Command::Probe(args) if args.specs.is_empty() => Action::ListProbes,
        Command::Probe(args) => Action::AddProbes { specs: args.specs },
        Command::Create(args) => Action::Create { name: args.name },
        Command::Destroy(args) => Action::Destroy { name: args.name },
        Command::Sessions(args) => Action::Sessions { json: args.json },
        Command::Doctor => Action::Doctor,
        Command::Generate(args) => Action::Generate { dir: args.dir },
    };
    let place = Place {
        debugfs: cli.debugfs,
        session: cli.session,
    };
    Ok((place, action))
}

/// What was typed makes no sense.
fn wrong(what: impl std::fmt::Display) -> clap::Error {
    Cli::command().error(ErrorKind::ArgumentConflict, what)
}

fn record(mut args: RecordArgs) -> Result<Record, clap::Error> {
    let mode = if args.overwrite {
        Mode::Overwrite
    } else {
        Mode::Discard
    };
    let size = args.setup.buffer.unwrap_or(BufferSize::DEFAULT);
    let mut config = config(&args.setup)?;
    let setup = &mut config.setup;
    for channel in &setup.channels {
        if channel.events.is_none() && !channel.is_first() {
            return Err(wrong(channel.without_events()));
        }
    }
    if !args.probes.is_empty() {
        setup.record_also(format!("{}:*", Probes::own_subsystem()));
    }
    setup.complete_first();
    // A recording is the same whatever was set before.
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
    let mut command = args.command.into_iter();
    Ok(Record {
        conditions,
        probes: args.probes,
        setup: config.setup,
        session: config.session,
        dir: args
            .output
            .unwrap_or_else(|| format!("rtrace-{}", date::now()).into()),
        output_options: OutputOptions {
            writing: Writing::from_direct(args.direct),
            access: access(&args.access),
            rotate,
        },
        fail_on_loss: args.fail_on_loss,
        command: command.next().map(|program| (program, command.collect())),
    })
}

/// Whether there is something to cut into chunks while a recording goes on. The error is for people.
fn can_rotate(channels: &[ChannelSetup], conditions: &Conditions) -> Result<(), &'static str> {
    if channels.iter().all(ChannelSetup::is_flight_recorder) {
        return Err(
            "--rotate needs a channel in discard mode: flight recorders are read at the end",
        );
    }
    if conditions.until.iter().any(Condition::is_failure) {
        return Err("--rotate writes chunks that are kept, --until failure maybe none");
    }
    Ok(())
}

fn start(args: &StartArgs) -> Result<Config, clap::Error> {
    let mode = match (args.overwrite, args.discard) {
        (true, _) => Some(Mode::Overwrite),
        (_, true) => Some(Mode::Discard),
        _ => None,
    };
    let size = args.setup.buffer;
    let mut config = config(&args.setup)?;
    config.setup.fill(mode, size);
    if let Some(only) = &config.setup.tasks.only_command {
        let what = "`only` is for the COMMAND of `rtrace record`: `rtrace start` runs none";
        return Err(wrong(only.wrong(what)));
    }
    Ok(config)
}

/// What is recorded, from the file if one is given.
fn config(args: &SetupArgs) -> Result<Config, clap::Error> {
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

/// What the command line says of what is recorded.
fn typed(args: &SetupArgs) -> Result<Setup, clap::Error> {
    Ok(Setup {
        clock: args.clock.clone().map(Given::from),
        marker_channel: args.marker_channel.clone().map(Given::from),
        contexts: several(&args.contexts),
        cpus: args.cpus.clone().map(Given::from),
        tasks: Tasks {
            pids: several(&args.pids),
            cgroups: several(&args.cgroups),
            only_command: None,
        },
        channels: channels(args)?,
    })
}

/// What an option gave that can be given several times; none if it was not.
fn several<T: Clone>(values: &[T]) -> Option<Given<Vec<T>>> {
    (!values.is_empty()).then(|| values.to_vec().into())
}

/// The first channel, and those of --channel.
fn channels(args: &SetupArgs) -> Result<Vec<ChannelSetup>, clap::Error> {
    // The patterns after so many channels.
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
    for (place, channel) in (1..).zip(&args.channels) {
        let name = &channel.name;
        if all.iter().any(|known| known.name == *name) {
            return Err(wrong(format_args!("channel `{name}` for the second time")));
        }
        all.push(ChannelSetup {
            events: patterns(place),
            mode: channel.mode,
            size: channel.size,
            ..ChannelSetup::named(name)
        });
    }
    for (expression, events) in args.filters.iter().zip(&args.places.filters) {
        let place = args.places.events.get(events.start);
        let place = place.filter(|_| !events.is_empty());
        let Some(channel) = place.and_then(|place| all.get_mut(*place)) else {
            return Err(wrong(format_args!(
                "--filter `{expression}` stands behind no -e: it is for the events of the -e before it"
            )));
        };
        let patterns = args.events[events.clone()].iter();
        channel.filters.extend(patterns.map(|pattern| Filter {
            pattern: pattern.clone(),
            expression: expression.clone().into(),
        }));
    }
    Ok(all)
}

fn access(args: &AccessArgs) -> Access {
    Access::new(args.mode, args.group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::rotate::Every;

    fn parse(words: &str) -> Result<Record, clap::Error> {
        let words = ["rtrace", "record"]
            .into_iter()
            .chain(words.split_whitespace());
        match Cli::from_words(words).and_then(from_cli)?.1 {
            Action::Record(record) => Ok(*record),
            _ => panic!("not a record"),
        }
    }

    fn recorded(words: &str) -> Record {
        parse(words).unwrap()
    }

    /// The first channel's patterns.
    fn first(record: Record) -> Vec<String> {
        let events = record.setup.channels[0].events.iter().flatten();
        events.map(|given| given.value.clone()).collect()
    }

    #[test]
    fn definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn record_is_independent_of_what_was_set() {
        let record = recorded("");
        let expected = ChannelSetup {
            events: Some(vec![]),
            mode: Some(Mode::Discard),
            size: Some(BufferSize::DEFAULT),
            ..ChannelSetup::named(FIRST_CHANNEL)
        };
        assert_eq!(record.setup.channels, [expected]);
        assert!(record.command.is_none());
    }

    #[test]
    fn patterns_go_in_order() {
        let record = recorded("-x b -e sched:* -e irq:* -x c -b 64Kx8 -- make -j -x all");
        assert_eq!(record.setup.channels[0].size.unwrap().to_string(), "64Kx8");
        let (program, arguments) = record.command.clone().unwrap();
        assert_eq!(program, "make");
        assert_eq!(arguments, ["-j", "-x", "all"]);
        assert_eq!(first(record), ["sched:*", "irq:*", "!b", "!c"]);
        assert_eq!(first(recorded("-x b")), ["*:*", "!b"]);
    }

    #[test]
    fn patterns_go_to_the_channel_before_them() {
        let record = recorded(
            "-e a --channel one:64Kx2:overwrite -e b,c -x d --channel two -x e --overwrite \
             -b 2Mx8 --channel three:discard -e f -- make -e g --channel four",
        );
        let channels = record.setup.channels.iter();
        let channels: Vec<_> = channels.map(ChannelSetup::summary).collect();
        let expected = [
            "channel0 2Mx8 overwrite a",
            "one 64Kx2 overwrite b c !d",
            "two 2Mx8 overwrite *:* !e",
            "three 2Mx8 discard f",
        ];
        assert_eq!(channels, expected);
        // One that is not used takes as little memory as it can.
        let record = recorded("--channel one -e b");
        assert_eq!(record.setup.channels[0].size, Some(BufferSize::LEAST));
        assert_eq!(record.setup.channels[1].size, Some(BufferSize::DEFAULT));
        for (words, said) in [
            ("-e a --channel one", "channel `one` has no events"),
            ("--channel one --channel two -e b", "channel `one` has no"),
            (
                "--channel a -e b --channel a -e c",
                "`a` for the second time",
            ),
            (
                "--channel a -e b --session s",
                "cannot be used with --session",
            ),
        ] {
            let error = parse(words).err().unwrap();
            assert_eq!(error.exit_code(), 2, "{words}");
            assert!(error.to_string().contains(said), "{words}: {error}");
        }
    }

    #[test]
    fn start_changes_only_what_is_given() {
        let started = |words: &str| {
            let words = ["rtrace", "start"]
                .into_iter()
                .chain(words.split_whitespace());
            match Cli::from_words(words).and_then(from_cli).unwrap().1 {
                Action::Start(config) => config.setup,
                _ => panic!("not a start"),
            }
        };
        let setup = started("");
        assert_eq!(setup.channels, [ChannelSetup::named(FIRST_CHANNEL)]);
        assert!(setup.tasks.is_none() && setup.contexts.is_none() && setup.cpus.is_none());
        let setup = started(
            "--channel a:overwrite -e b,c --filter x==1 --filter y==2 --channel d --context tid,comm \
             -p 7 --cgroup /c -C 1 --marker-channel a --discard",
        );
        let modes = setup.channels.iter().map(|channel| channel.mode.unwrap());
        let expected = [Mode::Discard, Mode::Overwrite, Mode::Discard];
        assert_eq!(modes.collect::<Vec<_>>(), expected);
        assert!(setup.channels.iter().all(|channel| channel.size.is_none()));
        let filters = setup.channels[1].filters.iter();
        let filters: Vec<_> = filters
            .map(|filter| format!("{} {}", filter.pattern, filter.expression.value))
            .collect();
        assert_eq!(filters, ["b x==1", "c x==1", "b y==2", "c y==2"]);
        assert_eq!(setup.contexts.unwrap().value, ["tid", "comm"]);
        assert_eq!(setup.tasks.pids.unwrap().value, [7]);
        assert_eq!(setup.marker_channel.unwrap().value, "a");
    }

    #[test]
    fn a_trace_is_cut_where_it_can_be() {
        let rotate = |words| recorded(words).output_options.rotate;
        let every = Every::Size(1 << 30);
        let keep = Some(3);
        assert_eq!(rotate(""), None);
        let expected = Some(Rotate { every, keep });
        assert_eq!(rotate("--rotate 1G --keep 3"), expected);
        let beside = "--rotate 1G --keep 3 -e a --channel one:overwrite -e b --until signal:USR1";
        assert_eq!(rotate(beside), expected);
        for (words, said) in [
            ("--keep 3", "--rotate"),
            ("--rotate 1G --keep 0", "0 is not in 1.."),
            ("--rotate 5", "a unit is missing"),
            ("--rotate 1G --overwrite", "needs a channel in discard mode"),
            ("--rotate 1G --until failure -- make", "--until failure"),
        ] {
            let error = parse(words).err().unwrap();
            assert_eq!(error.exit_code(), 2, "{words}");
            assert!(error.to_string().contains(said), "{words}: {error}");
        }
    }

    #[test]
    fn commas_separate_patterns() {
        let record = recorded("-e a:*,b -x c,d -e e");
        let expected = ["a:*", "b", "e", "!c", "!d"];
        assert_eq!(first(record), expected);
        for option in ["-e", "-x"] {
            for word in ["", ",", "a,", ",a", "a,,b", "a b", "a, b", " ", "a\n"] {
                let parsed = Cli::from_words(["rtrace", "record", option, word]);
                assert_eq!(parsed.unwrap_err().exit_code(), 2, "{option} '{word}'");
            }
        }
    }
}
