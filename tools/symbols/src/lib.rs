// SPDX-License-Identifier: GPL-2.0

//! Names of functions: the kernel's, and those of programs.
//!
//! The kernel's addresses change with each boot, and a program's memory is gone when it ends. So a
//! [recorder](recorder) writes all mappings beside the trace. The names that a trace needs are [saved](saved) with it,
//! so that the trace can be read elsewhere.

#![forbid(unsafe_code)]

mod contents;
mod debuginfod;
mod elf;
mod kernel;
mod mappings;
mod processes;
mod programs;
mod recorder;
mod saved;
mod stacks;

pub use debuginfod::Servers;
pub use elf::{build_id, functions};
pub use kernel::KernelSymbol;
pub use mappings::{MappedFile, Mappings};
pub use programs::{Place, Programs};
pub use recorder::Recorder;
pub use saved::{Names, Saved};
pub use stacks::{Frame, Side, Stacks};

use ctf::Metadata;
use kernel::Kernel;
use std::path::Path;
use terminal::say;

/// The names that can be found for a trace.
#[derive(Debug, Default)]
pub struct Symbols {
    kernel: Kernel,
    programs: Programs,
}

impl Symbols {
    /// The names for the trace in `dir`: the saved ones; otherwise those of this machine, and of the kernel if the
    /// trace was recorded in this boot. Prints a message about files that cannot be read.
    pub fn of(dir: &Path, metadata: &Metadata) -> Self {
        let saved = Saved::read(dir, metadata.uuid).unwrap_or_else(|error| {
            say(error);
            None
        });
        let mappings = Mappings::read(dir, metadata).unwrap_or_else(|error| {
            say(error);
            None
        });
        let lost = mappings.as_ref().map_or(0, |mappings| mappings.lost);
        if lost > 0 {
            say(format_args!(
                "{lost} changes of programs' mappings were lost: some of their functions have no \
                 name, or a wrong one"
            ));
        }
        let (kernel, functions) = match saved {
            Some(saved) => (saved.kernel, saved.files),
            None => (Kernel::running(metadata), Vec::new()),
        };
        Self {
            kernel,
            programs: Programs::new(mappings.unwrap_or_default(), functions),
        }
    }

    /// The names for a trace that is being recorded: the kernel's functions.
    pub fn running(metadata: &Metadata) -> Self {
        Self {
            kernel: Kernel::running(metadata),
            programs: Programs::default(),
        }
    }

    /// From now on also asks these servers, for programs and debug information that this machine does not have.
    pub fn ask(&mut self, servers: Servers) {
        self.programs.ask(servers);
    }

    /// The function of the kernel that contains an address.
    pub fn kernel(&self, address: u64) -> Option<&KernelSymbol> {
        self.kernel.find(address)
    }

    /// The place in a program of an address, in the thread with this id, at a time of the trace's clock in
    /// nanoseconds. Times must not decrease from call to call.
    pub fn user(&mut self, tid: i64, ns: u64, address: u64) -> Option<Place<'_>> {
        self.programs.find(tid, ns, address)
    }
}
