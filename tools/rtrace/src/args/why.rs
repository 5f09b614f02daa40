// SPDX-License-Identifier: GPL-2.0

//! `rtrace why`, as typed.

use super::{rows, RangeArgs, SizeArgs};
use crate::complete;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use std::path::PathBuf;

/// Say why a thread or command waited: the causes, those with most time first
///
/// Each row has a cause, its share of the time in which the threads waited, the number of its instances, and the time of
/// the longest. A blocked thread has the place in which it slept (system call, lock, kernel function or call stack), and
/// the thread, interrupt, timer or disk request that woke it. The rows below say what the waker did meanwhile, and what
/// it waited for itself. A thread that waits for a CPU has the threads and interrupts that ran there. The sums are those
/// of `rtrace report --threads`. Time without a known cause has a row, which says what to record.
///
/// Record -e sched,irq,syscalls -e 'block_rq_*' -e 'timer_*expire*' for all of these causes. --context
/// callstack-kernel,callstack-user adds the call stacks.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  rtrace record -e sched,irq,syscalls -e 'block_rq_*' -e 'timer_*expire*' -o trace -- make
  rtrace why make trace
  rtrace why 4711 trace
  rtrace why -p 4711 trace
  rtrace why make --from +5s --to +6s trace
  rtrace why 'work*' --json trace")]
pub struct WhyArgs {
    /// The threads of this process
    #[arg(short, long, value_name = "PID", conflicts_with = "dir")]
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    pub pid: Option<i64>,

    #[command(flatten)]
    pub range: RangeArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Causes to show; 0 for all
    #[arg(short = 'n', long, value_name = "ROWS", default_value = "15", value_parser = rows, conflicts_with = "budget")]
    pub rows: usize,

    #[command(flatten)]
    pub size: SizeArgs,

    /// A thread id, or the name of threads: a name, or a pattern with *, ? and [...]
    ///
    /// With -p, and if it is the only argument and a directory, it is DIR.
    #[arg(value_name = "WHO")]
    #[arg(add = ArgValueCompleter::new(complete::traces))]
    pub who: Option<String>,

    /// Directory of the trace [default: the newest in the current directory]
    #[arg(value_name = "DIR")]
    #[arg(add = ArgValueCompleter::new(complete::traces))]
    pub dir: Option<PathBuf>,
}
