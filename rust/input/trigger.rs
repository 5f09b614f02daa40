// SPDX-License-Identifier: GPL-2.0

//! Triggers, in ftrace's manner: what shall happen when an event does.
//!
//! ```text
//! trigger := [ "!" ] action [ "if" expression ]
//! action  := ( "traceon" | "traceoff" ) [ ":" session ] [ ":" count ]
//!          | "traceoff_after" ":" packets [ ":" count ]
//!          | "snapshot" [ ":" count ]
//! ```
//!
//! No white space may stand inside of an action. A `!` takes the trigger away that has this action;
//! what else is said of it, but the session, does not matter then. A session whose name consists of
//! digits needs a count behind it: one word of digits is a count.

use super::caret;
use super::name;
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
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::TraceOn,
        Self::TraceOff,
        Self::TraceOffAfter,
        Self::Snapshot,
    ];

    /// What users call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TraceOn => "traceon",
            Self::TraceOff => "traceoff",
            Self::TraceOffAfter => "traceoff_after",
            Self::Snapshot => "snapshot",
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
            Self::TooMuch => "expected 'if' or the end",
            Self::NoIf => "expected 'if' and a filter, or the end",
            Self::NoFilter => "expected a filter behind 'if'",
        })
    }
}

impl<'a> Trigger<'a> {
    /// Parses a trigger. May run in any context.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let mut rest = Rest { text, at: 0 };
        rest.skip_space();
        let removes = rest.take("!");
        let (at, word) = (
            rest.at,
            rest.take_until(|c| c == ':' || c.is_ascii_whitespace()),
        );
        let mut actions = Action::ALL.into_iter();
        let action = actions.find(|action| action.name() == word);
        let action = action.ok_or(Error {
            at,
            reason: Reason::NoAction,
        })?;
        let mut trigger = Self {
            removes,
            action,
            session: None,
            packets: 0,
            count: 0,
            filter: None,
        };
        match action {
            Action::TraceOn | Action::TraceOff => trigger.session = rest.session()?,
            Action::TraceOffAfter => {
                let behind = rest;
                trigger.packets = match rest.argument() {
                    Some((_, word)) => match number(word) {
                        Some(packets) => packets,
                        None => return behind.error(Reason::NoPackets),
                    },
                    None if removes => 0,
                    None => return rest.error(Reason::NoPackets),
                };
            }
            Action::Snapshot => {}
        }
        if let Some((at, word)) = rest.argument() {
            let reason = Reason::NoCount;
            trigger.count = number(word).ok_or(Error { at, reason })?;
        }
        if rest.starts_with(":") {
            return rest.error(Reason::TooMuch);
        }
        rest.skip_space();
        if rest.left().is_empty() {
            return Ok(trigger);
        }
        let word = rest;
        if rest.take_until(|c| c.is_ascii_whitespace()) != "if" {
            return word.error(Reason::NoIf);
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

/// What was not parsed yet.
#[derive(Clone, Copy)]
struct Rest<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Rest<'a> {
    fn left(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn starts_with(&self, word: &str) -> bool {
        self.left().starts_with(word)
    }

    fn advance(&mut self, bytes: usize) {
        self.at = self.at.wrapping_add(bytes);
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.starts_with(word);
        if is_next {
            self.advance(word.len());
        }
        is_next
    }

    fn take_until(&mut self, is_end: impl Fn(char) -> bool) -> &'a str {
        let left = self.left();
        let word = left.split(is_end).next().unwrap_or("");
        self.advance(word.len());
        word
    }

    fn skip_space(&mut self) {
        let left = self.left();
        self.advance(left.len().wrapping_sub(left.trim_ascii_start().len()));
    }

    fn error<T>(&self, reason: Reason) -> Result<T, Error> {
        let at = self.at;
        Err(Error { at, reason })
    }

    /// What stands behind a colon, and where, if one is next.
    fn argument(&mut self) -> Option<(usize, &'a str)> {
        if !self.take(":") {
            return None;
        }
        let at = self.at;
        Some((at, self.take_until(|c| c == ':' || c.is_ascii_whitespace())))
    }

    /// The name of a session, if one is next.
    fn session(&mut self) -> Result<Option<&'a str>, Error> {
        let mut behind = *self;
        let Some((at, word)) = behind.argument() else {
            return Ok(None);
        };
        // Alone it is a count.
        if is_digits(word) && !behind.starts_with(":") {
            return Ok(None);
        }
        *self = behind;
        match name::refusal(word) {
            Some(why) => Err(Error {
                at,
                reason: Reason::NoName(why),
            }),
            None => Ok(Some(word)),
        }
    }
}
