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
    /// A thread ends, with a status as wait(2) tells it.
    End(usize),
}

/// The signal that only ends programs: the end says so.
const SIGKILL: u64 = 9;

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
            "sched_process_exit" => Some(Self::End(layout.field("exit_code")?)),
            _ => None,
        }
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
                let mut text = "--- ".to_owned();
                decode::Meaning::Signal.write(&mut text, signal);
                text.push(' ');
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
                decode::write_origin(&mut text, &origin);
                text.push_str(" ---");
                Some(text)
            }
            Self::End(status) => {
                let mut text = "+++ ".to_owned();
                decode::write_end(&mut text, integer(*status));
                text.push_str(" +++");
                Some(text)
            }
        }
    }
}
