// SPDX-License-Identifier: GPL-2.0

//! The command line, as typed.

use clap::{ArgGroup, Parser};
use network::{parse_address, parse_quota};
use rustix::process::Signal;
use std::path::PathBuf;
use store::Every;
use system::access::{parse_group, parse_mode, Gid};

/// Exit codes, restarts, and chunks, for `--help`.
const AFTER: &str = "\
End:
  rtraced ends when the trace is over (`rtrace stop`, or 0 written to `enable`), or on SIGTERM,
  SIGINT, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1 or SIGUSR2. It first flushes the buffers and writes
  their contents. The last message is
  `N events recorded, M lost`.

  If the disk is full, the trace in DIR is cut to its last complete packets, which are valid. The
  kernel goes on recording. Free some space and start rtraced again.

  If rtraced is started again with the same DIR before another trace is started, it continues the
  trace without gaps or duplicate packets, even after kill -9 and after the trace was stopped. Use
  another DIR for another trace.

Chunks:
  rtraced -o DIR --rotate 1G
  rtraced -o DIR --rotate 10min --keep 24

  A chunk with the name chunk-N is complete and on the disk. The chunk that is being written is
  called .chunk-N.new. Together they have each packet once. `rtrace report DIR` reads all of them,
  `rtrace report DIR/chunk-N` reads one. With a TIME, the next chunk begins even if nothing was
  recorded. If rtraced is started again with the same DIR, it continues the unfinished chunk, or
  begins a new one.

Snapshots:
  rtrace start --overwrite -b 1Mx16
  rtraced -o DIR --snapshot-on signal:USR2 --pid-file /run/rtraced.pid
  kill -USR2 $(cat /run/rtraced.pid)

  Each snapshot has the events since the previous one, as far as they were not overwritten. It is
  complete when the message says so, and when DIR/N/.recording has the line `state stopped`. If a
  snapshot fails, rtraced reports that and goes on; its exit code is that of the first failure.

Network:
  rtraced --listen /run/rtraced.sock -o /traces
  rtraced --connect /run/rtraced.sock

  Within one machine. To another machine:

  rtraced --listen 10.0.0.1:5344 -o /traces --ca ca.pem --cert collector.pem --key collector.key
  rtraced --connect 10.0.0.1:5344 --ca ca.pem --cert web1.pem --key web1.key

  The sender returns a packet to the kernel after the receiver has written it. If the receiver is
  unreachable or its disk is full, the sender retries, first after 0.1 s and later every 5 s. In
  the meantime the buffers fill; events that do not fit are lost and counted. After that, or after
  a restart of either side, the trace continues without gaps or duplicate packets. If the receiver
  permanently refuses the first connection (its version, its certificate or ours), the sender ends.

Metrics:
  rtrace session create numbers --map runqlat --map biolatency
  rtraced --metrics 9750 --session numbers

  Prometheus then gets histograms and counters of http://127.0.0.1:9750/metrics, whose labels are the
  keys of the maps. rtraced records nothing. The maps count until the session is destroyed.

Messages go to standard error. After detaching they go to the system log, unless standard error
is a file.

Exit codes:
  0  the trace was written (or a signal arrived before a trace began)
  1  rtrace cannot be read: no module, no debugfs, not root, no such session, a failing
     stream, nothing left with --leftover; or the network failed
  2  wrong usage
  3  DIR contains something else
  4  DIR cannot be written: the disk is full, or DIR was removed meanwhile
  5  another rtraced or another reader is running";

/// Writes a trace from the kernel to disk, without copying it.
///
/// Takes the trace that is being recorded, or waits for the next start. Then writes each CPU's packets to a
/// file in DIR, which is a valid CTF 1.8 trace at any time. Detaches as soon as it waits or all streams are
/// open, unless --foreground is given. Takes a stopped trace only with --leftover, or if DIR has a part of it.
#[derive(Debug, Parser)]
#[command(name = "rtraced", version, after_long_help = AFTER, after_help = "More: --help")]
#[command(group(ArgGroup::new("network").args(["connect", "listen", "metrics"])))]
pub struct Args {
    /// Directory for the trace: new, empty, or with a part of the same trace (with --rotate: chunks of it; with
    /// --snapshot-on: snapshots; with --keep-traces or --listen: a directory for each trace)
    #[arg(short, long, value_name = "DIR", required_unless_present_any = ["connect", "metrics", "generate"])]
    pub output: Option<PathBuf>,

