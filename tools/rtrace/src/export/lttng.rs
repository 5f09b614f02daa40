// SPDX-License-Identifier: GPL-2.0

//! `--lttng`: the trace in a folder as LTTng's sessions have it, with `kernel/` in it: lttng-analyses
//! looks for that.

use anyhow::{bail, Context};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use trace::ctf::Trace;
use trace::output::METADATA;

/// Makes `to`, which must not be there, with `kernel/` of the trace in `from`; for a trace in chunks,
/// with `CHUNK/kernel/` for each. The files are the trace's own (hard links), where that cannot be
/// copies. Returns how many there are.
pub fn export(from: &Path, trace: &Trace, to: &Path) -> anyhow::Result<usize> {
    let mut dirs: Vec<&Path> = trace
        .streams
        .iter()
        .filter_map(|path| path.parent())
        .collect();
    dirs.sort_unstable();
    dirs.dedup();
    if dirs.is_empty() {
        bail!("{}: the trace has no stream", from.display());
    }
    make(to)?;
    let mut files = 0;
    for dir in dirs {
        let mut inner = to.to_owned();
        if let Ok(chunk) = dir.strip_prefix(from) {
            inner.push(chunk);
        }
        if inner != *to {
            make(&inner)?;
        }
        let kernel = inner.join("kernel");
        make(&kernel)?;
        let streams = trace
            .streams
            .iter()
            .filter(|path| path.parent() == Some(dir));
        for file in streams.cloned().chain([dir.join(METADATA)]) {
            link(&file, &kernel)?;
            files += 1;
        }
    }
    Ok(files)
}

/// Makes a directory that is for its owner, as traces are.
fn make(dir: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().mode(0o700).create(dir);
    made.with_context(|| format!("cannot make {}", dir.display()))
}

fn link(file: &Path, dir: &Path) -> anyhow::Result<()> {
    let name: PathBuf = file.file_name().unwrap_or_default().into();
    let to = dir.join(name);
    let done = match fs::hard_link(file, &to) {
        // Another file system, one without links, or another's file.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::CrossesDevices
                    | io::ErrorKind::Unsupported
                    | io::ErrorKind::TooManyLinks
                    | io::ErrorKind::PermissionDenied
            ) =>
        {
            fs::copy(file, &to).map(drop)
        }
        done => done,
    };
    done.with_context(|| format!("cannot write {}", to.display()))
}
