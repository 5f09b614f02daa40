// SPDX-License-Identifier: GPL-2.0

//! `rtrace export lttng`: a folder with the layout of an LTTng session. lttng-analyses looks for its subfolder
//! `kernel/`.

use super::folder::{make, NewFolder};
use super::Interruption;
use analysis::loss::Damages;
use anyhow::{bail, Context};
use ctf::{StreamReader, METADATA};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use store::Trace;

/// Creates `to`, which must not exist, with the trace in `from` as `kernel/`. Each chunk of a trace in chunks
/// becomes `CHUNK/kernel/`.
///
/// The files are hard links to the trace's files, or copies where links fail. Damaged files are included.
/// Returns the number of files and the damaged packets.
pub fn export(from: &Path, trace: &Trace, to: &Path) -> anyhow::Result<(usize, Damages)> {
    let mut interruption = Interruption::catch()?;
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
    let folder = NewFolder::new(to)?;
    let mut files = 0;
    for dir in dirs {
        let mut inner = folder.path().to_owned();
        if let Ok(chunk) = dir.strip_prefix(from) {
            inner.push(chunk);
        }
        if inner != folder.path() {
            make(&inner)?;
        }
        let kernel = inner.join("kernel");
        make(&kernel)?;
        let streams = trace
            .streams
            .iter()
            .filter(|path| path.parent() == Some(dir));
        for file in streams.cloned().chain([dir.join(METADATA)]) {
            interruption.check()?;
            link(&file, &kernel)?;
            files += 1;
        }
    }
    folder.finish()?;
    Ok((files, damages(trace)?))
}

/// Returns the damaged places of a trace, except places within packets.
fn damages(trace: &Trace) -> system::Result<Damages> {
    let mut damages = Damages::of(trace);
    for path in &trace.streams {
        let mut reader = StreamReader::open(path, &trace.metadata)?;
        loop {
            match reader.next_packet() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => damages.add(reader.damage(error)?),
            }
        }
    }
    Ok(damages)
}

fn link(file: &Path, dir: &Path) -> anyhow::Result<()> {
    let name: PathBuf = file.file_name().unwrap_or_default().into();
    let to = dir.join(name);
    let done = match fs::hard_link(file, &to) {
        // The folder is on another file system, the file system has no links, or another user owns the file.
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
