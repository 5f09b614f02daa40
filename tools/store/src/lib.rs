// SPDX-License-Identifier: GPL-2.0

//! Traces on disk.
//!
//! - writing: [`Output`] (the consumer's sink that is a directory), [`Rotate`] (the same as a directory of
//!   [`Chunks`]), [`Claim`] (one writer for a directory);
//! - reading: [`Trace`] is the directory, or all chunks of it; [`Recording`] says how the recording ended; [`maps`] has
//!   the sums that were counted meanwhile.

#![forbid(unsafe_code)]

mod chunks;
mod claim;
mod finisher;
pub mod maps;
mod output;
mod part;
mod recording;
mod rotate;
mod rotation;
mod stream_file;
mod trace;
mod writing;

pub use chunks::Chunks;
pub use claim::Claim;
pub use output::{make_dir, replace, Output, OutputOptions, METADATA_NEW};
pub use recording::{reserved, Recording};
pub use rotate::{Every, Rotate};
pub use trace::{areas, is_trace, Trace};
pub use writing::Writing;
