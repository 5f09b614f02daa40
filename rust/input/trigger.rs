// SPDX-License-Identifier: GPL-2.0

//! Triggers, in ftrace's syntax: actions that an event causes.
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
//! An action contains no white space, except between quotes. A `!` deletes the trigger with this
//! action. Of the other parts, only the session and the text then matter. A session whose
//! name consists of digits needs a count after it, because a single word of digits is a count. The
//! text of a marker needs quotes if it is empty, or has white space, a colon or quotes of the other
//! kind. It has no control characters.

use super::caret;
use super::marker;
use super::name;
use super::rest::Rest;
use core::fmt;

/// Action of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Starts a session.
    TraceOn,
    /// Stops a session.
    TraceOff,
    /// Stops the session after some more packets are finished.
    TraceOffAfter,
    /// Takes a snapshot, if a reader waits for it.
    Snapshot,
    /// Records a marker in the session.
    Marker,
    /// Records the kernel's call stack in the session.
    Stacktrace,
}

impl Action {
    /// All actions.
    pub const ALL: [Self; 6] = [
        Self::TraceOn,
        Self::TraceOff,
        Self::TraceOffAfter,
        Self::Snapshot,
        Self::Marker,
        Self::Stacktrace,
    ];

    /// Name of the action for users.
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

/// A trigger, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriggerLine<'a> {
    /// Whether the line deletes the trigger.
    pub removes: bool,
    /// The action.
    pub action: Action,
    /// The session that the action affects; [`None`]: the session of the trigger.
    pub session: Option<&'a str>,
    /// Number of packets to finish before a [`TraceOffAfter`](Action::TraceOffAfter); 0 for other actions.
    pub packets: u64,
    /// Text of the marker. [`None`]: the action is no marker, or the line deletes markers with any
    /// text.
    pub text: Option<&'a str>,
    /// Maximum number of actions; 0: no limit.
    pub count: u64,
    /// Filter for the records of the event.
    pub filter: Option<TriggerFilter<'a>>,
}

/// A filter expression, not yet parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriggerFilter<'a> {
    /// The expression.
    pub expression: &'a str,
    /// Position of the expression in the trigger.
    pub at: usize,
}

/// An error in a trigger.
pub type Error = caret::Error<TriggerReason>;

/// Description of an error in a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerReason {
    /// The word is not an action.
    NoAction,
    /// The word is not a valid name of a session.
    NoName(&'static str),
    /// Not a number greater than 0.
    NoCount,
    /// The number of packets is missing, or not a number greater than 0.
    NoPackets,
    /// The text of a marker is missing.
    NoText,
    /// The text has no closing quote.
    NotQuoted,
    /// A text that does not begin with a quote contains one.
    Quote,
    /// The text contains a control character.
    Control,
    /// The text is not valid for a marker.
    NoMarker(marker::MarkerRefusal),
    /// More text than expected.
    TooMuch,
    /// A word other than `if` after the action.
    NoIf,
    /// No filter after `if`.
    NoFilter,
}

impl fmt::Display for TriggerReason {
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
            Self::NoCount => "expected the maximum count: a number from 1 on",
            Self::NoPackets => "expected ':' and a number of packets, from 1 on",
            Self::NoText => "expected ':' and a text, in quotes if it has ':' or blanks",
            Self::NotQuoted => "the text has no closing quote",
            Self::Quote => "a text that contains a quote needs quotes of the other kind",
            Self::Control => "the text contains a control character",
            Self::NoMarker(why) => return write!(f, "{why}"),
            Self::TooMuch => "expected 'if' or the end",
            Self::NoIf => "expected 'if' and a filter, or the end",
            Self::NoFilter => "expected a filter after 'if'",
        })
    }
}

impl<'a> TriggerLine<'a> {
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
            reason: TriggerReason::NoAction,
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
                        None => return behind.error(TriggerReason::NoPackets),
                    },
                    None if removes => 0,
                    None => return rest.error(TriggerReason::NoPackets),
                };
            }
            Action::Marker => {
                trigger.text = marker_text(&mut rest)?;
                if trigger.text.is_none() && !removes {
                    return rest.error(TriggerReason::NoText);
                }
            }
            Action::Snapshot | Action::Stacktrace => {}
        }
        if let Some((at, word)) = argument(&mut rest) {
            let reason = TriggerReason::NoCount;
            trigger.count = number(word).ok_or(Error { at, reason })?;
        }
        if rest.left().starts_with(':') {
            return rest.error(TriggerReason::TooMuch);
        }
        rest.skip_space();
        if rest.left().is_empty() {
            return Ok(trigger);
        }
        let behind = rest;
        if rest.take_while(|c| !c.is_ascii_whitespace()) != "if" {
            return behind.error(TriggerReason::NoIf);
        }
        rest.skip_space();
        if rest.left().is_empty() {
            return rest.error(TriggerReason::NoFilter);
        }
        trigger.filter = Some(TriggerFilter {
            expression: rest.left().trim_ascii_end(),
            at: rest.at,
        });
        Ok(trigger)
    }
}

/// Formats the trigger so that it can be parsed again.
impl fmt::Display for TriggerLine<'_> {
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

/// Parses a number greater than 0.
fn number(word: &str) -> Option<u64> {
    let is_number = is_digits(word);
    word.parse().ok().filter(|&number| is_number && number != 0)
}

fn is_digits(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Quotes of a text. As in filters, there is no escape for a quote.
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

/// Consumes a colon and the argument after it, if a colon is next. Returns the argument with its
/// position.
fn argument<'a>(rest: &mut Rest<'a>) -> Option<(usize, &'a str)> {
    if !rest.take(":") {
        return None;
    }
    let at = rest.at;
    Some((at, word(rest)))
}

/// Consumes the text of a marker, if a colon is next.
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
        let reason = TriggerReason::Control;
        return Err(Error { at, reason });
    }
    match quote {
        Some(quote) if !rest.take(quote) => return start.error(TriggerReason::NotQuoted),
        Some(_) if !is_at_end_of_word(rest) => return rest.error(TriggerReason::NoIf),
        Some(_) => {}
        None if text.is_empty() => return before.error(TriggerReason::NoText),
        None => {
            if let Some(at) = place(|c| matches!(c, '"' | '\'')) {
                let reason = TriggerReason::Quote;
                return Err(Error { at, reason });
            }
        }
    }
    match marker::check(text) {
        Ok(()) => Ok(Some(text)),
        Err(why) => start.error(TriggerReason::NoMarker(why)),
    }
}

/// Consumes the name of a session, if one is next.
fn session<'a>(rest: &mut Rest<'a>) -> Result<Option<&'a str>, Error> {
    let mut behind = *rest;
    let Some((at, word)) = argument(&mut behind) else {
        return Ok(None);
    };
    // A single word of digits is a count.
    if is_digits(word) && !behind.left().starts_with(':') {
        return Ok(None);
    }
    *rest = behind;
    match name::refusal(word) {
        Some(why) => Err(Error {
            at,
            reason: TriggerReason::NoName(why),
        }),
        None => Ok(Some(word)),
    }
}
