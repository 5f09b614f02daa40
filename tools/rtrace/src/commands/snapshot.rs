// SPDX-License-Identifier: GPL-2.0

//! `rtrace snapshot`: writes the contents of the buffers at this moment.

use crate::args::SnapshotArgs;
use export::save_names;
use record::place::Place;
use record::recording::snapshot::take;

/// Writes a snapshot.
pub fn snapshot(place: &Place, args: &SnapshotArgs) -> anyhow::Result<()> {
    take(&place.session()?, &args.output, args.access.output())?;
    // The snapshot may be read elsewhere. The mappings of programs at its events are not known.
    save_names(&args.output, None, None, args.access.access()).map(drop)
}
