// SPDX-License-Identifier: GPL-2.0

//! `rtrace export`.

use crate::args::{trace, ExportArgs, ExportFileArgs, ExportFormat};
use export::{Kind, Tables, Target};
use std::path::PathBuf;

/// Writes a trace in the format of another tool.
pub fn export(args: ExportArgs) -> anyhow::Result<()> {
    match args.format {
        ExportFormat::Perfetto(args) => stream(Kind::Perfetto, args),
        ExportFormat::Chrome(args) => stream(Kind::Chrome, args),
        ExportFormat::Csv(args) => stream(Kind::Csv, args),
        ExportFormat::Text(args) => stream(Kind::Text, args),
        ExportFormat::Pprof(args) => stream(Kind::Pprof, args),
        ExportFormat::PerfScript(args) => stream(Kind::PerfScript, args),
        ExportFormat::Folded(args) => stream(
            Kind::Folded {
                off_cpu: args.off_cpu,
            },
            args.file,
        ),
        ExportFormat::Flamegraph(args) => stream(
            Kind::Flamegraph {
                off_cpu: args.off_cpu,
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

fn stream(kind: Kind, args: ExportFileArgs) -> anyhow::Result<()> {
    let output = args.output.unwrap_or_else(|| PathBuf::from("-"));
    let target = Target::named(output, args.force);
    export::stream(&trace(args.dir)?, kind, &target, &args.part.choice())
}
