// SPDX-License-Identifier: GPL-2.0

//! `rtrace snapshot`: writes the contents of the buffers at this moment.

use crate::options::Place;
use crate::recording::snapshot::take;
use export::save_names;
use std::path::Path;
use store::OutputOptions;

/// Writes a snapshot to `dir`.
pub fn snapshot(place: &Place, dir: &Path, options: OutputOptions) -> anyhow::Result<()> {
    take(&place.session()?, dir, options)?;
    // The snapshot may be read elsewhere. The mappings of programs at its events are not known.
    save_names(dir, None, None, options.access).map(drop)
}
