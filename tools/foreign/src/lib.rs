// SPDX-License-Identifier: GPL-2.0

//! Traces of other tracers, read as packets in rtrace's own form.
//!
//! A [`Format`] recognises a trace and opens it. It makes a description in rtrace's layouts, and translates each
//! packet of a stream when a reader wants it ([`ctf::Packets`]). So all commands read such a trace as one of rtrace's,
//! and no copy of it is made.

#![forbid(unsafe_code)]

mod bytes;
mod chain;
mod compressed;
mod content;
mod ctf_format;
mod ftrace;
mod perf_data;
mod perfetto;
mod trace_dat;

pub use chain::Chain;
pub use content::Content;
pub use ctf_format::Ctf;
pub use perf_data::PerfData;
pub use perfetto::Perfetto;
pub use trace_dat::TraceDat;

use ::ctf::Metadata;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use system::{Error, Result};

/// A format of traces.
pub trait Format {
    /// Returns whether a file or directory begins as a trace of this format does. Reads little.
    fn is_likely(&self, path: &Path) -> bool;

    /// Opens the trace in a file or directory. [`None`]: it has another format.
    fn open(&self, path: &Path) -> Result<Option<Opened>>;
}

/// All formats, in the order in which they are tried. Perfetto's files are only refused.
const FORMATS: [&dyn Format; 4] = [&Ctf, &TraceDat, &PerfData, &Perfetto];

/// A trace of another tracer.
#[derive(Debug)]
pub struct Opened {
    /// Its description, with the reader of its streams.
    pub metadata: Metadata,
    /// The names of its streams, in the form of [`ctf::StreamName`], below the path of the trace.
    pub streams: Vec<PathBuf>,
    /// Bytes of its files.
    pub bytes: u64,
    /// A sentence about each thing that the trace cannot tell.
    pub notes: Vec<String>,
}

/// Whether a file or directory looks like a trace of one of the formats.
pub fn is_trace(path: &Path) -> bool {
    FORMATS.iter().any(|format| format.is_likely(path))
}

/// Opens a trace of any of the formats. [`None`]: the path has none of them.
pub fn open(path: &Path) -> Result<Option<Opened>> {
    for format in FORMATS {
        if let Some(opened) = format.open(path)? {
            return Ok(Some(opened));
        }
    }
    Ok(None)
}

/// The stream with this name.
fn stream<S: Clone>(streams: &HashMap<PathBuf, S>, name: &Path) -> Result<S> {
    let missing = || Error::read(name)(io::ErrorKind::NotFound.into());
    streams.get(name).cloned().ok_or_else(missing)
}
