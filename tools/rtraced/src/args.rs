// SPDX-License-Identifier: GPL-2.0

//! The command line, as typed.

use clap::{ArgGroup, Parser};
use network::{parse_address, parse_quota};
use std::path::PathBuf;
use store::Every;
use system::access::{parse_group, parse_mode, Gid};

/// Exit codes, what a restart does, and chunks, for `--help`.
const AFTER: &str = "\
How it ends:
  When the trace is over (`rtrace stop`, or 0 written to `enable`), or on SIGTERM, SIGINT,
  SIGHUP, SIGQUIT, SIGALRM, SIGUSR1 or SIGUSR2: what the buffers hold is flushed and written
  first. The last message is
  `N events recorded, M lost`.

  When the disk is full: the trace in DIR is cut back to its last whole packets, which are
  valid. The kernel goes on recording. Make room and start rtraced again.

  Started again with the same DIR before another trace is started, it continues that trace,
  also after kill -9 and after the trace was stopped, without a gap or a packet twice. For another trace take another DIR.

Chunks:
  rtraced -o DIR --rotate 1G
  rtraced -o DIR --rotate 10min --keep 24

  As soon as a chunk is called chunk-N it is whole and on the disk; the one that is being written
  is called .chunk-N.new. Together they have every packet once; `rtrace report DIR` reads them all,
  `rtrace report DIR/chunk-N` one. With a TIME the next one begins also if nothing was recorded.
  Started again with the same DIR, it goes on in the chunk that was not finished, or in a new one.

Snapshots:
  rtrace start --overwrite -b 1Mx16
  rtraced -o DIR --snapshots --pid-file /run/rtraced.pid
  kill -USR2 $(cat /run/rtraced.pid)

  Each has what was recorded since the one before, as far as it was not overwritten. It is whole when
  the message says so, and when DIR/N/.recording has the line `state stopped`. One that fails is
  reported, and rtraced goes on; its exit code in the end is that of the first failure.

Network:
  rtraced --listen /run/rtraced.sock -o /traces
  rtraced --connect /run/rtraced.sock

  Within one machine. To another machine:

  rtraced --listen 10.0.0.1:5344 -o /traces --ca ca.pem --cert collector.pem --key collector.key
  rtraced --connect 10.0.0.1:5344 --ca ca.pem --cert web1.pem --key web1.key

  The kernel has a packet back when the receiver has written it. While the receiver is not there, or
  its disk is full, the sender tries again, at first after 0.1 s and later every 5 s, and the
  buffers fill; what does not fit is lost, and counted. When it is there again, or either of the two was
  started again, the trace goes on without a gap or a packet twice. A receiver that refuses the first
  connection for good (its version, its certificate or ours) ends the sender.

Messages go to standard error; after detaching to the system log, unless standard error
is a file.

Exit codes:
  0  the trace was written (or a signal came before there was one)
  1  rtrace cannot be read: no module, no debugfs, not root, no such session, a failing
     stream, nothing left with --leftover; or a failing network
  2  wrong usage
  3  DIR holds something else
  4  DIR cannot be written, for example because the disk is full
  5  another rtraced (or other reader) is at work";

/// Moves a trace from the kernel to disk, without copying it.
///
/// Takes the trace that is being recorded, or waits for the next start; then writes every CPU's
/// packets to one file each in DIR, which is a CTF 1.8 trace at every moment. Unless --foreground
/// is given it detaches as soon as it waits, or every stream is open. A trace that was stopped
/// before is taken only with --leftover, or if DIR holds a part of it.
#[derive(Debug, Parser)]
#[command(name = "rtraced", version, after_long_help = AFTER, after_help = "More: --help")]
#[command(group(ArgGroup::new("network").args(["connect", "listen"])))]
pub struct Args {
    /// Directory for the trace: new, empty, or holding a part of the same trace (with --rotate: chunks
    /// of it; with --snapshots: snapshots; with --listen: a directory for each trace)
    #[arg(short, long, value_name = "DIR", required_unless_present_any = ["connect", "generate"])]
    pub output: Option<PathBuf>,

