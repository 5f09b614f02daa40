// SPDX-License-Identifier: GPL-2.0

//! What `rtrace export` works with, from what was typed.

use super::wrong;
use crate::args::ExportArgs;
use export::{Choice, Export, Kind, Tables, Target};
use std::path::{Path, PathBuf};

pub(super) fn export(args: ExportArgs) -> Result<Export, clap::Error> {
    let format = args.format;
    if args.off_cpu && !format.folded && !format.flamegraph {
        return Err(wrong("--off-cpu is for --folded and --flamegraph"));
    }
    let is_stdout = |path: &PathBuf| path == Path::new("-");
    let path = args.output.filter(|path| !is_stdout(path));
    let force = args.force;
    let choice = Choice {
        patterns: args.events,
        from: args.from,
        to: args.to,
    };
    if format.parquet {
        let Some(to) = path else {
            return Err(wrong("--parquet makes a directory: name it with -o"));
        };
        return Ok(Export::Tables(Tables {
            dirs: args.dirs,
            to,
            force,
            choice,
        }));
    }
    let Ok([dir]) = <[PathBuf; 1]>::try_from(args.dirs) else {
        return Err(wrong("only --parquet takes several traces"));
    };
    let kind = if format.perfetto {
        Kind::Perfetto
    } else if format.chrome {
        Kind::Chrome
    } else if format.csv {
        Kind::Csv
    } else if format.folded {
        Kind::Folded {
            off_cpu: args.off_cpu,
        }
    } else if format.flamegraph {
        Kind::Flamegraph {
            off_cpu: args.off_cpu,
        }
    } else if format.pprof {
        Kind::Pprof
    } else if format.perf_script {
        Kind::PerfScript
    } else if format.lttng {
        let Some(to) = path else {
            return Err(wrong("--lttng makes a directory: name it with -o"));
        };
        return Ok(Export::Lttng { dir, to });
    } else if format.aux {
        let Some(to) = path else {
            return Err(wrong("--aux makes a directory: name it with -o"));
        };
        return Ok(Export::Aux { dir, to });
    } else {
        Kind::Text
    };
    Ok(Export::Stream {
        dir,
        kind,
        target: path.map_or(Target::Stdout, |path| Target::File { path, force }),
        choice,
    })
}
