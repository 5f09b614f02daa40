// SPDX-License-Identifier: GPL-2.0

//! Triggers, in ftrace's manner: what shall happen when an event does.
//!
//! ```text
//! trigger := [ "!" ] action [ "if" expression ]
//! action  := ( "traceon" | "traceoff" ) [ ":" session ] [ ":" count ]
//!          | "traceoff_after" ":" packets [ ":" count ]
//!          | ( "snapshot" | "stacktrace" ) [ ":" count ]
//!          | "marker" ":" text [ ":" count ]
//! text    := word | '"' characters '"' | "'" characters "'"
//! ```
//!
//! No white space may stand inside of an action, but between quotes. A `!` takes the trigger away that
//! has this action; what else is said of it, but the session and the text, does not matter then. A
//! session whose name consists of digits needs a count behind it: one word of digits is a count. The
//! text of a marker needs quotes if it is empty or has white space, a colon or quotes of the other
//! kind; it has no control characters.

use super::caret;
use super::marker;
use super::name;
use super::rest::Rest;
use core::fmt;

/// What shall happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A session starts.
    TraceOn,
    /// A session stops.
    TraceOff,
    /// The session stops when some more packets are finished.
    TraceOffAfter,
    /// Who waits for it takes a snapshot.
    Snapshot,
    /// The session records a marker.
    Marker,
    /// The session records the kernel's call stack.
    Stacktrace,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::TraceOn,
        Self::TraceOff,
        Self::TraceOffAfter,
        Self::Snapshot,
        Self::Marker,
        Self::Stacktrace,
    ];

    /// What users call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TraceOn => "traceon",
            Self::TraceOff => "traceoff",
            Self::TraceOffAfter => "traceoff_after",
            Self::Snapshot => "snapshot",
            Self::Marker => "marker",
            Self::Stacktrace => "stacktrace",
        }
    }
}

/// A trigger, as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger<'a> {
    /// Whether it is taken away.
    pub removes: bool,
    /// What shall happen.
    pub action: Action,
    /// Which session it happens to, if not to the trigger's own.
    pub session: Option<&'a str>,
    /// How many packets come before; 0 where that does not matter.
    pub packets: u64,
    /// The marker's text. [`None`]: it is no marker, or takes away markers of any text.
    pub text: Option<&'a str>,
    /// How often it happens at most; 0 if that does not matter.
    pub count: u64,
    /// Of which records of the event.
    pub filter: Option<Filter<'a>>,
}

/// A filter expression, not yet parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter<'a> {
    /// The expression.
    pub expression: &'a str,
    /// Where in the trigger it begins.
    pub at: usize,
}

/// Why a trigger is refused.
pub type Error = caret::Error<Reason>;

/// What is wrong with a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The word is no action.
    NoAction,
    /// The word is no name of a session.
    NoName(&'static str),
    /// Not a number from 1 on.
    NoCount,
    /// The number of packets is missing, or not a number from 1 on.
    NoPackets,
    /// The text of a marker is missing.
    NoText,
    /// Quotes of the text without an end.
    NotQuoted,
    /// Quotes in a text that begins without.
    Quote,
    /// A control character in the text.
    Control,
    /// The text cannot be a marker's.
    NoMarker(marker::Refusal),
    /// More than there can be.
    TooMuch,
    /// Something else than `if` behind the action.
    NoIf,
    /// Nothing behind `if`.
    NoFilter,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::NoAction => {
                f.write_str("expected an action:")?;
                for action in Action::ALL {
                    write!(f, " {}", action.name())?;
                }
                return Ok(());
            }
            Self::NoName(why) => why,
            Self::NoCount => "expected how often at most: a number from 1 on",
            Self::NoPackets => "expected ':' and a number of packets, from 1 on",
            Self::NoText => "expected ':' and a text, in quotes if it has ':' or blanks",
            Self::NotQuoted => "the text has no quote at its end",
            Self::Quote => "a text with a quote stands in quotes of the other kind",
            Self::Control => "there is a control character in the text",
            Self::NoMarker(why) => return write!(f, "{why}"),
            Self::TooMuch => "expected 'if' or the end",
            Self::NoIf => "expected 'if' and a filter, or the end",
            Self::NoFilter => "expected a filter behind 'if'",
        })
    }
}

