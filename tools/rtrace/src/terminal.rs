// SPDX-License-Identifier: GPL-2.0

//! What people see.

use anstyle::{AnsiColor, Style};
use std::io::{self, Write};

/// Of headings.
pub const HEADING: Style = Style::new().bold();
/// Of good news.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Of bad news.
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// Prints to standard output. Whoever closed it early has seen enough.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Says something beside the result, on standard error.
pub fn say(message: impl std::fmt::Display) {
    anstream::eprintln!("rtrace: {message}");
}

/// A text that anybody may have chosen, as a task its name: no control characters to the terminal.
pub fn printable(text: &str) -> String {
    text.replace(char::is_control, "?")
}

/// A number of bytes for people.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A time span for people.
pub fn duration(nanoseconds: u64) -> String {
    match nanoseconds {
        0..1_000_000 => format!("{:.1} us", nanoseconds as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", nanoseconds as f64 / 1e6),
        _ => format!("{:.3} s", nanoseconds as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
        assert_eq!(duration(1_500), "1.5 us");
        assert_eq!(duration(2_000_000_000), "2.000 s");
    }
}
