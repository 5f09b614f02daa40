// SPDX-License-Identifier: GPL-2.0

//! `rtrace probe`, as typed.

use clap::Args;

/// Define, list or delete probe events on functions and tracepoints
///
/// SPEC is a function, the arguments to record, and the values of its result to record:
///
///   [EVENT=]FUNCTION[(ARGUMENT, ...)] [-> RESULT, ...]
///
/// Without `->`, a call of the function records the event. With it, the return records the event, with the arguments of
/// the call. An ARGUMENT is a parameter's name and the members to follow: file->f_inode->i_ino. The result is called
/// `ret`. The kernel's own types (/sys/kernel/btf) say where a value is and what type it has. NAME= before a value
/// names it, :TYPE after the value sets its type (u8 to u64, s8 to s64, x8 to x64, be16 to be64: network byte order,
/// symbol, string, ustring: a text in user space). A parameter can be replaced by what ftrace's kprobe events take:
/// %REGISTER, $comm, $stackN, +OFFSET(VALUE). FUNCTION+OFFSET is a place in the function's code.
///
/// /FILE:FUNCTION is a function of a program or library, by its symbol. Its parameters have names if there is debug
/// information about the file. Otherwise the arguments are $arg1 to $arg6. The result is `ret`. FUNCTION@VERSION and FUNCTION@0xADDRESS choose one of several functions of that name.
///
/// usdt:WHERE:[PROVIDER:]NAME is a probe (USDT) in the code of a program or library, with arg1, arg2, ... as arguments.
/// WHERE is a file, the name of a program or library that runs or is in $PATH, or a PID. str(ARGUMENT) is the text at that
/// address. `rtrace list -u WHERE` lists the probes.
///
/// tracepoint:NAME is a tracepoint of the kernel, with the first five of its arguments. It need not be an event
/// (`rtrace list --functions 'tracepoint:*_tp'`).
///
/// The names of the events are probe:FUNCTION, or probe:FUNCTION__return. An event exists until it is deleted or the
/// module is unloaded. `rtrace record -k SPEC` defines it for one recording.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  rtrace probe 'vfs_read(count, ino=file->f_inode->i_ino) -> ret'
  rtrace probe 'do_sys_openat2(dfd, filename:ustring)'
  rtrace record -e 'probe:*' -- cat /etc/hostname
  rtrace record -k '/bin/bash:readline(prompt=$arg1:ustring)' -k '/bin/bash:readline -> ret:ustring'
  rtrace record -k 'usdt:postgres:query__start(query=str(arg1))'
  rtrace record -k 'tracepoint:pelt_se_tp(se->avg.util_avg)' -- make
  rtrace probe --delete vfs_read__return")]
pub struct ProbeArgs {
    /// Event to define; without one, the probe events are listed
    #[arg(value_name = "SPEC")]
    pub specs: Vec<String>,

    /// Delete this event: SUBSYSTEM:EVENT, or the EVENT of a SPEC
    #[arg(long, value_name = "EVENT", conflicts_with = "specs")]
    pub delete: Vec<String>,

    /// Print the events there are as one JSON object
    #[arg(long, conflicts_with_all = ["specs", "delete"])]
    pub json: bool,
}
