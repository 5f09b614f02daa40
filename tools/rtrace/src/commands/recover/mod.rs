// SPDX-License-Identifier: GPL-2.0

//! `rtrace recover`: writes the packets that a crashed kernel left in memory.

mod vmcore;

use crate::args::RecoverArgs;
use anyhow::{bail, Context};
use record::place::Place;
use recovery::dump;
use recovery::recovered::{self, Recovered};
use recovery::region::Region;
use std::collections::BTreeSet;
use std::path::Path;
use store::Claim;
use system::access::Access;
use terminal::{bytes, say, tell};
use vmcore::Vmcore;

/// Recovers the buffers and writes them to a directory.
pub fn recover(place: &Place, args: &RecoverArgs) -> anyhow::Result<()> {
    match &args.vmcore {
        None => from_region(place, args),
        Some(file) => {
            let session = place.session.as_deref();
            from_dump(file, session, &args.output, args.access.access())
                .with_context(|| file.display().to_string())
        }
    }
}

/// Writes the trace that the last boot left in the reserved memory of a channel. Frees that memory if no part of it is
/// damaged: another version or another program may read more.
fn from_region(place: &Place, args: &RecoverArgs) -> anyhow::Result<()> {
    let (dir, access) = (&args.output, args.access.access());
    let session = place.session()?;
    let Some(channel) = session.channel(&args.channel)? else {
        bail!("channel `{}` does not exist", args.channel);
    };
    let Some(memory) = channel.recovered()? else {
        bail!(
            "channel `{}` has no trace of an earlier boot in its memory",
            channel.name()
        );
    };
    let free = format!("`echo 1 > {}`", channel.free_path().display());
    let region = Region::parse(&memory).with_context(|| {
        format!(
            "the trace in the memory of channel `{}` cannot be recovered ({free} deletes it)",
            channel.name()
        )
    })?;
    let is_damaged = report(dir, recovered::write(&region, dir, access)?);
    match is_damaged {
        _ if args.keep_memory => {}
        true => say(format_args!(
            "parts are damaged, so the memory of channel `{}` keeps the trace: {free} deletes it",
            channel.name()
        )),
        false => channel.free_recovered()?,
    }
    Ok(())
}

/// Writes the traces in a dump: of all sessions, or of the session `session`.
fn from_dump(file: &Path, session: Option<&str>, dir: &Path, access: Access) -> anyhow::Result<()> {
    let mut memory = Vmcore::open(file)?;
    let mut found = dump::find(&mut memory)?;
    for what in found.damaged {
        say(format_args!("damaged: {what}"));
    }
    if let Some(session) = session {
        found
            .traces
            .retain(|trace| trace.session() == Some(session));
    }
    if found.traces.is_empty() {
        match session {
            Some(session) => bail!("the dump has no buffers of session `{session}`"),
            None => bail!("rtrace was loaded, but has no buffers: no session recorded, or its buffers were read and freed"),
        }
    }
    let _claim = Claim::take(dir, access)?;
    if dir.read_dir().is_ok_and(|mut files| files.next().is_some()) {
        bail!("{} is not empty: choose a new directory", dir.display());
    }
    let mut names = BTreeSet::new();
    for trace in found.traces {
        // A destroyed session and a later session of the same name may both have a trace.
        let session = trace.session().unwrap_or("unnamed");
        let numbered = (2..).map(|number| format!("{session}-{number}"));
        let mut candidates = std::iter::once(session.to_owned()).chain(numbered);
        let Some(name) = candidates.find(|name| !names.contains(name)) else {
            continue;
        };
        let dir = dir.join(&name);
        names.insert(name);
        report(&dir, trace.write(&mut memory, &dir, access)?);
    }
    Ok(())
}

/// Reports what was written. Returns whether parts were damaged.
fn report(dir: &Path, recovered: Recovered) -> bool {
    let Recovered {
        packets,
        bytes: size,
        torn,
        damaged,
    } = recovered;
    for what in &damaged {
        say(format_args!("damaged: {what}"));
    }
    if torn > 0 {
        say(format_args!(
            "{torn} events are missing: one of their records is incomplete"
        ));
    }
    tell(format_args!(
        "recovered in {} ({}, {packets} packets)",
        dir.display(),
        bytes(size)
    ));
    !damaged.is_empty()
}
