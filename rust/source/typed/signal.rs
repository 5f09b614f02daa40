// SPDX-License-Identifier: GPL-2.0

//! Events of signals.

use crate::source::field::Hex;
use crate::sys::args::{SigAction, SigInfo, Task};

event! {
    /// A signal is sent to a task, or to its whole process.
    SIGNAL_GENERATE: signal "signal_generate" =
        signal_generate(sig: i32, info: SigInfo, task: &Task, group: i32, result: i32)
    {
        sig: i32 = sig,
        errno: i32 = info.errno(),
        code: i32 = info.code(),
        comm: [u8; 16] = task.comm(),
        pid: i32 = task.tid(),
        group: i32 = group,
        result: i32 = result,
        sender_pid: i32 = info.origin(sig).pid,
        sender_uid: u32 = info.origin(sig).uid,
        value: Hex = Hex::new(info.origin(sig).value),
    }
}

event! {
    /// A signal reaches the task that runs.
    SIGNAL_DELIVER: signal "signal_deliver" =
        signal_deliver(sig: i32, info: SigInfo, action: &SigAction)
    {
        sig: i32 = sig,
        errno: i32 = info.errno(),
        code: i32 = info.code(),
        sa_handler: Hex = Hex::new(action.handler()),
        sa_flags: Hex = Hex::new(action.flags()),
        pid: i32 = info.origin(sig).pid,
        uid: u32 = info.origin(sig).uid,
        status: i32 = info.origin(sig).status,
        addr: Hex = Hex::new(info.origin(sig).addr),
        value: Hex = Hex::new(info.origin(sig).value),
        utime: i64 = info.origin(sig).utime,
        stime: i64 = info.origin(sig).stime,
    }
}