impl<'a> Trigger<'a> {
    /// Parses a trigger. May run in any context.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let mut rest = Rest::new(text);
        rest.skip_space();
        let removes = rest.take("!");
        let (at, name) = (rest.at, word(&mut rest));
        let mut actions = Action::ALL.into_iter();
        let action = actions.find(|action| action.name() == name);
        let action = action.ok_or(Error {
            at,
            reason: Reason::NoAction,
        })?;
        let mut trigger = Self {
            removes,
            action,
            session: None,
            packets: 0,
            text: None,
            count: 0,
            filter: None,
        };
        match action {
            Action::TraceOn | Action::TraceOff => trigger.session = session(&mut rest)?,
            Action::TraceOffAfter => {
                let behind = rest;
                trigger.packets = match argument(&mut rest) {
                    Some((_, word)) => match number(word) {
                        Some(packets) => packets,
                        None => return behind.error(Reason::NoPackets),
                    },
                    None if removes => 0,
                    None => return rest.error(Reason::NoPackets),
                };
            }
            Action::Marker => {
                trigger.text = marker_text(&mut rest)?;
                if trigger.text.is_none() && !removes {
                    return rest.error(Reason::NoText);
                }
            }
            Action::Snapshot | Action::Stacktrace => {}
        }
        if let Some((at, word)) = argument(&mut rest) {
            let reason = Reason::NoCount;
            trigger.count = number(word).ok_or(Error { at, reason })?;
        }
        if rest.left().starts_with(':') {
            return rest.error(Reason::TooMuch);
        }
        rest.skip_space();
        if rest.left().is_empty() {
            return Ok(trigger);
        }
        let behind = rest;
        if rest.take_while(|c| !c.is_ascii_whitespace()) != "if" {
            return behind.error(Reason::NoIf);
        }
        rest.skip_space();
        if rest.left().is_empty() {
            return rest.error(Reason::NoFilter);
        }
        trigger.filter = Some(Filter {
            expression: rest.left().trim_ascii_end(),
            at: rest.at,
        });
        Ok(trigger)
    }
}

/// As it can be written again.
impl fmt::Display for Trigger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.removes { "!" } else { "" })?;
        f.write_str(self.action.name())?;
        if let Some(session) = self.session {
            write!(f, ":{session}")?;
        }
        if let Some(text) = self.text {
            let quote = if text.contains('"') { '\'' } else { '"' };
            write!(f, ":{quote}{text}{quote}")?;
        }
        for number in [self.packets, self.count] {
            if number != 0 {
                write!(f, ":{number}")?;
            }
        }
        match self.filter {
            Some(filter) => write!(f, " if {}", filter.expression),
            None => Ok(()),
        }
    }
}

/// A number from 1 on.
fn number(word: &str) -> Option<u64> {
    let is_number = is_digits(word);
    word.parse().ok().filter(|&number| is_number && number != 0)
}

fn is_digits(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// What a text may stand between: as in filters, nothing stands for a quote itself.
const QUOTES: [&str; 2] = ["\"", "'"];

fn ends_word(c: char) -> bool {
    c == ':' || c.is_ascii_whitespace()
}

fn word<'a>(rest: &mut Rest<'a>) -> &'a str {
    rest.take_while(|c| !ends_word(c))
}

fn is_at_end_of_word(rest: &Rest<'_>) -> bool {
    rest.peek().is_none_or(ends_word)
}

/// What stands behind a colon, and where, if one is next.
fn argument<'a>(rest: &mut Rest<'a>) -> Option<(usize, &'a str)> {
    if !rest.take(":") {
        return None;
    }
    let at = rest.at;
    Some((at, word(rest)))
}

/// The text of a marker, if a colon is next.
fn marker_text<'a>(rest: &mut Rest<'a>) -> Result<Option<&'a str>, Error> {
    let before = *rest;
    if !rest.take(":") {
        return Ok(None);
    }
    let start = *rest;
    let quote = QUOTES.into_iter().find(|quote| rest.take(quote));
    let at = rest.at;
    let text = match quote {
        Some(quote) => rest.take_while(|c| !quote.starts_with(c)),
        None => word(rest),
    };
    let place = |is_it: fn(char) -> bool| Some(at.wrapping_add(text.find(is_it)?));
    if let Some(at) = place(|c| c.is_ascii_control()) {
        let reason = Reason::Control;
        return Err(Error { at, reason });
    }
    match quote {
        Some(quote) if !rest.take(quote) => return start.error(Reason::NotQuoted),
        Some(_) if !is_at_end_of_word(rest) => return rest.error(Reason::NoIf),
        Some(_) => {}
        None if text.is_empty() => return before.error(Reason::NoText),
        None => {
            if let Some(at) = place(|c| matches!(c, '"' | '\'')) {
                let reason = Reason::Quote;
                return Err(Error { at, reason });
            }
        }
    }
    match marker::check(text) {
        Ok(()) => Ok(Some(text)),
        Err(why) => start.error(Reason::NoMarker(why)),
    }
}

/// The name of a session, if one is next.
fn session<'a>(rest: &mut Rest<'a>) -> Result<Option<&'a str>, Error> {
    let mut behind = *rest;
    let Some((at, word)) = argument(&mut behind) else {
        return Ok(None);
    };
    // Alone it is a count.
    if is_digits(word) && !behind.left().starts_with(':') {
        return Ok(None);
    }
    *rest = behind;
    match name::refusal(word) {
        Some(why) => Err(Error {
            at,
            reason: Reason::NoName(why),
        }),
        None => Ok(Some(word)),
    }
}
