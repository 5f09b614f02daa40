// SPDX-License-Identifier: GPL-2.0

//! Signals that reach a thread, the end of a thread, and the bytes that calls move, in strace's form. Also the events of
//! which requests of io_uring are read.

use super::arguments::{number, push};
use ctf::{Event, EventLayout, Value};
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
    /// A call moves bytes. They belong to the line of the call.
    Moved {
        /// Name of the call.
        call: String,
        /// The argument with the address of the bytes.
        argument: &'static str,
        /// Whether the call reads the bytes, so that they belong to its begin.
        is_given: bool,
        /// Whether the bytes are in buffers of which the argument is a list.
        is_in_buffers: bool,
        /// The fields with the number of all bytes, and with the first bytes.
        fields: [usize; 2],
    },
    /// A step of a request of io_uring, which has a line of its own.
    Request,
}

/// Bytes that a call moved.
#[derive(Clone, Debug)]
pub struct Moved {
    /// Name of the call.
    pub call: String,
    /// The argument with the address of the bytes.
    pub argument: &'static str,
    /// Whether the call read the bytes.
    pub is_given: bool,
    /// Whether the bytes are in buffers of which the argument is a list.
    pub is_in_buffers: bool,
    /// The first bytes.
    pub bytes: Vec<u8>,
    /// Number of all bytes.
    pub size: u64,
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
            "sched_process_exit" => Some(Self::End([
                layout.field("tid")?,
                layout.field("exit_code")?,
            ])),
            name => {
                let call = name.strip_prefix("syscall_data_")?;
                let (argument, is_given) = decode::data(call)?;
                let mut arguments = decode::arguments(call).iter();
                let is_in_buffers =
                    arguments.any(|(name, kind)| *name == argument && !kind.ends_with("_data"));
                Some(Self::Moved {
                    call: call.to_owned(),
                    argument,
                    is_given,
                    is_in_buffers,
                    fields: [layout.field("size")?, layout.field("data")?],
                })
            }
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

    /// The bytes of an event with bytes: `max` of them at most. [`None`]: they could not be read.
    pub fn moved(&self, event: &Event<'_>, max: usize) -> Option<Moved> {
        let Self::Moved {
            call,
            argument,
            is_given,
            is_in_buffers,
            fields: [size, data],
        } = self
        else {
            return None;
        };
        let size = event.value(*size).map_or(0, number);
        let Some(Value::Integers(bytes)) = event.value(*data) else {
            return None;
        };
        let mut bytes: Vec<u8> = bytes.map(|byte| number(byte) as u8).collect();
        if bytes.is_empty() && size > 0 {
            return None;
        }
        bytes.truncate(max);
        Some(Moved {
            call: call.clone(),
            argument,
            is_given: *is_given,
            is_in_buffers: *is_in_buffers,
            bytes,
            size,
        })
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
            Self::Moved { .. } | Self::Request => None,
        }
    }
}

/// Writes the first of `size` bytes in quotes, as in a program in C.
pub fn write_bytes(out: &mut String, bytes: &[u8], size: u64) {
    out.push('"');
    for (place, byte) in bytes.iter().enumerate() {
        let next = bytes.get(place + 1);
        let is_digit_next = next.is_some_and(|next| (b'0'..=b'7').contains(next));
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x0b => out.push_str("\\v"),
            0x0c => out.push_str("\\f"),
            b' '..=b'~' => out.push(char::from(*byte)),
            byte if is_digit_next => push(out, format_args!("\\{byte:03o}")),
            byte => push(out, format_args!("\\{byte:o}")),
        }
    }
    out.push('"');
    if bytes.len() as u64 != size {
        out.push_str("...");
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

#[cfg(test)]
mod tests {
    use super::write_bytes;

    #[test]
    fn bytes_as_in_a_program() {
        for (bytes, size, expected) in [
            (&b""[..], 0, r#""""#),
            (b"a\"b\\\n", 5, r#""a\"b\\\n""#),
            (b"\x7fELF\x02\x011", 832, r#""\177ELF\2\0011"..."#),
            (b"\xff\0", 2, r#""\377\0""#),
        ] {
            let mut out = String::new();
            write_bytes(&mut out, bytes, size);
            assert_eq!(out, expected);
        }
    }
}
