// SPDX-License-Identifier: GPL-2.0

//! The targets.

mod beside;
mod config;
mod description;
mod dynamic;
pub mod eh_frame;
mod elf;
mod events;
mod files;
mod filter;
mod foreign;
mod frames;
mod http;
mod labels;
mod maps;
mod metadata;
mod packets;
mod patterns;
mod program;
mod receiver;
mod region;
mod rings;
mod sizes;
mod state;
mod stats;
mod trace;
mod triggers;
mod unwind_blob;

/// Code that reads bytes from outside, with the properties to check.
#[derive(Debug)]
pub struct Target {
    /// Its name, which is also that of its folder in `corpus/`.
    pub name: &'static str,
    /// Reads the bytes. Panics if a property does not hold.
    pub check: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    target("beside", beside::check),
    target("config", config::check),
    target("description", description::check),
    target("dynamic", dynamic::check),
    target("eh_frame", eh_frame::check),
    target("elf", elf::check),
    target("events", events::check),
    target("filter", filter::check),
    target("foreign", foreign::check),
    target("frames", frames::check),
    target("http", http::check),
    target("maps", maps::check),
    target("metadata", metadata::check),
    target("packets", packets::check),
    target("patterns", patterns::check),
    target("perf_data", files::perf_data),
    target("program", program::check),
    target("receiver", receiver::check),
    target("region", region::check),
    target("rings", rings::check),
    target("sizes", sizes::check),
    target("state", state::check),
    target("stats", stats::check),
    target("trace", trace::check),
    target("trace_dat", files::trace_dat),
    target("triggers", triggers::check),
    target("unwind_blob", unwind_blob::check),
];

const fn target(name: &'static str, check: fn(&[u8])) -> Target {
    Target { name, check }
}

/// The target with this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
