// SPDX-License-Identifier: GPL-2.0

//! The metadata of a trace: [`crate::abi::tsdl`] with the trace's values.

use crate::abi::header::Layout;
use crate::abi::packet::Uuid;
use crate::abi::{tsdl, uuid};
use crate::channel::clock::ClockKind;
use crate::context::ContextSet;
use crate::event::Event;
use crate::probe::builtin::Builtin;
use crate::session::Session;
use crate::sys::clock::Calendar;
use crate::sys::debugfs::text::Text;
use crate::sys::system::{self, SystemNames};
use core::fmt;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;

/// Everything except the events, for a trace that begins now, whose streams have these headers and contexts.
pub(in crate::session) fn preamble(
    session: &Session,
    id: &Uuid,
    clock: ClockKind,
    streams: &[(Layout, Arc<ContextSet>)],
) -> Result<Text> {
    let names = SystemNames::new();
    let created = CString::try_from_fmt(fmt!("{}", Calendar::now()))?;
    let mut layouts = KVec::with_capacity(streams.len(), GFP_KERNEL)?;
    for (layout, _) in streams {
        layouts.push(*layout, GFP_KERNEL)?;
    }
    let clock = clock.describe(system::text(&session.shared.boot_id));
    Text::new(|text| {
        tsdl::preamble(
            text,
            uuid::UuidText::new(id).as_str(),
            &layouts,
            &clock,
            &tsdl::Environment {
                hostname: system::text(&names.node),
                kernel_release: system::text(&names.release),
                kernel_version: system::text(&names.version),
                trace_name: session.name(),
                created: created.to_str()?,
                rtrace_version: crate::abi::VERSION,
                architecture: crate::arch::NAME,
                tasks: session.tasks.has_cgroups().then_some(tsdl::CGROUPS),
            },
        )?;
        for (stream, (_, contexts)) in (0..).zip(streams) {
            tsdl::stream(text, stream, &layouts, clock.name, contexts.fields())?;
        }
        Ok(())
    })
}

/// The description of an event that has this number in a stream.
pub(in crate::session) fn event(
    event: &Event,
    stream: u32,
    number: u32,
    out: &mut Text,
) -> fmt::Result {
    tsdl::event(out, stream, number, event.trace_name(), event.fields())
}

/// The description of a built-in event in a stream.
pub(in crate::session) fn builtin(builtin: Builtin, stream: u32, out: &mut Text) -> fmt::Result {
    let fields = builtin.fields().iter().copied();
    tsdl::event(out, stream, builtin.id(), builtin.name(), fields)
}
