// SPDX-License-Identifier: GPL-2.0

//! The places where a dynamic event fires.

use super::super::rest::{is_of_name, Rest};
use super::{number, Error, ProbeReason};

/// The place where an event fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePlace<'a> {
    /// Position in the line.
    pub at: usize,
    /// Base of the offset.
    pub base: PlaceBase<'a>,
    /// Offset in bytes from the base.
    pub offset: u64,
    /// In a program: the offset, in the file, of a counter of the probe's users; 0: there is none.
    pub counter: u64,
    /// The offsets of the return instructions, as written.
    returns: &'a str,
}

/// Base of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceBase<'a> {
    /// A symbol, optionally with its module in front.
    Symbol(&'a str),
    /// An address.
    Address(u64),
    /// The beginning of a file that programs execute.
    File(&'a str),
    /// A tracepoint.
    Tracepoint(&'a str),
}

impl<'a> ProbePlace<'a> {
    /// Returns whether the place is code of a program.
    pub fn is_in_file(&self) -> bool {
        matches!(self.base, PlaceBase::File(_))
    }

    /// Iterates over the offsets of the return instructions.
    pub fn returns(&self) -> impl Iterator<Item = u64> + 'a {
        // They were parsed before.
        let returns = self.returns.split(',');
        returns.filter_map(|offset| number(&mut Rest::new(offset)))
    }

    /// Returns whether the place is a tracepoint.
    pub fn is_tracepoint(&self) -> bool {
        matches!(self.base, PlaceBase::Tracepoint(_))
    }

    /// A place without offset, counter and return instructions.
    fn new(at: usize, base: PlaceBase<'a>) -> Self {
        Self {
            at,
            base,
            offset: 0,
            counter: 0,
            returns: "",
        }
    }

    /// Parses a place that is no tracepoint.
    pub(super) fn parse(rest: &mut Rest<'a>) -> Result<Self, Error> {
        let before = *rest;
        if rest.left().starts_with(|c: char| c.is_ascii_digit()) {
            let address = number(rest).filter(|_| before.left().starts_with("0x"));
            return match address {
                Some(address) if is_at_end_of_word(rest) => {
                    Ok(Self::new(before.at, PlaceBase::Address(address)))
                }
                _ => before.error(ProbeReason::NoPlace),
            };
        }
        if rest.left().starts_with('/') {
            let word = rest.take_while(|c| !c.is_ascii_whitespace());
            let place = word.rsplit_once(':').and_then(|(file, offsets)| {
                Self::new(before.at, PlaceBase::File(file)).with_offsets(offsets)
            });
            return place.map_or_else(|| before.error(ProbeReason::NoFilePlace), Ok);
        }
        let symbol = rest.take_while(|c| is_of_name(c) || matches!(c, '.' | '$' | ':' | '-'));
        if symbol.is_empty() {
            return before.error(ProbeReason::NoPlace);
        }
        let mut offset = 0;
        if rest.take("+") {
            let before = *rest;
            offset = match number(rest).map(u32::try_from) {
                Some(Ok(offset)) => offset.into(),
                _ => return before.error(ProbeReason::NoOffset),
            };
        }
        if !is_at_end_of_word(rest) {
            return before.error(ProbeReason::NoPlace);
        }
        let place = Self::new(before.at, PlaceBase::Symbol(symbol));
        Ok(Self { offset, ..place })
    }

    /// Parses the name of a tracepoint.
    pub(super) fn parse_tracepoint(rest: &mut Rest<'a>) -> Result<Self, Error> {
        let before = *rest;
        let name = rest.take_while(is_of_name);
        if name.is_empty() || !is_at_end_of_word(rest) {
            return before.error(ProbeReason::NoTracepoint);
        }
        Ok(Self::new(before.at, PlaceBase::Tracepoint(name)))
    }

    /// Parses another place in the file of this one: `:OFFSET[(COUNTER)]`.
    pub(super) fn parse_other(&self, rest: &mut Rest<'a>) -> Result<Self, Error> {
        let before = *rest;
        rest.take(":");
        let word = rest.take_while(|c| !c.is_ascii_whitespace());
        let place = Self::new(before.at, self.base).with_offsets(word);
        let place = place.filter(|place| place.returns.is_empty());
        place.map_or_else(|| before.error(ProbeReason::NoFilePlace), Ok)
    }

    /// This place with the numbers of `OFFSET[(COUNTER)][,RETURN]...`.
    fn with_offsets(self, text: &'a str) -> Option<Self> {
        let mut rest = Rest::new(text);
        let offset = number(&mut rest)?;
        let mut counter = 0;
        if rest.take("(") {
            counter = number(&mut rest)?;
            rest.take(")").then_some(())?;
        }
        let returns = match rest.take(",") {
            true => rest.left(),
            false if rest.left().is_empty() => "",
            false => return None,
        };
        let is_number = |text| {
            let mut rest = Rest::new(text);
            number(&mut rest).is_some() && rest.left().is_empty()
        };
        let is_valid = !text.contains(',') || returns.split(',').all(is_number);
        is_valid.then_some(Self {
            offset,
            counter,
            returns,
            ..self
        })
    }
}

fn is_at_end_of_word(rest: &Rest<'_>) -> bool {
    rest.peek().is_none_or(|c| c.is_ascii_whitespace())
}
