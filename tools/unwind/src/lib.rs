// SPDX-License-Identifier: GPL-2.0

//! Compiles the unwind information of an ELF file to a table for the module (`rust/unwind`).
//!
//! - [`frames`] reads `.eh_frame`, or else `.debug_frame`, with the library gimli.
//! - [`rules`] makes a rule of each of its rows.
//! - [`undescribed`] adds code that every program has, and that no toolchain describes.
//! - [`vdso`] makes the rules of the vDSO of arm64.
//! - [`rows`] merges the functions, and turns addresses into offsets in the file.
//! - [`encode`] writes the table.
//! - [`startup`] finds the files that a program starts with.
//! - [`loader`] gives the module the tables of the programs that run.
//!
//! A file may have any contents. Time and memory are proportional to its size.

#![forbid(unsafe_code)]

mod elf;
mod encode;
mod frames;
mod loader;
mod rows;
mod rules;
mod startup;
mod undescribed;
mod vdso;

use elf::ElfCode;
pub use loader::Loader;
use rtrace_unwind::processor::Processor;

/// Reason why a file has no table.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not an ELF file, or its headers are wrong.
    #[error("this is no valid ELF file: {0}")]
    Elf(object::Error),
    /// The file is for 32-bit programs.
    #[error("32-bit programs have no unwind tables")]
    Bits,
    /// The file is for another processor.
    #[error("the file is for a processor without unwind tables")]
    Processor,
    /// The section with the unwind information cannot be read.
    #[error("cannot read the section {name}: {why}")]
    Section {
        /// Its name.
        name: &'static str,
        /// The reason.
        why: String,
    },
    /// The unwind information takes longer to read than its size allows.
    #[error("the unwind information repeats itself too often")]
    Work,
    /// There are more rules than a table can have.
    #[error(
        "the file has more than {} unwind rules",
        rtrace_unwind::head::MAX_RULES
    )]
    Rules,
    /// The table would have more than 4 GiB.
    #[error("the unwind table would be too large")]
    Size,
}

/// Compiles the table of an ELF file. A file without unwind information has a table without rows.
pub fn compile(elf: &[u8]) -> Result<Vec<u8>, Error> {
    let code = ElfCode::parse(elf)?;
    let mut functions = frames::read(&code)?;
    undescribed::add(&code, &mut functions);
    let rows = rows::merge(&code, &functions);
    encode::encode(code.processor, &rows)
}

/// A table without rows, for a file of this machine that has no unwind information.
fn empty() -> Vec<u8> {
    let processor = match cfg!(target_arch = "x86_64") {
        true => Processor::X86_64,
        false => Processor::Arm64,
    };
    encode::encode(processor, &[]).unwrap_or_default()
}
