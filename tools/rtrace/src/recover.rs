// SPDX-License-Identifier: GPL-2.0

//! `rtrace recover`: what the last boot left in reserved memory.

use crate::options::{Place, Recover};
use crate::terminal::{bytes, say};
use anyhow::{bail, Context};
use trace::recovered::{self, Recovered};
use trace::region::Region;

/// Writes it to a directory, and frees the memory.
pub fn recover(place: &Place, options: &Recover) -> anyhow::Result<()> {
    let session = place.session()?;
    let Some(channel) = session.channel(&options.channel)? else {
        bail!("there is no channel `{}`", options.channel);
    };
    let Some(memory) = channel.recovered()? else {
        bail!(
            "channel `{}` has no trace of an earlier boot in its memory",
            channel.name()
        );
    };
    let region = Region::parse(&memory).with_context(|| {
        format!(
            "what is in the memory of channel `{}` cannot be recovered (`echo 1 > free_recovered` forgets it)",
            channel.name()
        )
    })?;
    let Recovered {
        packets,
        bytes: size,
        torn,
        damaged,
    } = recovered::write(&region, &options.dir, options.access)?;
    for what in damaged {
        say(format_args!("damaged: {what}"));
    }
    if torn > 0 {
        say(format_args!(
            "{torn} events are not there: a record among them was not complete"
        ));
    }
    say(format_args!(
        "recovered in {} ({}, {packets} packets)",
        options.dir.display(),
        bytes(size)
    ));
    if !options.keep {
        channel.free_recovered()?;
    }
    Ok(())
}
