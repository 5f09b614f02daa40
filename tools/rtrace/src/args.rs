// SPDX-License-Identifier: GPL-2.0

//! The command line, as typed.

use crate::channels::ChannelArg;
use crate::condition::Condition;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use trace::access::{parse_group, parse_mode, Gid};
use trace::rotate::Every;
use trace::settings::BufferSize;

/// Records and reports what the Linux kernel does.
#[derive(Debug, Parser)]
#[command(name = "rtrace", version, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  rtrace record -e 'sched:*' -- make        record while a command runs
  rtrace report rtrace-20261120-230000      what the trace holds
  rtrace doctor                             what is missing to record

Exit codes: 0 done, 1 failed, 2 wrong usage; `rtrace record --help` has its own.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// Where debugfs is mounted
    #[arg(long, global = true, value_name = "PATH", default_value = trace::tracer::DEBUGFS)]
    pub debugfs: PathBuf,

    /// Session to work with: one that is there (`rtrace sessions`) [default: default; `record`
    /// makes one for itself]
    #[arg(long, global = true, value_name = "NAME")]
    pub session: Option<String>,
}

impl Cli {
    /// Parses a command line.
    pub fn from_words<W>(words: impl IntoIterator<Item = W>) -> Result<Self, clap::Error>
    where
        W: Into<OsString> + Clone,
    {
        let matches = Self::command().try_get_matches_from(words)?;
        let mut cli = Self::from_arg_matches(&matches)?;
        let setup = match &mut cli.command {
            Command::Record(args) => Some(&mut args.setup),
            Command::Start(args) => Some(&mut args.setup),
            _ => None,
        };
        if let (Some(setup), Some((_, matches))) = (setup, matches.subcommand()) {
            setup.places = Places::of(matches);
        }
        Ok(cli)
    }
}

/// After how many `--channel`s each pattern stands.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Each of -e.
    pub events: Vec<usize>,
    /// Each of -x.
    pub exclude: Vec<usize>,
    /// Of each --filter: the patterns of the -e before it.
    pub filters: Vec<Range<usize>>,
}

impl Places {
    fn of(matches: &ArgMatches) -> Self {
        let indices = |id| -> Vec<usize> { matches.indices_of(id).into_iter().flatten().collect() };
        let channels = indices("channels");
        let places = |id| {
            let before = |at: usize| channels.iter().filter(|channel| **channel < at).count();
            indices(id).into_iter().map(before).collect()
        };
        Self {
            events: places("events"),
            exclude: places("exclude"),
            filters: filters(matches),
        }
    }
}

/// The patterns of the -e that stands before each --filter; none, if none does.
fn filters(matches: &ArgMatches) -> Vec<Range<usize>> {
    let indices = |id| -> Vec<usize> { matches.indices_of(id).into_iter().flatten().collect() };
    let mut options = Vec::new();
    let mut end = 0;
    for values in matches
        .get_occurrences::<String>("events")
        .into_iter()
        .flatten()
    {
        let begin = end;
        end += values.count();
        options.push(begin..end);
    }
    let events = indices("events");
    let before = |filter: usize| {
        let mut before = options.iter().rev();
        let found = before.find(|values| events[values.start] < filter);
        found.cloned().unwrap_or(0..0)
    };
    indices("filters").into_iter().map(before).collect()
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    Record(Box<RecordArgs>),
    Report(ReportArgs),
    List(ListArgs),
    Status(StatusArgs),
    Start(Box<StartArgs>),
    /// End the trace; what is in the buffers stays readable until the next start, or `free`
    Stop,
    Snapshot(SnapshotArgs),
    /// Free the memory of a stopped trace; what nobody has read of it is dropped
    Free,
    /// Put the session's settings back to the defaults, and free the memory of a stopped trace
    Reset,
    Mark(MarkArgs),
    Probe(ProbeArgs),
    Create(CreateArgs),
    Destroy(DestroyArgs),
    Sessions(SessionsArgs),
    /// Check what is missing to record, and how to mend it
    Doctor,
    #[command(hide = true)]
    Generate(GenerateArgs),
}

