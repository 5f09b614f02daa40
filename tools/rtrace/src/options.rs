// SPDX-License-Identifier: GPL-2.0

//! What the program works with, from what was typed.

use crate::args::{AccessArgs, Cli, Command, RecordArgs, StartArgs};
use crate::channels::{patterns, ChannelSetup};
use crate::choice::Choice;
use crate::condition::Condition;
use crate::config::{self, Config};
use crate::date;
use clap::error::ErrorKind;
use clap::CommandFactory;
use std::ffi::OsString;
use std::path::PathBuf;
use trace::access::Access;
use trace::output::OutputOptions;
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
    Start(Setup),
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

/// What to set before a start; what is none stays as it is.
pub struct Setup {
    /// The clock.
    pub clock: Option<String>,
    /// Its channels.
    pub channels: Vec<ChannelSetup>,
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
    /// What of the events is recorded.
    pub choice: Choice,
    /// What it waits for.
    pub conditions: Conditions,
    /// What the session that it makes is called, if that matters.
    pub session: Option<String>,
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
                let given = [
                    ("--config", args.config.is_some()),
                    ("--channel", !args.channels.is_empty()),
                    ("--filter", !args.filters.is_empty()),
                    ("--context", !args.contexts.is_empty()),
                    ("--cpu", args.cpus.is_some()),
                    ("--pid", !args.pids.is_empty()),
                    ("--cgroup", !args.cgroups.is_empty()),
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
            Action::Report {
                dir: args.dir,
                json: args.json,
                rows,
            }
        }
        Command::List(args) if args.contexts => Action::ListContexts,
        Command::List(args) => Action::List {
            patterns: args.patterns,
            verbose: args.verbose,
        },
        Command::Status(args) => Action::Status { json: args.json },
        Command::Start(args) => Action::Start(start(args)),
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
    let config = match &args.config {
        Some(file) => config::read(file)
            .map_err(|what| Cli::command().error(ErrorKind::ValueValidation, what))?,
        None => Config {
            session: None,
            clock: None,
            channels: channels(&args)?,
        },
    };
    let choice = Choice::new(&mut args, &config.channels).map_err(wrong)?;
    let conditions = Conditions::new(&mut args, &config.channels).map_err(wrong)?;
    let mut command = args.command.into_iter();
    Ok(Record {
        choice,
        conditions,
        setup: Setup {
            clock: args.setup.clock.or(config.clock),
            channels: config.channels,
        },
        session: config.session,
        dir: args
            .output
            .unwrap_or_else(|| format!("rtrace-{}", date::now()).into()),
        output_options: OutputOptions {
            writing: Writing::from_direct(args.direct),
            access: access(&args.access),
        },
        fail_on_loss: args.fail_on_loss,
        command: command.next().map(|program| (program, command.collect())),
    })
}

/// The channels of a recording, which is the same whatever was set before.
fn channels(args: &RecordArgs) -> Result<Vec<ChannelSetup>, clap::Error> {
    let mode = if args.overwrite {
        Mode::Overwrite
    } else {
        Mode::Discard
    };
    let size = args.setup.buffer.unwrap_or(BufferSize::DEFAULT);
    // The patterns after so many channels.
    let of = |patterns: &[String], places: &[usize], place| -> Vec<String> {
        let placed = patterns.iter().zip(places);
        let here = placed.filter(|(_, at)| **at == place);
        here.map(|(pattern, _)| pattern.clone()).collect()
    };
    let patterns = |place| {
        let events = of(&args.setup.events, &args.places.events, place);
        let exclude = of(&args.setup.exclude, &args.places.exclude, place);
        patterns(events, &exclude)
    };
    let first = patterns(0);
    let mut all = vec![ChannelSetup {
        name: FIRST_CHANNEL.to_owned(),
        mode: Some(mode),
        // It is there, used or not.
        size: Some(if first.is_empty() && !args.channels.is_empty() {
            BufferSize::LEAST
        } else {
            size
        }),
        events: Some(first),
        origin: None,
    }];
    for (place, channel) in (1..).zip(&args.channels) {
        let (name, events) = (channel.name.clone(), patterns(place));
        if events.is_empty() {
            return Err(wrong(format_args!(
                "channel `{name}` has no events: give its -e after `--channel {name}`"
            )));
        }
        if all.iter().any(|known| known.name == name) {
            return Err(wrong(format_args!("channel `{name}` for the second time")));
        }
        all.push(ChannelSetup {
            name,
            events: Some(events),
            mode: Some(channel.mode.unwrap_or(mode)),
            size: Some(channel.size.unwrap_or(size)),
            origin: None,
        });
    }
    Ok(all)
}

fn start(args: StartArgs) -> Setup {
    let patterns = patterns(args.setup.events, &args.setup.exclude);
    Setup {
        clock: args.setup.clock,
        channels: vec![ChannelSetup {
            name: FIRST_CHANNEL.to_owned(),
            events: (!patterns.is_empty()).then_some(patterns),
            mode: match (args.overwrite, args.discard) {
                (true, _) => Some(Mode::Overwrite),
                (_, true) => Some(Mode::Discard),
                _ => None,
            },
            size: args.setup.buffer,
            origin: None,
        }],
    }
}

fn access(args: &AccessArgs) -> Access {
    Access::new(args.mode, args.group)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        record.setup.channels[0].events.clone().unwrap()
    }

    #[test]
    fn definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn record_is_independent_of_what_was_set() {
        let record = recorded("");
        let expected = ChannelSetup {
            name: FIRST_CHANNEL.to_owned(),
            events: Some(vec![]),
            mode: Some(Mode::Discard),
            size: Some(BufferSize::DEFAULT),
            origin: None,
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
        let channels: Vec<_> = record
            .setup
            .channels
            .iter()
            .map(|channel| {
                let events = channel.events.clone().unwrap().join(" ");
                let (mode, size) = (channel.mode.unwrap().name(), channel.size.unwrap());
                format!("{} {size} {mode} {events}", channel.name)
            })
            .collect();
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
