// SPDX-License-Identifier: GPL-2.0

//! `rtrace snapshot`: writes the contents of the buffers at this moment.

use crate::options::Place;
use crate::recording::snapshot::take;
use std::path::Path;
use store::OutputOptions;

/// Writes a snapshot to `dir`.
pub fn snapshot(place: &Place, dir: &Path, options: OutputOptions) -> anyhow::Result<()> {
    take(&place.session()?, dir, options)
}