/// Which events, whose, what beside them, and into what.
#[derive(Debug, Args)]
pub struct SetupArgs {
    /// Record these events: SYSTEM:EVENT, EVENT or SYSTEM, by rtrace's names or ftrace's and
    /// perf's, with *, ? and [...]. Several are separated by commas, or given with -e each
    #[arg(short, long = "event", value_name = "PATTERN", value_delimiter = ',')]
    #[arg(value_parser = pattern)]
    pub events: Vec<String>,

    /// But not these. Without -e: all events but these
    #[arg(
        short = 'x',
        long = "exclude",
        value_name = "PATTERN",
        value_delimiter = ','
    )]
    #[arg(value_parser = pattern)]
    pub exclude: Vec<String>,

    /// Buffer of each CPU: N sub-buffers of SIZE bytes (with K, M, G), both powers of two
    #[arg(short, long, value_name = "SIZExN")]
    pub buffer: Option<BufferSize>,

    /// Record the -e and -x that follow (up to the next --channel) in a channel of their own, with
    /// its own buffers: of SIZExN, in MODE `discard` or `overwrite`; what is not given is as -b and
    /// --overwrite say. Those before the first --channel are recorded in `channel0`
    #[arg(long = "channel", value_name = "NAME[:SIZExN][:MODE]")]
    pub channels: Vec<ChannelArg>,

    #[arg(skip)]
    pub places: Places,

    /// Of the events of the -e before it, record only those of which EXPR is true, in ftrace's
    /// language: 'prev_prio < 0 && next_comm ~ "kworker*"'. Names are the event's fields, and
    /// contexts
    #[arg(long = "filter", value_name = "EXPR")]
    pub filters: Vec<String>,

    /// Record these beside each event: pid, tid, ppid, vpid, vtid, comm, prio, nice, cpu, cgroup_id;
    /// uid, euid, suid, gid, egid, sgid, vuid, veuid, vsuid, vgid, vegid, vsgid; cgroup_ns, ipc_ns,
    /// mnt_ns, net_ns, pid_ns, time_ns, user_ns, uts_ns; need_reschedule, preemptible, interruptible;
    /// callstack-kernel, callstack-user; perf:cpu:cycles, perf:cpu:page-faults and others of perf's.
    /// `rtrace list --contexts` has all
    #[arg(long = "context", value_name = "NAME", value_delimiter = ',')]
    pub contexts: Vec<String>,

    /// Record these CPUs only: 0,2-3
    #[arg(short = 'C', long = "cpu", value_name = "LIST")]
    pub cpus: Option<String>,

    /// Record these processes only: all their threads, and what they start
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<u32>,

    /// Record what tasks in this cgroup do only, and in those below it: a path in the v2 hierarchy
    /// (/system.slice/ssh.service, as in /proc/PID/cgroup) or where that is mounted. Several are
    /// given with --cgroup each
    #[arg(long = "cgroup", value_name = "PATH")]
    pub cgroups: Vec<String>,

    /// Record markers (`rtrace mark`) in this channel, or in `none` [default: channel0]
    #[arg(long, value_name = "CHANNEL")]
    pub marker_channel: Option<String>,

    /// Trace clock, by its name in debugfs' rtrace/clock
    #[arg(long, value_name = "CLOCK")]
    pub clock: Option<String>,

    /// Take all this, and the session's name, from a TOML file (see the user guide, and
    /// samples/*.toml). Contexts, CPUs, processes, cgroups, clock and channel of markers that are given
    /// beside it go before the file's
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = [
        "events", "exclude", "filters", "buffer", "overwrite", "channels"
    ])]
    pub config: Option<PathBuf>,
}

/// Who may read a trace.
#[derive(Debug, Args)]
pub struct AccessArgs {
    /// Permissions of DIR, in octal, whatever the umask; its files get them without the x bits.
    /// If DIR is there already, only its files [default: 0700; with --group 0750]
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub mode: Option<u32>,

