// SPDX-License-Identifier: GPL-2.0

//! The text that makes a trace readable: [`crate::abi::tsdl`] filled in.

use super::Session;
use crate::abi::header::Layout;
use crate::abi::packet::Uuid;
use crate::abi::{tsdl, uuid};
use crate::channel::clock::ClockKind;
use crate::event::Event;
use crate::sys::clock::Calendar;
use crate::sys::debugfs::text::Text;
use crate::sys::system::{self, Names};
use core::fmt;
use kernel::prelude::*;
use kernel::str::CString;

/// Everything but the events, for a trace that begins now, with streams of these `layouts`.
pub(super) fn preamble(
    session: &Session,
    id: &Uuid,
    clock: ClockKind,
    layouts: &[Layout],
) -> Result<Text> {
    let names = Names::new();
    let created = CString::try_from_fmt(fmt!("{}", Calendar::now()))?;
    let mut text = Text::new();
    tsdl::preamble(
        &mut text,
        uuid::Text::new(id).as_str(),
        layouts,
        &clock.describe(system::text(&session.shared.boot_id)),
        &tsdl::Environment {
            hostname: system::text(&names.node),
            kernel_release: system::text(&names.release),
            kernel_version: system::text(&names.version),
            trace_name: session.name(),
            created: created.to_str()?,
            rtrace_version: crate::abi::VERSION,
        },
    )
    .map_err(|_| ENOMEM)?;
    Ok(text)
}

/// The description of an event that has this number in a stream.
pub(super) fn event(event: &Event, stream: u32, number: u32, out: &mut Text) -> fmt::Result {
    tsdl::event(out, stream, number, event.name(), event.fields())
}
