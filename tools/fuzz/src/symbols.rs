// SPDX-License-Identifier: GPL-2.0

//! What `rtrace` knows functions by: the program's own files, which has no library.

#![allow(dead_code)]

#[path = "../../rtrace/src/symbols/contents.rs"]
mod contents;
#[path = "../../rtrace/src/symbols/debuginfod.rs"]
mod debuginfod;
#[path = "../../rtrace/src/symbols/elf.rs"]
pub mod elf;
#[path = "../../rtrace/src/symbols/kernel.rs"]
mod kernel;
#[path = "../../rtrace/src/symbols/lines.rs"]
mod lines;
#[path = "../../rtrace/src/symbols/mappings.rs"]
pub mod mappings;
#[path = "../../rtrace/src/symbols/processes.rs"]
mod processes;
#[path = "../../rtrace/src/symbols/programs.rs"]
pub mod programs;
#[path = "../../rtrace/src/symbols/saved.rs"]
pub mod saved;
