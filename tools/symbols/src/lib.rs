// SPDX-License-Identifier: GPL-2.0

//! Names of functions: the kernel's, and those of programs.
//!
//! An address has the name that it had when its event was recorded. The kernel's addresses change with each boot and
//! each loaded module, and a program's memory is gone when it ends. So a [recorder](recorder) notes all changes, and
//! keeps the files of programs open. The names that a trace needs are [saved](saved) with it, so that the trace can be
//! read elsewhere.

#![forbid(unsafe_code)]

mod contents;
mod debuginfod;
mod demangle;
mod elf;
mod history;
mod inlining;
mod kept;
mod kernel;
mod live;
mod made;
mod mappings;
mod maps;
mod parameters;
mod perf;
mod perf_map;
mod plt;
mod processes;
mod programs;
mod recorder;
mod running;
mod saved;
mod stacks;
mod vdso;

pub use contents::Contents;
pub use debuginfod::Servers;
pub use elf::{build_id, program, Program};
pub use kernel::{see_modules, Image, KernelSymbol};
pub use live::LivePrograms;
pub use mappings::{MappedFile, Mappings};
pub use parameters::{prototype, Parameter, ParameterType, Prototype};
pub use programs::{Place, Programs};
pub use recorder::{Recorded, Recorder};
pub use saved::{FileNames, Names, Saved};
pub use stacks::{End, Frame, Side, Stacks};

use ctf::Metadata;
use kernel::Kernel;
use std::path::Path;
use store::maps::MapTable;
use terminal::say;

/// The names that can be found for a trace.
#[derive(Debug, Default)]
pub struct Symbols {
    kernel: Kernel,
    programs: Programs,
    /// Of a trace that is being recorded: its description, and the kernel's modules when the kernel was read.
    live: Option<(Metadata, Vec<String>)>,
}

impl Symbols {
    /// The names for the trace in `dir`: the saved ones; otherwise those of this machine, and of the kernel if the
    /// trace was recorded in this boot. Prints a message about files that cannot be read.
    pub fn of(dir: &Path, metadata: &Metadata) -> Self {
        let (saved, mappings) = match &metadata.foreign {
            None => (
                Saved::read(dir, metadata.uuid),
                Mappings::read(dir, metadata),
            ),
            // A trace of another tracer has no texts beside it.
            Some(foreign) => (
                Ok(foreign.kallsyms().map(Saved::of_kallsyms)),
                Mappings::of(&**foreign, metadata),
            ),
        };
        let saved = saved.unwrap_or_else(|error| {
            say(error);
            None
        });
        let mappings = mappings.unwrap_or_else(|error| {
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
        let mut programs = Programs::new(mappings.unwrap_or_default(), functions);
        if kernel::is_running(metadata) {
            programs.read_vdso();
        }
        Self {
            kernel,
            programs,
            live: None,
        }
    }

    /// The names that a recording found for the trace in `dir`.
    ///
    /// # Errors
    ///
    /// The mappings beside the trace cannot be read.
    pub fn recorded(dir: &Path, metadata: &Metadata, recorded: &Recorded) -> system::Result<Self> {
        let mappings = Mappings::read(dir, metadata)?;
        let mut programs = Programs::new(mappings.unwrap_or_default(), Vec::new());
        programs.keep(recorded.kept());
        programs.read_vdso();
        Ok(Self {
            kernel: recorded.kernel(&metadata.clock),
            programs,
            live: None,
        })
    }

    /// The names for a trace that is being recorded: the kernel's functions.
    pub fn running(metadata: &Metadata) -> Self {
        let modules = kernel::modules();
        Self {
            kernel: Kernel::running(metadata),
            programs: Programs::default(),
            live: Some((metadata.clone(), modules)),
        }
    }

    /// Before further events of a trace that is being recorded: reads the kernel again if its modules have changed.
    pub fn renew(&mut self) {
        if let Some((metadata, modules)) = &mut self.live {
            let now = kernel::modules();
            if now != *modules {
                self.kernel = Kernel::running(metadata);
                *modules = now;
            }
        }
    }

    /// From now on also asks these servers, for programs and debug information that this machine does not have.
    pub fn ask(&mut self, servers: Servers) {
        self.programs.ask(servers);
    }

    /// The function of the kernel that contains an address, at a time of the trace's clock in nanoseconds.
    pub fn kernel(&self, ns: u64, address: u64) -> Option<&KernelSymbol> {
        Some(self.kernel.find(ns, address)?.1)
    }

    /// The same, with the image to which the function belongs.
    pub fn image(&self, ns: u64, address: u64) -> Option<(&Image, &KernelSymbol)> {
        self.kernel.find(ns, address)
    }

    /// Gives names to the functions of the user's call stacks in maps, by the programs at the end of the trace. No other
    /// place in a program may be asked for after that.
    pub fn name_maps(&mut self, tables: &mut [MapTable]) {
        self.programs.name_maps(tables);
    }

    /// The place in a program of an address, in the thread with this id, at a time of the trace's clock in
    /// nanoseconds. Times must not decrease from call to call.
    pub fn user(&mut self, tid: i64, ns: u64, address: u64) -> Option<Place<'_>> {
        self.programs.find(tid, ns, address)
    }
}
