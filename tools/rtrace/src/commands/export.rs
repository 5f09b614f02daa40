// SPDX-License-Identifier: GPL-2.0

//! `rtrace export`.

use crate::args::{trace, ExportArgs, ExportFileArgs, ExportFormat};
use export::{EventFormat, Tables, Target};
use std::path::PathBuf;

/// Writes a trace in the format of another tool.
pub fn export(args: ExportArgs) -> anyhow::Result<()> {
    match args.format {
        ExportFormat::Perfetto(args) => stream(EventFormat::Perfetto, args),
        ExportFormat::Chrome(args) => stream(EventFormat::Chrome, args),
        ExportFormat::Csv(args) => stream(EventFormat::Csv, args),
        ExportFormat::Text(args) => stream(EventFormat::Text, args),
        ExportFormat::Pprof(args) => stream(EventFormat::Pprof, args),
        ExportFormat::PerfScript(args) => stream(EventFormat::PerfScript, args),
        ExportFormat::Folded(args) => stream(
            EventFormat::Folded {
                counts: args.counts(),
            },
            args.file,
        ),
        ExportFormat::Flamegraph(args) => stream(
            EventFormat::Flamegraph {
                counts: args.counts(),
            },
            args.file,
        ),
        ExportFormat::Lttng(args) => export::lttng(&trace(args.dir)?, &args.output),
        ExportFormat::Aux(args) => export::aux(&trace(args.dir)?, &args.output),
        ExportFormat::Parquet(args) => export::tables(&Tables {
            dirs: match args.dirs.is_empty() {
                true => vec![trace(None)?],
                false => args.dirs,
            },
            to: args.output,
            force: args.force,
            choice: args.part.choice(),
        }),
    }
}

fn stream(kind: EventFormat, args: ExportFileArgs) -> anyhow::Result<()> {
    let output = args.output.unwrap_or_else(|| PathBuf::from("-"));
    let target = Target::named(output, args.force);
    export::stream(&trace(args.dir)?, kind, &target, &args.part.choice())
}
