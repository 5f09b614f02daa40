// SPDX-License-Identifier: GPL-2.0

//! Text for people: styles, quantities, dates and progress. It contains no command for a terminal.

#![forbid(unsafe_code)]

pub mod budget;
pub mod date;
pub mod progress;

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
pub use system::printing::printable;
use system::printing::{commands_terminal, push};

/// Whether messages of success are suppressed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// The style of headings.
pub const HEADING: Style = Style::new().bold();
/// The style of good news.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// The style of bad news.
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// Prints to standard output. Ignores the error if the reader has closed it.
pub fn print(text: &str) -> io::Result<()> {
    print_on(text).map(drop)
}

/// Prints to standard output. Returns whether there is still a reader.
pub fn print_on(text: &str) -> io::Result<bool> {
    let text = harmless(text);
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(io::Error::new(
            e.kind(),
            format!("cannot write standard output: {e}"),
        )),
    }
}

/// Whether an error means that the reader of the output has closed it.
pub fn is_closed(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| {
        let kind = cause.downcast_ref().map(io::Error::kind);
        kind == Some(io::ErrorKind::BrokenPipe)
    })
}

/// Prints a value as JSON to standard output.
pub fn print_json(value: &impl serde::Serialize) -> io::Result<()> {
    print(&harmless_json(serde_json::to_string_pretty(value)? + "\n"))
}

/// Prints a message beside the result, on standard error.
pub fn say(message: impl std::fmt::Display) {
    let message = format!("rtrace: {message}\n");
    print_error(&harmless(&message));
}

/// Prints to standard error by one write(2), so that another process on the same terminal cannot write in between.
/// Ignores errors.
pub fn print_error(text: &str) {
    let mut err = io::stderr();
    let _ = match AutoStream::choice(&err) {
        ColorChoice::Never => err.write_all(strip_str(text).to_string().as_bytes()),
        _ => err.write_all(text.as_bytes()),
    };
}

/// Says what went well, unless [`be_quiet`] was called.
pub fn tell(message: impl std::fmt::Display) {
    if !is_quiet() {
        say(message);
    }
}

/// Says the result of a recording or of a reading: with [`tell`] if it is whole, and otherwise in any case.
pub fn conclude(is_whole: bool, message: impl std::fmt::Display) {
    match is_whole {
        true => tell(message),
        false => say(message),
    }
}

/// Suppresses messages of success, and progress bars.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Colours the output always or never. Without a call, terminals get colours.
pub fn colour(always: bool) {
    let choice = match always {
        true => anstream::ColorChoice::AlwaysAnsi,
        false => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

/// A text for the terminal, or for a file that may be shown there. All output passes through here, because texts of
/// a trace and of other machines can contain escape sequences. Line ends, tabs and the styles above are kept.
pub fn harmless(text: &str) -> Cow<'_, str> {
    const STYLES: [&str; 4] = ["\x1b[0m", "\x1b[1m", "\x1b[32m", "\x1b[31m"];
    // Most texts have nothing to replace.
    let is_plain = |byte: u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let style = STYLES.into_iter().find(|style| rest.starts_with(style));
        let length = style.map_or(character.len_utf8(), str::len);
        match character {
            '\n' | '\t' => safe.push(character),
            _ if style.is_none() => push(&mut safe, character),
            _ => safe.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    Cow::Owned(safe)
}

/// A JSON text with escapes in place of all characters that command the terminal.
pub fn harmless_json(text: String) -> String {
    let is_harmful = |c: char| c != '\n' && commands_terminal(c);
    if !text.contains(is_harmful) {
        return text;
    }
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if is_harmful(character) {
            // None of them needs a surrogate.
            safe.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            safe.push(character);
        }
    }
    safe
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
    fn what_commands_the_terminal_is_replaced() {
        assert!(matches!(harmless("a\tb\n"), Cow::Borrowed(_)));
        let own = format!("{HEADING}h{HEADING:#} {GOOD}g{GOOD:#} {BAD}b{BAD:#}\n");
        assert_eq!(harmless(&own), own);
        // The title, the screen, hidden text, C1, the cursor, the direction.
        let hostile = "\x1b]0;t\x07\x1b[2J\x1b[8mé\u{9b}2J\r\x08\x7f\u{202e}";
        assert_eq!(
            harmless(hostile),
            r"\x1b]0;t\x07\x1b[2J\x1b[8mé\xc2\x9b2J\x0d\x08\x7f\xe2\x80\xae"
        );
        assert_eq!(printable("a\nb\x1b[31m"), r"a\x0ab\x1b[31m");
        let json = serde_json::to_string(hostile).unwrap();
        let safe = harmless_json(json);
        assert!(!safe.contains(commands_terminal), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), hostile);
    }

    #[test]
    fn units() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
        assert_eq!(duration(1_500), "1.5 us");
        assert_eq!(duration(2_000_000_000), "2.000 s");
    }
}