    /// Group of DIR and its files: a name in /etc/group, or a number
    #[arg(long, value_name = "GROUP", value_parser = parse_group)]
    pub group: Option<Gid>,
}

/// Record a trace while a command runs, or until Ctrl-C
///
/// Makes a session of its own, runs COMMAND, stops, writes everything to DIR, and destroys the
/// session: what other sessions record goes on, and others may record at the same time. Needs no
/// daemon. If COMMAND cannot be run nothing is recorded, and no DIR is left. Without -e and -x the
/// module's default events are recorded. The last line is `N events recorded, M lost`.
///
/// With --session it records in that session, which must be stopped, and puts its settings back as
/// they were. Killed by SIGKILL it leaves its session `record-PID`, and the memory of that, until
/// the next `rtrace record`, or `rtrace destroy record-PID`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Channels:
  rtrace record -e sched --channel calls:4Mx4 -e syscalls --channel last:64Kx8:overwrite -e timer

  records scheduling in channel0, system calls in large buffers of their own, and of the timers
  the newest only: channels in overwrite mode are read at the end. The trace has a file
  CHANNEL_cpuN for each channel and CPU, which viewers show as one trace.

Until something happens:
  rtrace record --overwrite --until 'event:sched:sched_switch if prev_prio < 0' -e sched
  rtrace record --overwrite --snapshot-on failure --snapshot-on 'log:BUG|WARNING' -- ./flaky-test

  The first ends at the first such switch, and writes what led to it. Of the second, nothing is
  written if neither the test fails nor the kernel complains.

Exit codes:
  that of COMMAND; 128 + N if signal N ended it; 0 without COMMAND
  124  events were lost, and --fail-on-loss was given (and COMMAND succeeded)
  125  rtrace itself failed: the trace is incomplete, or there is none
  126  COMMAND cannot be run
  127  COMMAND was not found
  2    wrong usage")]
pub struct RecordArgs {
    #[command(flatten)]
    pub setup: SetupArgs,

    /// Record calls of a function of the kernel or of a program, too, and what SPEC names of its arguments and its
    /// result (see `rtrace probe --help`). The event is there as long as the recording. Without -e
    /// nothing else is recorded
    #[arg(short = 'k', long = "probe", value_name = "SPEC")]
    pub probes: Vec<String>,

    /// Record COMMAND only: all its threads, and what it starts
    #[arg(long)]
    pub only: bool,

    /// End the recording when this happens, or when COMMAND ends. WHAT is event:PATTERN,
    /// event:'PATTERN if EXPR', log:REGEX (a line of the kernel log), signal:USR1, signal:USR2, or
    /// failure: COMMAND fails, and if it does not, nothing is left of the recording. May be given
    /// several times: the first that happens counts. COMMAND goes on, and is waited for
    #[arg(long, value_name = "WHAT")]
    pub until: Vec<Condition>,

    /// After an event of --until record so many packets more, on all CPUs together
    #[arg(long, value_name = "PACKETS", requires = "until")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub after: Option<u64>,

    /// With --overwrite: each time this happens (WHAT as for --until) write what the buffers hold
    /// to DIR/1, DIR/2, ... Nothing else is written. Recording goes on until COMMAND ends
    #[arg(long, value_name = "WHAT")]
    pub snapshot_on: Vec<Condition>,

    /// End the recording after so many snapshots
    #[arg(long, value_name = "N", requires = "snapshot_on")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub snapshots: Option<u64>,

    /// Directory for the trace: new or empty [default: ./rtrace-YYYYMMDD-HHMMSS, UTC]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Flight recorder: when a buffer is full overwrite its oldest events. Nothing is read
    /// until the end, when the newest events are written
    #[arg(long)]
    pub overwrite: bool,

    /// Write around the page cache (O_DIRECT): a small part of the CPU time and no memory, but
    /// the writer waits for the disk at each packet. Not every file system can
    #[arg(long)]
    pub direct: bool,

