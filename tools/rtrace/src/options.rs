// SPDX-License-Identifier: GPL-2.0

//! What the program works with, from what was typed.

use crate::args::{AccessArgs, Cli, Command, RecordArgs, SetupArgs, StartArgs};
use crate::date;
use std::ffi::OsString;
use std::path::PathBuf;
use trace::access::Access;
use trace::output::OutputOptions;
use trace::session::Session;
use trace::settings::{BufferSize, Mode};
use trace::tracer::{Tracer, DEFAULT_SESSION};
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
    Record(Record),
    Report {
        dir: PathBuf,
        json: bool,
        rows: usize,
    },
    List {
        patterns: Vec<String>,
        verbose: bool,
    },
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
    /// The patterns that enable events; if empty, the module's default events.
    pub events: Option<Vec<String>>,
    /// Discard or overwrite.
    pub mode: Option<Mode>,
    /// Size of each CPU's buffer.
    pub size: Option<BufferSize>,
    /// The clock.
    pub clock: Option<String>,
}

/// A recording.
pub struct Record {
    /// What to set.
    pub setup: Setup,
    /// Where the trace goes.
    pub dir: PathBuf,
    /// How it is written there.
    pub output_options: OutputOptions,
    /// Whether losses are a failure.
    pub fail_on_loss: bool,
    /// Flight recorder: drain only at the end.
    pub overwrite: bool,
    /// The command to run, if any.
    pub command: Option<(OsString, Vec<OsString>)>,
}

/// The one conversion.
pub fn from_cli(cli: Cli) -> (Place, Action) {
    let action = match cli.command {
        Command::Record(args) => Action::Record(record(args)),
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
        Command::Create(args) => Action::Create { name: args.name },
        Command::Destroy(args) => Action::Destroy { name: args.name },
        Command::Sessions(args) => Action::Sessions { json: args.json },
        Command::Doctor => Action::Doctor,
        Command::Generate(args) => Action::Generate { dir: args.dir },
    };
    (
        Place {
            debugfs: cli.debugfs,
            session: cli.session,
        },
        action,
    )
}

fn record(args: RecordArgs) -> Record {
    let mode = if args.overwrite {
        Mode::Overwrite
    } else {
        Mode::Discard
    };
    let mut command = args.command.into_iter();
    Record {
        // A recording is the same whatever was set before.
        setup: Setup {
            events: Some(patterns(&args.setup)),
            mode: Some(mode),
            size: Some(args.setup.buffer.unwrap_or(BufferSize::DEFAULT)),
            clock: args.setup.clock,
        },
        dir: args
            .output
            .unwrap_or_else(|| format!("rtrace-{}", date::now()).into()),
        output_options: OutputOptions {
            writing: Writing::from_direct(args.direct),
            access: access(&args.access),
        },
        fail_on_loss: args.fail_on_loss,
        overwrite: args.overwrite,
        command: command.next().map(|program| (program, command.collect())),
    }
}

fn start(args: StartArgs) -> Setup {
    let patterns = patterns(&args.setup);
    Setup {
        events: (!patterns.is_empty()).then_some(patterns),
        mode: match (args.overwrite, args.discard) {
            (true, _) => Some(Mode::Overwrite),
            (_, true) => Some(Mode::Discard),
            _ => None,
        },
        size: args.setup.buffer,
        clock: args.setup.clock,
    }
}

fn access(args: &AccessArgs) -> Access {
    Access::new(args.mode, args.group)
}

/// As `set_event` takes them: what is in, then what is out.
fn patterns(setup: &SetupArgs) -> Vec<String> {
    let all = (setup.events.is_empty() && !setup.exclude.is_empty()).then(|| "*:*".to_owned());
    let exclude = setup.exclude.iter().map(|pattern| format!("!{pattern}"));
    all.into_iter()
        .chain(setup.events.iter().cloned())
        .chain(exclude)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    fn recorded(words: &str) -> Record {
        let words = ["rtrace", "record"]
            .into_iter()
            .chain(words.split_whitespace());
        match from_cli(Cli::parse_from(words)).1 {
            Action::Record(record) => record,
            _ => panic!("not a record"),
        }
    }

    #[test]
    fn definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn record_is_independent_of_what_was_set() {
        let record = recorded("");
        assert_eq!(record.setup.events, Some(vec![]));
        assert_eq!(record.setup.mode, Some(Mode::Discard));
        assert_eq!(record.setup.size, Some(BufferSize::DEFAULT));
        assert!(record.command.is_none());
    }

    #[test]
    fn patterns_go_in_order() {
        let record = recorded("-x b -e sched:* -e irq:* -x c -b 64Kx8 -- make -j -x all");
        assert_eq!(
            record.setup.events.unwrap(),
            ["sched:*", "irq:*", "!b", "!c"]
        );
        assert_eq!(record.setup.size.unwrap().to_string(), "64Kx8");
        let (program, arguments) = record.command.unwrap();
        assert_eq!(program, "make");
        assert_eq!(arguments, ["-j", "-x", "all"]);
        assert_eq!(recorded("-x b").setup.events.unwrap(), ["*:*", "!b"]);
    }

    #[test]
    fn commas_separate_patterns() {
        let record = recorded("-e a:*,b -x c,d -e e");
        let expected = ["a:*", "b", "e", "!c", "!d"];
        assert_eq!(record.setup.events.unwrap(), expected);
        for option in ["-e", "-x"] {
            for word in ["", ",", "a,", ",a", "a,,b", "a b", "a, b", " ", "a\n"] {
                let parsed = Cli::try_parse_from(["rtrace", "record", option, word]);
                assert_eq!(parsed.unwrap_err().exit_code(), 2, "{option} '{word}'");
            }
        }
    }
}