    /// Send the trace to a receiver (`rtraced --listen`), and write nothing here. PATH is that of a Unix
    /// socket, and contains a `/`
    #[arg(long, value_name = "PATH|HOST:PORT", value_parser = parse_address)]
    #[arg(conflicts_with_all = [
        "output", "listen", "direct", "rotate", "keep", "snapshot_on", "keep_traces", "mode", "group"
    ])]
    pub connect: Option<String>,

    /// Record nothing here, but receive traces that others send with --connect, each into DIR/HOST-UUID. PATH
    /// is that of a Unix socket, which accepts connections of root and of its own user only. ADDR is an address
    /// of this machine, or 0.0.0.0 or [::] for all
    #[arg(long, value_name = "PATH|ADDR:PORT", value_parser = parse_address)]
    #[arg(conflicts_with_all = ["direct", "snapshot_on", "keep_traces", "leftover", "session"])]
    pub listen: Option<String>,

    /// Record nothing, but serve the numbers of the session's maps to Prometheus, at http://ADDR:PORT/metrics. ADDR is
    /// 127.0.0.1 by default; addresses for other machines need certificates, or --plain
    #[arg(long, value_name = "[ADDR:]PORT")]
    #[arg(conflicts_with_all = [
        "output", "direct", "rotate", "keep", "snapshot_on", "keep_traces", "mode", "group", "leftover", "quota"
    ])]
    pub metrics: Option<String>,

    /// Number of keys of each map that have labels of their own: the first ones. The others are counted together, as
    /// `other`
    #[arg(long, value_name = "N", requires = "metrics", default_value_t = 100)]
    #[arg(conflicts_with_all = ["output", "connect", "listen"])]
    pub metrics_keys: usize,

    /// With --listen: maximum size of all traces in DIR (with K, M, G). If it is reached, senders are refused
    /// and retry until there is room [default: no limit]
    #[arg(long, value_name = "SIZE", requires = "listen", value_parser = parse_quota)]
    pub quota: Option<u64>,

    /// With --connect, --listen and --metrics: certificate of the authority that has signed those of both sides, PEM
    #[arg(long, value_name = "FILE", requires_all = ["network", "cert", "key"])]
    pub ca: Option<PathBuf>,

    /// This side's certificate, PEM. The receiver's must have the name or address that senders use for it
    #[arg(long, value_name = "FILE", requires_all = ["ca", "key"])]
    pub cert: Option<PathBuf>,

    /// Private key of this side's certificate, PEM
    #[arg(long, value_name = "FILE", requires_all = ["ca", "cert"])]
    pub key: Option<PathBuf>,

    /// Use TCP without encryption and without a check of the other side, even within this machine. Each user of
    /// both machines, and everyone on the network between them, can then read the trace and alter it
    #[arg(long, requires = "network", conflicts_with_all = ["ca", "cert", "key"])]
    pub plain: bool,

    /// Session to read. It must exist
    #[arg(short, long, value_name = "NAME", default_value = control::DEFAULT_SESSION)]
    pub session: String,

    /// Bypass the page cache (O_DIRECT): needs less CPU time and no cache memory, but the writer waits for the
    /// disk at each packet. Some file systems do not support it
    #[arg(long)]
    pub direct: bool,

    /// Cut the trace into chunks DIR/chunk-000001, DIR/chunk-000002, ..., each a trace of its own. The next
    /// chunk begins before the packets of a chunk exceed SIZE (with K, M, G), or every TIME (with s, min, h, d)
    #[arg(long, value_name = "SIZE|TIME")]
    pub rotate: Option<Every>,

    /// Keep the newest N finished chunks, and remove older ones
    #[arg(long, value_name = "N", requires = "rotate")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub keep: Option<u64>,

    /// Flight recorder: at each signal of WHAT (signal:USR1 or signal:USR2), write the contents of the buffers to
    /// DIR/1, DIR/2, ..., and write nothing else. Continues with later traces, until another signal arrives
    #[arg(long, value_name = "WHAT", value_parser = signal, conflicts_with_all = ["rotate", "leftover"])]
    pub snapshot_on: Option<Signal>,

    /// Write the trace to a new directory DIR/YYYYMMDD-HHMMSS, named by the time (UTC), or continue it in the newest.
    /// Before a new one, remove the oldest, so that N remain; 0: keep all
    #[arg(long, value_name = "N", conflicts_with = "snapshot_on")]
    pub keep_traces: Option<usize>,

    /// Permissions of DIR, in octal, whatever the umask. Files in DIR get them without the x bits. If DIR
    /// exists, only its files get them [default: 0700; with --group 0750]
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub mode: Option<u32>,

    /// Group of DIR and its files: a name in /etc/group, or a number
    #[arg(long, value_name = "GROUP", value_parser = parse_group)]
    pub group: Option<Gid>,

    /// Do not wait for a start: also take the last trace if it was stopped before, and write its unread part
    #[arg(long)]
    pub leftover: bool,

    /// Do not detach
    #[arg(short, long)]
    pub foreground: bool,

    /// File that contains the process id while rtraced runs
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,

    /// Directory that contains rtrace's directory of files [default: /sys/kernel if the file system `rtrace` is mounted
    /// there, else debugfs]
    #[arg(long, value_name = "PATH")]
    pub debugfs: Option<PathBuf>,

    /// Run as the detached half of another rtraced
    #[arg(long, hide = true)]
    pub detached: bool,

    /// Write man pages and shell completions to this directory, and exit
    #[arg(long, value_name = "DIR", hide = true)]
    pub generate: Option<PathBuf>,
}

/// Parses the signal that requests a snapshot.
fn signal(text: &str) -> Result<Signal, &'static str> {
    match text {
        "signal:USR1" => Ok(Signal::USR1),
        "signal:USR2" => Ok(Signal::USR2),
        _ => Err("expected signal:USR1 or signal:USR2"),
    }
}
