// SPDX-License-Identifier: GPL-2.0

//! A print format: a text with `{FIELD}` or `{FIELD:HOW}` in the place of each value.

use crate::values::AsText;
use analysis::integer;
use analysis::interrupts::softirq_name;
use analysis::schedule_events::Left;
use ctf::{Event, EventLayout, Type};
use std::fmt::{self, Write};

/// `MAX_RT_PRIO`: priorities in a trace are smaller by this number, as in LTTng's traces.
pub const PRIORITIES: i64 = 100;

/// A format of an event, with the places of its fields.
#[derive(Debug)]
pub struct Template {
    pieces: Vec<Piece>,
    /// Text after the last value.
    end: &'static str,
}

/// A value, and the text before it.
#[derive(Debug)]
struct Piece {
    before: &'static str,
    field: usize,
    ty: Type,
    how: How,
}

/// Form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// By its type.
    Plain,
    /// A priority, as the kernel counts them.
    Priority,
    /// The letters of a task's state.
    State,
    /// A CPU in three digits.
    Cpu,
    /// `true` or `false`.
    Bool,
    /// The name of a soft interrupt.
    Action,
    /// Whether an interrupt was for this handler.
    Handled,
}

impl Template {
    /// Parses a format for an event. Returns none if the event lacks a field, or if the format is wrong.
    pub fn new(format: &'static str, layout: &EventLayout) -> Option<Self> {
        let mut pieces = Vec::new();
        let mut rest = format;
        while let Some((before, behind)) = rest.split_once('{') {
            let (word, behind) = behind.split_once('}')?;
            let (name, how) = match word.split_once(':') {
                None => (word, How::Plain),
                Some((name, how)) => (name, How::parse(how)?),
            };
            let field = layout.field(name)?;
            pieces.push(Piece {
                before,
                field,
                ty: layout.fields[field].ty.clone(),
                how,
            });
            rest = behind;
        }
        Some(Self { pieces, end: rest })
    }

    /// Appends the formatted event to `out`.
    pub fn write(&self, event: &Event<'_>, out: &mut String) -> fmt::Result {
        for piece in &self.pieces {
            out.push_str(piece.before);
            let Some(value) = event.value(piece.field) else {
                continue;
            };
            let number = integer(Some(value)).unwrap_or(0);
            match piece.how {
                How::Plain => write!(out, "{}", AsText(&piece.ty, value))?,
                How::Priority => write!(out, "{}", number.saturating_add(PRIORITIES))?,
                How::State => out.push_str(Left::NAMES[Left(number).way()].1),
                How::Cpu => write!(out, "{number:03}")?,
                How::Bool => write!(out, "{}", number != 0)?,
                How::Action => out.push_str(softirq_name(number)),
                How::Handled => out.push_str(if number == 0 { "unhandled" } else { "handled" }),
            }
        }
        out.push_str(self.end);
        Ok(())
    }
}

impl How {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "prio" => Self::Priority,
            "state" => Self::State,
            "cpu" => Self::Cpu,
            "bool" => Self::Bool,
            "action" => Self::Action,
            "handled" => Self::Handled,
            _ => return None,
        })
    }
}