    /// Send the trace to the receiver there (`rtraced --listen`), and write nothing here. PATH is that of a
    /// Unix socket, and has a `/` in it
    #[arg(long, value_name = "PATH|HOST:PORT", value_parser = parse_address)]
    #[arg(conflicts_with_all = [
        "output", "listen", "direct", "rotate", "keep", "snapshots", "mode", "group"
    ])]
    pub connect: Option<String>,

    /// Record nothing here, but receive what others send with --connect, each trace into
    /// DIR/HOST-UUID. PATH is that of a Unix socket, which takes connections of root and of its own user only.
    /// ADDR is one of this machine's, or 0.0.0.0 or [::] for all
    #[arg(long, value_name = "PATH|ADDR:PORT", value_parser = parse_address)]
    #[arg(conflicts_with_all = ["direct", "snapshots", "leftover", "session"])]
    pub listen: Option<String>,

    /// For --listen: the most bytes that all traces in DIR may take (with K, M, G). A sender is then refused, and
    /// tries again, until there is room [default: no limit]
    #[arg(long, value_name = "SIZE", requires = "listen", value_parser = parse_quota)]
    pub quota: Option<u64>,

    /// For --connect and --listen: certificate of the authority that has signed those of both sides, PEM
    #[arg(long, value_name = "FILE", requires_all = ["network", "cert", "key"])]
    pub ca: Option<PathBuf>,

    /// This side's certificate, PEM. The receiver's must have the name or address by which senders call it
    #[arg(long, value_name = "FILE", requires_all = ["ca", "key"])]
    pub cert: Option<PathBuf>,

    /// The private key of that, PEM
    #[arg(long, value_name = "FILE", requires_all = ["ca", "cert"])]
    pub key: Option<PathBuf>,

    /// Use TCP without encryption and without asking who the other side is, also within this machine. Every user
    /// of both machines, and everybody on the way, can then read what the kernel does, and change it
    #[arg(long, requires = "network", conflicts_with_all = ["ca", "cert", "key"])]
    pub plain: bool,

    /// Session to read. It must be there
    #[arg(short, long, value_name = "NAME", default_value = control::DEFAULT_SESSION)]
    pub session: String,

    /// Write around the page cache (O_DIRECT): a small part of the CPU time and no memory, but
    /// the writer waits for the disk at each packet. Not every file system can
    #[arg(long)]
    pub direct: bool,

    /// Cut the trace into chunks DIR/chunk-000001, DIR/chunk-000002, ..., each a trace of its own. The
    /// next one begins before the packets of one are more than SIZE (with K, M, G), or every TIME
    /// (with s, min, h, d)
    #[arg(long, value_name = "SIZE|TIME")]
    pub rotate: Option<Every>,

    /// Keep the newest N finished chunks, and remove those before
    #[arg(long, value_name = "N", requires = "rotate")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub keep: Option<u64>,

    /// Flight recorder: write nothing until SIGUSR2 asks for it, and then what the buffers hold, to
    /// DIR/1, DIR/2, ..., each time. Goes on from trace to trace, until another signal
    #[arg(long, conflicts_with_all = ["rotate", "leftover"])]
    pub snapshots: bool,

    /// Permissions of DIR, in octal, whatever the umask; its files get them without the x bits.
    /// If DIR is there already, only its files [default: 0700; with --group 0750]
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub mode: Option<u32>,

    /// Group of DIR and its files: a name in /etc/group, or a number
    #[arg(long, value_name = "GROUP", value_parser = parse_group)]
    pub group: Option<Gid>,

    /// Do not wait for a start: also take the last trace, which was stopped before, and write
    /// what nobody has read of it
    #[arg(long)]
    pub leftover: bool,

    /// Do not detach
    #[arg(short, long)]
    pub foreground: bool,

    /// File to hold the process id as long as it runs
    #[arg(short, long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,

    /// Where debugfs is mounted
    #[arg(long, value_name = "PATH", default_value = control::DEBUGFS)]
    pub debugfs: PathBuf,

    /// Run as the detached half of another rtraced
    #[arg(long, hide = true)]
    pub detached: bool,

    /// Write man pages and shell completions to this directory, and end
    #[arg(long, value_name = "DIR", hide = true)]
    pub generate: Option<PathBuf>,
}
