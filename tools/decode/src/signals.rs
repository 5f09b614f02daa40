// SPDX-License-Identifier: GPL-2.0

//! The data of a signal as text.

use super::meaning::{Meaning, Name};
use std::fmt::Write;

/// A signal, and the data that came with it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// The number of the signal.
    pub signal: u64,
    /// The reason for the signal (`SI_...`).
    pub code: i64,
    /// The process that sent the signal, or the child that changed.
    pub pid: i64,
    /// The user of that process.
    pub uid: u64,
    /// The exit status of the child, or the signal that stopped or continued it.
    pub status: i64,
    /// The address of the fault.
    pub addr: u64,
    /// The value that was sent with the signal.
    pub value: u64,
    /// The CPU time of the child in user space, in hundredths of a second.
    pub utime: i64,
    /// The CPU time of the child in the kernel.
    pub stime: i64,
}

/// Reasons that any signal can have (`include/uapi/asm-generic/siginfo.h`).
const GENERAL: &[Name] = &[
    ("SI_USER", 0),
    ("SI_KERNEL", 0x80),
    ("SI_QUEUE", -1_i64 as u64),
    ("SI_TIMER", -2_i64 as u64),
    ("SI_MESGQ", -3_i64 as u64),
    ("SI_ASYNCIO", -4_i64 as u64),
    ("SI_SIGIO", -5_i64 as u64),
    ("SI_TKILL", -6_i64 as u64),
    ("SI_DETHREAD", -7_i64 as u64),
    ("SI_ASYNCNL", -60_i64 as u64),
];

/// Reasons of single signals: the signal, and the names for 1, 2 and so on.
const OWN: [(u64, &[&str]); 8] = [
    (
        SIGILL,
        &[
            "ILL_ILLOPC",
            "ILL_ILLOPN",
            "ILL_ILLADR",
            "ILL_ILLTRP",
            "ILL_PRVOPC",
            "ILL_PRVREG",
            "ILL_COPROC",
            "ILL_BADSTK",
            "ILL_BADIADDR",
        ],
    ),
    (
        SIGTRAP,
        &[
            "TRAP_BRKPT",
            "TRAP_TRACE",
            "TRAP_BRANCH",
            "TRAP_HWBKPT",
            "TRAP_UNK",
            "TRAP_PERF",
        ],
    ),
    (
        SIGBUS,
        &[
            "BUS_ADRALN",
            "BUS_ADRERR",
            "BUS_OBJERR",
            "BUS_MCEERR_AR",
            "BUS_MCEERR_AO",
        ],
    ),
    (
        SIGFPE,
        &[
            "FPE_INTDIV",
            "FPE_INTOVF",
            "FPE_FLTDIV",
            "FPE_FLTOVF",
            "FPE_FLTUND",
            "FPE_FLTRES",
            "FPE_FLTINV",
            "FPE_FLTSUB",
        ],
    ),
    (
        SIGSEGV,
        &[
            "SEGV_MAPERR",
            "SEGV_ACCERR",
            "SEGV_BNDERR",
            "SEGV_PKUERR",
            "SEGV_ACCADI",
            "SEGV_ADIDERR",
            "SEGV_ADIPERR",
            "SEGV_MTEAERR",
            "SEGV_MTESERR",
            "SEGV_CPERR",
        ],
    ),
    (
        SIGCHLD,
        &[
            "CLD_EXITED",
            "CLD_KILLED",
            "CLD_DUMPED",
            "CLD_TRAPPED",
            "CLD_STOPPED",
            "CLD_CONTINUED",
        ],
    ),
    (
        SIGIO,
        &[
            "POLL_IN", "POLL_OUT", "POLL_MSG", "POLL_ERR", "POLL_PRI", "POLL_HUP",
        ],
    ),
    (SIGSYS, &["SYS_SECCOMP", "SYS_USER_DISPATCH"]),
];

const SIGILL: u64 = 4;
const SIGTRAP: u64 = 5;
const SIGBUS: u64 = 7;
const SIGFPE: u64 = 8;
const SIGSEGV: u64 = 11;
const SIGCHLD: u64 = 17;
const SIGIO: u64 = 29;
const SIGSYS: u64 = 31;

/// The code of a child that exited.
const CLD_EXITED: i64 = 1;

