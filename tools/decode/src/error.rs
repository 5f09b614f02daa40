// SPDX-License-Identifier: GPL-2.0

//! Errors by name.

use nix::errno::Errno;
use std::fmt::Write;
use std::io;

/// The kernel's internal errors. A call that a signal interrupts restarts, or fails with EINTR, so no program sees
/// these (`include/linux/errno.h`).
const RESTART: [(i64, &str, &str); 5] = [
    (512, "ERESTARTSYS", "To be restarted if SA_RESTART is set"),
    (513, "ERESTARTNOINTR", "To be restarted"),
    (514, "ERESTARTNOHAND", "To be restarted if no handler"),
    (515, "ENOIOCTLCMD", "No ioctl command"),
    (516, "ERESTART_RESTARTBLOCK", "Interrupted by signal"),
];

/// The name of an error number, if it has one.
pub fn error_name(number: i64) -> Option<String> {
    let kernel = RESTART.iter().find(|(own, ..)| *own == number);
    if let Some((_, name, _)) = kernel {
        return Some((*name).to_owned());
    }
    match Errno::from_raw(i32::try_from(number).ok()?) {
        Errno::UnknownErrno => None,
        errno => Some(format!("{errno:?}")),
    }
}

/// Writes the result of a call that failed with an error number, as `-1 ENOENT (No such file or
/// directory)`.
pub fn write_error(out: &mut String, number: i64) {
    let raw = i32::try_from(number).unwrap_or(0);
    let kernel = RESTART.iter().find(|(own, ..)| *own == number);
    // Writing to a String does not fail.
    let _ = match (Errno::from_raw(raw), kernel) {
        (_, Some((_, name, text))) => write!(out, "? {name} ({text})"),
        (Errno::UnknownErrno, None) => write!(out, "-{number}"),
        (errno, None) => write!(out, "-1 {errno:?} ({})", text(raw)),
    };
}

/// The C library's text for an error.
fn text(number: i32) -> String {
    let text = io::Error::from_raw_os_error(number).to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_names() {
        for (number, expected) in [
            (2, "-1 ENOENT (No such file or directory)"),
            (11, "-1 EAGAIN (Resource temporarily unavailable)"),
            (512, "? ERESTARTSYS (To be restarted if SA_RESTART is set)"),
            (4000, "-4000"),
        ] {
            let mut out = String::new();
            write_error(&mut out, number);
            assert_eq!(out, expected);
        }
    }
}
