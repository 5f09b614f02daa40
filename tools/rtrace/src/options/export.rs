// SPDX-License-Identifier: GPL-2.0

//! Options of `rtrace export`, converted from the arguments as typed.

use super::trace;
use crate::args::{ExportArgs, ExportChoiceArgs, ExportFileArgs, ExportFormat, ExportStacksArgs};
use export::{Choice, Export, Kind, Tables, Target};
use std::path::PathBuf;

pub(super) fn export(args: ExportArgs) -> Result<Export, clap::Error> {
    Ok(match args.format {
        ExportFormat::Perfetto(args) => stream(Kind::Perfetto, args)?,
        ExportFormat::Chrome(args) => stream(Kind::Chrome, args)?,
        ExportFormat::Csv(args) => stream(Kind::Csv, args)?,
        ExportFormat::Text(args) => stream(Kind::Text, args)?,
        ExportFormat::Pprof(args) => stream(Kind::Pprof, args)?,
        ExportFormat::PerfScript(args) => stream(Kind::PerfScript, args)?,
        ExportFormat::Folded(ExportStacksArgs { off_cpu, file }) => {
            stream(Kind::Folded { off_cpu }, file)?
        }
        ExportFormat::Flamegraph(ExportStacksArgs { off_cpu, file }) => {
            stream(Kind::Flamegraph { off_cpu }, file)?
        }
        ExportFormat::Lttng(args) => Export::Lttng {
            dir: trace(args.dir)?,
            to: args.output,
        },
        ExportFormat::Aux(args) => Export::Aux {
            dir: trace(args.dir)?,
            to: args.output,
        },
        ExportFormat::Parquet(args) => Export::Tables(Tables {
            dirs: match args.dirs.is_empty() {
                true => vec![trace(None)?],
                false => args.dirs,
            },
            to: args.output,
            force: args.force,
            choice: choice(args.choice),
        }),
    })
}

fn stream(kind: Kind, args: ExportFileArgs) -> Result<Export, clap::Error> {
    let output = args.output.unwrap_or_else(|| PathBuf::from("-"));
    Ok(Export::Stream {
        dir: trace(args.dir)?,
        kind,
        target: Target::named(output, args.force),
        choice: choice(args.choice),
    })
}

fn choice(args: ExportChoiceArgs) -> Choice {
    Choice {
        patterns: args.events,
        from: args.from,
        to: args.to,
    }
}
