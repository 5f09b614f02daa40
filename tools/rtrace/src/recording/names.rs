// SPDX-License-Identifier: GPL-2.0

//! The names of functions, saved with a recording.

use export::save_names;
use network::Directory;
use symbols::{Recorder, Servers};
use terminal::say;

/// Writes the names of functions in the trace beside the trace, if there is a trace. Reports missing names.
pub fn save(
    directory: &Directory,
    symbols: Recorder,
    servers: Option<Servers>,
) -> anyhow::Result<()> {
    let Directory { path, options } = directory;
    let recorded = symbols.end()?;
    let Some(uuid) = options.held(path)? else {
        return Ok(());
    };
    recorded.write(path, uuid, options.access)?;
    let nameless = save_names(path, &recorded, servers, options.access)?;
    nameless.to_string().lines().for_each(say);
    Ok(())
}
