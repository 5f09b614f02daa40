// SPDX-License-Identifier: GPL-2.0

//! Signals that reach a thread, and the end of a thread, in strace's form.

use super::arguments::number;
use ctf::{Event, EventLayout};
use decode::Origin;

/// An event that has a form of its own, with the numbers of its fields.
#[derive(Debug)]
pub enum Told {
    /// A signal reaches a thread.
    Signal([usize; 9]),
    /// A signal is sent to a thread. It has a line only if it ends the thread without reaching it.
    Sent([usize; 7]),
    /// A thread ends, with the field for its id, and a status as wait(2) tells it.
    End([usize; 2]),
}

/// The signal that only ends programs: the end says so.
pub const SIGKILL: u64 = 9;

/// A sent signal.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The thread.
    pub tid: i64,
    /// The number of the signal.
    pub signal: u64,
    /// Its line.
    pub text: String,
}

impl Told {
    /// The form of the events with this layout, if they have one. Older modules record fewer fields.
    pub fn of(layout: &EventLayout) -> Option<Self> {
        match layout.name.as_str() {
            "signal_deliver" => {
                let names = [
                    "sig", "code", "pid", "uid", "status", "addr", "value", "utime", "stime",
                ];
                let mut fields = [0; 9];
                for (field, name) in fields.iter_mut().zip(names) {
                    *field = layout.field(name)?;
                }
                Some(Self::Signal(fields))
            }
            "signal_generate" => {
                let names = [
                    "sig",
                    "code",
                    "pid",
                    "result",
                    "sender_pid",
                    "sender_uid",
                    "value",
                ];
                let mut fields = [0; 7];
                for (field, name) in fields.iter_mut().zip(names) {
                    *field = layout.field(name)?;
                }
                Some(Self::Sent(fields))
            }
            "sched_process_exit" => {
                Some(Self::End([layout.field("tid")?, layout.field("exit_code")?]))
            }
            _ => None,
        }
    }

    /// The signal that reaches a thread by an event.
    pub fn delivered(&self, event: &Event<'_>) -> Option<u64> {
        match self {
            Self::Signal([signal, ..]) => event.value(*signal).map(number),
            _ => None,
        }
    }

    /// The signal that an event sends, if the kernel did not discard it.
    pub fn sent(&self, event: &Event<'_>) -> Option<Sent> {
        let Self::Sent(fields) = self else {
            return None;
        };
        let values = fields.map(|field| event.value(field).map_or(0, number));
        let [signal, code, tid, result, pid, uid, value] = values;
        let origin = Origin {
            signal,
            code: code as i64,
            pid: pid as i64,
            uid,
            value,
            ..Origin::default()
        };
        (result == 0).then(|| Sent {
            tid: tid as i64,
            signal,
            text: line(&origin),
        })
    }

    /// The thread that an event ends, and the signal that ends it; 0, if none does.
    pub fn end(&self, event: &Event<'_>) -> Option<(i64, u64)> {
        let Self::End(fields) = self else {
            return None;
        };
        let [tid, status] = fields.map(|field| event.value(field).map_or(0, number));
        Some((tid as i64, status & 0x7f))
    }

    /// The text for an event. [`None`]: the event has no line.
    pub fn text(&self, event: &Event<'_>) -> Option<String> {
        let integer = |field: usize| event.value(field).map_or(0, number);
        match self {
            Self::Signal(fields) => {
                let [signal, code, pid, uid, status, addr, value, utime, stime] =
                    fields.map(integer);
                if signal == SIGKILL {
                    return None;
                }
                let origin = Origin {
                    signal,
                    code: code as i64,
                    pid: pid as i64,
                    uid,
                    status: status as i64,
                    addr,
                    value,
                    utime: utime as i64,
                    stime: stime as i64,
                };
                Some(line(&origin))
            }
            Self::Sent(_) => None,
            Self::End([_, status]) => {
                let mut text = "+++ ".to_owned();
                decode::write_end(&mut text, integer(*status));
                text.push_str(" +++");
                Some(text)
            }
        }
    }
}

/// The line of a signal.
fn line(origin: &Origin) -> String {
    let mut text = "--- ".to_owned();
    decode::Meaning::Signal.write(&mut text, origin.signal);
    text.push(' ');
    decode::write_origin(&mut text, origin);
    text.push_str(" ---");
    text
}

/// Whether a signal of which a thread dies reaches the thread first, to write a core file
/// (`sig_kernel_coredump()` in the kernel).
pub fn dumps_core(signal: u64) -> bool {
    matches!(signal, 3 | 4 | 5 | 6 | 7 | 8 | 11 | 24 | 25 | 31)
}