/// Writes a signal and its data, as `{si_signo=SIGTERM, si_code=SI_USER, si_pid=1, si_uid=0}`.
pub fn write_origin(out: &mut String, origin: &Origin) {
    let code = origin.code;
    let own = OWN.iter().find(|(signal, _)| *signal == origin.signal);
    let place = usize::try_from(code.wrapping_sub(1)).ok();
    let name = own.and_then(|(_, names)| names.get(place?).copied());
    out.push_str("{si_signo=");
    Meaning::Signal.write(out, origin.signal);
    out.push_str(", si_code=");
    match name {
        Some(name) => out.push_str(name),
        None => Meaning::Value(GENERAL).write(out, code as u64),
    }
    // Writing to a String does not fail.
    let mut push = |text: std::fmt::Arguments<'_>| {
        let _ = out.write_fmt(text);
    };
    let sender = format!(", si_pid={}, si_uid={}", origin.pid, origin.uid);
    match (origin.signal, code) {
        (SIGCHLD, 1..=6) => {
            push(format_args!("{sender}"));
            let mut status = String::new();
            match code {
                CLD_EXITED => status = origin.status.to_string(),
                _ => Meaning::Signal.write(&mut status, origin.status as u64),
            }
            push(format_args!(", si_status={status}"));
            for (name, time) in [("utime", origin.utime), ("stime", origin.stime)] {
                push(format_args!(", si_{name}={time}"));
                if time != 0 {
                    push(format_args!(" /* {}.{:02} s */", time / 100, time % 100));
                }
            }
        }
        (SIGSYS, 1..=0x7f) => push(format_args!(", si_call_addr={:#x}", origin.addr)),
        (SIGILL | SIGTRAP | SIGBUS | SIGFPE | SIGSEGV, 1..=0x7f) => match origin.addr {
            0 => push(format_args!(", si_addr=NULL")),
            addr => push(format_args!(", si_addr={addr:#x}")),
        },
        (_, 0 | -6) => push(format_args!("{sender}")),
        (_, -1 | -3) => {
            push(format_args!("{sender}"));
            push_value(&mut push, origin.value);
        }
        (_, -2) => push_value(&mut push, origin.value),
        _ => {}
    }
    out.push('}');
}

/// Writes the value that was sent with a signal, as a number and as an address.
fn push_value(push: &mut impl FnMut(std::fmt::Arguments<'_>), value: u64) {
    push(format_args!(", si_int={}", value as i32));
    match value {
        0 => push(format_args!(", si_ptr=NULL")),
        value => push(format_args!(", si_ptr={value:#x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(origin: Origin) -> String {
        let mut out = String::new();
        write_origin(&mut out, &origin);
        out
    }

    /// As `strace` prints them.
    #[test]
    fn signals_and_their_data() {
        let sent = Origin {
            signal: 15,
            pid: 7,
            uid: 1000,
            value: 9,
            ..Origin::default()
        };
        let child = Origin {
            signal: 17,
            code: 1,
            pid: 7,
            status: 3,
            utime: 130,
            ..Origin::default()
        };
        let fault = Origin {
            signal: 11,
            code: 1,
            ..Origin::default()
        };
        for (origin, expected) in [
            (
                sent,
                "{si_signo=SIGTERM, si_code=SI_USER, si_pid=7, si_uid=1000}",
            ),
            (
                Origin { code: -1, ..sent },
                "{si_signo=SIGTERM, si_code=SI_QUEUE, si_pid=7, si_uid=1000, si_int=9, si_ptr=0x9}",
            ),
            (
                Origin { code: 0x80, ..sent },
                "{si_signo=SIGTERM, si_code=SI_KERNEL}",
            ),
            (
                child,
                "{si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=7, si_uid=0, si_status=3, \
                 si_utime=130 /* 1.30 s */, si_stime=0}",
            ),
            (
                Origin {
                    code: 3,
                    status: 11,
                    utime: 0,
                    ..child
                },
                "{si_signo=SIGCHLD, si_code=CLD_DUMPED, si_pid=7, si_uid=0, si_status=SIGSEGV, \
                 si_utime=0, si_stime=0}",
            ),
            (
                fault,
                "{si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=NULL}",
            ),
            (
                Origin {
                    code: 2,
                    addr: 0x1000,
                    ..fault
                },
                "{si_signo=SIGSEGV, si_code=SEGV_ACCERR, si_addr=0x1000}",
            ),
            (
                Origin { code: 99, ..fault },
                "{si_signo=SIGSEGV, si_code=99, si_addr=NULL}",
            ),
        ] {
            assert_eq!(text(origin), expected);
        }
    }
}
