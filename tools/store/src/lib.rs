// SPDX-License-Identifier: GPL-2.0

//! Traces on disk.
//!
//! - writing: [`Output`] (the consumer's sink that is a directory), [`Rotate`] (the same as a directory of
//!   [`Chunks`]), [`Claim`] (one writer for a directory), [`Folder`] (the directory itself);
//! - reading: [`Trace`] is the directory, or all chunks of it; [`Recording`] says how the recording ended; [`maps`] has
//!   the sums that were counted meanwhile; [`beside`] reads and writes these and all other texts.

#![forbid(unsafe_code)]

pub mod beside;
mod chunks;
mod claim;
mod finisher;
mod folder;
pub mod maps;
mod options;
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
pub use folder::Folder;
pub use options::OutputOptions;
pub use output::Output;
pub use recording::{reserved, Recording};
pub use rotate::{Every, Rotate};
pub use trace::{areas, is_readable, is_trace, Trace};
pub use writing::Writing;
