// SPDX-License-Identifier: GPL-2.0

//! `rtrace probe`, as typed.

use clap::Args;

/// Define, list or delete probe events on functions and tracepoints
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
/// tracepoint:NAME is a tracepoint of the kernel, also one that is no event (`rtrace list --functions 'tracepoint:*_tp'`),
/// with the first five of its arguments.
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
  rtrace record -k 'tracepoint:pelt_se_tp(se->avg.util_avg)' -- make
  rtrace probe --delete vfs_read__return")]
pub struct ProbeArgs {
    /// Event to define; without one, the probe events are listed
    #[arg(value_name = "SPEC")]
    pub specs: Vec<String>,

    /// Delete this event: SUBSYSTEM:EVENT, or the EVENT of a SPEC
    #[arg(long, value_name = "EVENT", conflicts_with = "specs")]
    pub delete: Vec<String>,

    /// Print the events there are as one JSON array
    #[arg(long, conflicts_with_all = ["specs", "delete"])]
    pub json: bool,
}
