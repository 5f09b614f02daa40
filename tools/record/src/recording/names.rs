// SPDX-License-Identifier: GPL-2.0

//! The names of functions, saved with a recording.

use control::snapshot::next_number;
use export::{save_names, Nameless};
use network::Directory;
use store::beside::{MAPPINGS, SYMBOLS};
use store::Chunks;
use symbols::{Recorder, Servers};
use terminal::say;

/// Writes the names of functions beside each trace of the recording, and into its chunks. Reports missing names.
pub fn save(
    directory: &Directory,
    has_snapshots: bool,
    symbols: Recorder,
    servers: Option<Servers>,
) -> anyhow::Result<()> {
    let Directory { path, options } = directory;
    let recorded = symbols.end()?;
    let traces: Vec<_> = match has_snapshots {
        true => (1..next_number(path)?)
            .map(|number| path.join(number.to_string()))
            .collect(),
        false => vec![path.clone()],
    };
    let mut nameless = Nameless::default();
    for trace in &traces {
        if let Some(uuid) = options.held(trace)? {
            recorded.write(trace, uuid, options.access)?;
            nameless.join(save_names(trace, Some(&recorded), servers, options.access)?);
        }
    }
    if options.rotate.is_some() && path.exists() {
        for chunk in Chunks::list(path)?.parts(path) {
            for text in [SYMBOLS, MAPPINGS] {
                text.share(path, &chunk, options.access)?;
            }
        }
    }
    nameless.to_string().lines().for_each(say);
    Ok(())
}