    /// Cut the trace into chunks DIR/chunk-000001, DIR/chunk-000002, ..., each a trace of its own as
    /// soon as it is called so. The next one begins before the packets of one are more than SIZE
    /// (with K, M, G), or every TIME (with s, min, h, d), also if nothing was recorded
    #[arg(long, value_name = "SIZE|TIME")]
    pub rotate: Option<Every>,

    /// Keep the newest N finished chunks, and remove those before
    #[arg(long, value_name = "N", requires = "rotate")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub keep: Option<u64>,

    #[command(flatten)]
    pub access: AccessArgs,

    /// Fail with exit code 124 if events were lost (with --overwrite: were discarded)
    #[arg(long)]
    pub fail_on_loss: bool,

    /// Command to run while recording
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<OsString>,
}

/// Summarise a trace: events by type and CPU, the busiest tasks, what was lost
///
/// Of a trace that was recorded with --rotate, DIR is its directory, for all chunks in their order, or
/// one of them.
///
/// Or answer questions about it, several in one run. A question needs the events that it is about;
/// where the trace lacks them, the error says what to record. Where events were lost, figures are
/// lower bounds: nothing is timed across a place where an event may be missing.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// System calls: how often, how many failed, how long they took
    #[arg(long)]
    pub syscalls: bool,

    /// Also which process made them
    #[arg(long, requires = "syscalls")]
    pub by_process: bool,

    /// Wake-ups: how long threads waited until they ran, with the longest waits
    #[arg(long)]
    pub latency: bool,

    /// Threads: how long each ran, could have run, and waited, and how it left its CPU
    #[arg(long)]
    pub threads: bool,

    /// CPUs: how long each was busy, idle, and in interrupts
    #[arg(long)]
    pub cpu: bool,

    /// Interrupts, hard and soft: how often each was handled, and how long that took
    #[arg(long)]
    pub irq: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Rows in each table; 0 for all
    #[arg(short = 'n', long, value_name = "ROWS", default_value_t = 15)]
    pub rows: usize,

    /// Directory of the trace
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// List the events that can be recorded, the contexts, or the functions of the kernel
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Also their names in ftrace and perf, where they are others, and their fields
    #[arg(short, long)]
    pub verbose: bool,

    /// List what can be recorded beside events, the names for `record --context`
    #[arg(long, conflicts_with_all = ["verbose", "patterns", "functions"])]
    pub contexts: bool,

    /// List the functions of the kernel, for `record -k`, whose names match this one: a shell pattern
    #[arg(short = 'k', long, value_name = "PATTERN", conflicts_with_all = ["verbose", "patterns"])]
    pub functions: Option<String>,

    /// Only those that match one of these, as for `record -e`
    #[arg(value_name = "PATTERN", value_delimiter = ',', value_parser = pattern)]
    pub patterns: Vec<String>,
}

/// Show the session: its state, events, buffers and counters
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Record a text with its time, in every session that records
///
/// The trace has it as the event `rtrace_marker`, whatever events were chosen. With --session only
/// that session records it. Fails if none does. `echo TEXT > /sys/kernel/debug/rtrace/marker` does
/// the same.
#[derive(Debug, Args)]
pub struct MarkArgs {
    /// The text, at most 1023 bytes; several words are joined by blanks
    #[arg(value_name = "TEXT", required = true)]
    pub text: Vec<String>,
}

