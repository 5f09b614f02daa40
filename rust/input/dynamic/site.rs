// SPDX-License-Identifier: GPL-2.0

//! A place of a dynamic event, with the values to record there.

use super::super::rest::Rest;
use super::{Argument, Base, Error, PlaceBase, ProbePlace, ProbeReason, TRACEPOINT_ARGUMENTS};

/// A place where an event fires, and the arguments there.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The place.
    pub place: ProbePlace<'a>,
    at_return: bool,
    arguments: SiteText<'a>,
}

/// A part of the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct SiteText<'a> {
    pub(super) text: &'a str,
    /// Position in the line.
    pub(super) at: usize,
}

impl<'a> Site<'a> {
    /// A place, with the text after it. Also returns the text of the other places, if there are some.
    pub(super) fn new(
        place: ProbePlace<'a>,
        at_return: bool,
        after: SiteText<'a>,
    ) -> (Self, Option<SiteText<'a>>) {
        let (arguments, others) = after.split();
        let site = Self {
            place,
            at_return,
            arguments,
        };
        (site, others)
    }

    /// Parses the first one of other places in the file of this one.
    pub(super) fn next(&self, others: SiteText<'a>) -> Result<(Self, Option<SiteText<'a>>), Error> {
        let SiteText { text, at: begin } = others;
        let mut rest = Rest::new(text);
        let place = self.place.parse_other(&mut rest);
        let mut place = place.map_err(|error| Error {
            at: error.at.wrapping_add(begin),
            ..error
        })?;
        place.at = begin;
        let after = SiteText {
            text: rest.left(),
            at: begin.wrapping_add(rest.at),
        };
        Ok(Self::new(place, self.at_return, after))
    }

    /// Iterates over the arguments; it ends at the first error.
    pub fn arguments(&self) -> impl Iterator<Item = Result<Argument<'a>, Error>> {
        let SiteText { text, at: begin } = self.arguments;
        let is_inside = match self.place.base {
            PlaceBase::Symbol(_) => self.place.offset != 0,
            PlaceBase::Address(_) => true,
            PlaceBase::File(_) | PlaceBase::Tracepoint(_) => false,
        };
        let at_tracepoint = self.place.is_tracepoint();
        let at_return = self.at_return;
        let mut at = 0_usize;
        let mut number = 0_u32;
        core::iter::from_fn(move || {
            let left = text.get(at..)?;
            let blanks = left.len().wrapping_sub(left.trim_ascii_start().len());
            at = at.wrapping_add(blanks);
            let word = text.get(at..)?.split_ascii_whitespace().next()?;
            let from = begin.wrapping_add(at);
            at = at.wrapping_add(word.len());
            number = number.wrapping_add(1);
            let mut argument = Argument::parse(word, from, number);
            if let Ok(Argument { base, at, .. }) = argument {
                let reason = match base {
                    Base::Argument(number) if at_tracepoint => {
                        let is_known = usize::from(number) <= TRACEPOINT_ARGUMENTS;
                        (!is_known).then_some(ProbeReason::NotAtTracepoint)
                    }
                    Base::Register(_)
                    | Base::Sum { .. }
                    | Base::Stack
                    | Base::StackWord(_)
                    | Base::Result
                    | Base::Duration
                        if at_tracepoint =>
                    {
                        Some(ProbeReason::NotAtTracepoint)
                    }
                    Base::Argument(_) if is_inside => Some(ProbeReason::ArgumentInside),
                    Base::Result if !at_return => Some(ProbeReason::ResultAtEntry),
                    Base::Duration if !at_return => Some(ProbeReason::DurationAtEntry),
                    _ => None,
                };
                if let Some(reason) = reason {
                    argument = Err(Error { at, reason });
                }
            }
            if argument.is_err() {
                at = text.len();
            }
            Some(argument)
        })
    }
}

impl SiteText<'_> {
    /// Splits the text after a place: the arguments there, and the other places from the first one on.
    fn split(self) -> (Self, Option<Self>) {
        let mut end = 0_usize;
        loop {
            let left = self.text.get(end..).unwrap_or("");
            let word = left.trim_ascii_start();
            end = end.wrapping_add(left.len().wrapping_sub(word.len()));
            if word.starts_with(':') {
                let text = self.text.get(..end).unwrap_or("");
                let at = self.at.wrapping_add(end);
                return (Self { text, ..self }, Some(Self { text: word, at }));
            }
            match word.split_ascii_whitespace().next() {
                Some(word) => end = end.wrapping_add(word.len()),
                None => return (self, None),
            }
        }
    }
}