/// Define events at functions of the kernel or of programs, show those there are, or take some away
///
/// SPEC is a function, what of its arguments is recorded, and what of its result:
///
///   [EVENT=]FUNCTION[(ARGUMENT, ...)] [-> RESULT, ...]
///
/// Without `->` the event is recorded when the function is called, with it when it returns, with
/// the arguments that it was called with. An ARGUMENT is a parameter by its name, and what it leads to:
/// file->f_inode->i_ino; the result is called `ret`. Where and what these are the kernel's own types say
/// (/sys/kernel/btf). In front of each may stand NAME= and behind it :TYPE (u8 to u64, s8 to s64, x8 to
/// x64, symbol, string, ustring: a text in user space). In place of a parameter may stand what
/// ftrace's kprobe events take: %REGISTER, $comm, $stackN, +OFFSET(VALUE). FUNCTION+OFFSET is a place in
/// its code.
///
/// /FILE:FUNCTION is a function of a program or library, by its symbol. Of its types nothing is known:
/// arguments are $arg1 to $arg6, not where it returns; the result is `ret`.
///
/// The events are called probe:FUNCTION, or probe:FUNCTION__return; they are there until they are
/// deleted or the module is unloaded. `rtrace record -k SPEC` has them for the time of a recording.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  rtrace probe 'vfs_read(count, ino=file->f_inode->i_ino) -> ret'
  rtrace probe 'do_sys_openat2(dfd, filename:ustring)'
  rtrace record -e 'probe:*' -- cat /etc/hostname
  rtrace record -k '/bin/bash:readline(prompt=$arg1:ustring)' -k '/bin/bash:readline -> ret:ustring'
  rtrace probe --delete vfs_read__return")]
pub struct ProbeArgs {
    /// What to define; without one, the events there are are shown
    #[arg(value_name = "SPEC")]
    pub specs: Vec<String>,

    /// Take this event away: SUBSYSTEM:EVENT, or the EVENT of a SPEC
    #[arg(long, short, value_name = "EVENT", conflicts_with = "specs")]
    pub delete: Vec<String>,
}

/// Create a session: settings, events and traces of its own
///
/// It is there until `rtrace destroy`, or until the module is unloaded. Then work with it by
/// --session: `rtrace --session NAME start -e ...`, `rtraced --session NAME -o DIR`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Its name: letters, digits, _, - and ., not beginning with one of the last two; at most 63
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// Destroy a session: end its trace, drop what nobody has read of it, and free its memory
///
/// Who reads its trace (rtraced) reads on to the end. The session `default` is always there.
#[derive(Debug, Args)]
pub struct DestroyArgs {
    /// The session
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// List the sessions: their states, channels, and how many events are enabled
///
/// `rtrace --session NAME status` shows one with its counters.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
}

/// Start a new trace, for `rtraced` or `rtrace snapshot` to read
///
/// Options change the session's settings, or FILE does; what is not given stays as it is. What is not
/// the default then is shown (`rtrace status` has the details); `rtrace reset` puts it back. A channel
/// that is not there is made, and stays as long as the session. With --config it is the session of the
/// file, if there is no --session. What is refused changes nothing.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  rtrace start --overwrite -b 1Mx16               a flight recorder of the events chosen before
  rtrace start -e sched_switch --filter 'prev_prio < 0' --context comm --channel calls -e syscalls
  rtrace --session web start --config web.toml")]
pub struct StartArgs {
    #[command(flatten)]
    pub setup: SetupArgs,

    /// When a buffer is full overwrite its oldest events (flight recorder)
    #[arg(long, conflicts_with = "discard")]
    pub overwrite: bool,

    /// When a buffer is full discard new events
    #[arg(long, conflicts_with = "config")]
    pub discard: bool,
}

/// Write what the buffers hold at this moment to a new trace
///
/// For a session that nobody else reads, such as a flight recorder started with `rtrace
/// start --overwrite`. Recording goes on. What was written has left the buffers; what comes meanwhile
/// stays there for the next snapshot. `rtraced --snapshots` writes one at each SIGUSR2.
#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// Directory for the trace: new or empty
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,

    #[command(flatten)]
    pub access: AccessArgs,
}

/// Write man pages and shell completions
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Directory for them
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// One pattern: what stands between commas. White space would end it in `set_event`.
pub fn pattern(word: &str) -> Result<String, &'static str> {
    if word.is_empty() {
        Err("a pattern is missing")
    } else if word.contains(char::is_whitespace) {
        Err("white space in a pattern; several are separated by commas")
    } else {
        Ok(word.to_owned())
    }
}
