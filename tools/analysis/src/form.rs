// SPDX-License-Identifier: GPL-2.0

//! Forms of the answers in the JSON objects of commands, for the schemas of these objects.

#![expect(
    dead_code,
    reason = "the fields only describe what the answers serialise to"
)]

use crate::aux::AuxAnswer;
use crate::cpu::CpuAnswer;
use crate::critical_path::CriticalPathAnswer;
use crate::io::IoAnswer;
use crate::irq::IrqAnswer;
use crate::latency::LatencyAnswer;
use crate::locks::LocksAnswer;
use crate::maps::MapObject;
use crate::meanwhile::Case;
use crate::profile::ProfileAnswer;
use crate::syscalls::SyscallsAnswer;
use crate::threads::ThreadsAnswer;
use crate::why::Found;
use schemars::JsonSchema;

/// Answers to questions. The object has those of the questions that were asked.
#[derive(JsonSchema)]
pub struct Questions {
    /// `--syscalls`
    #[schemars(skip_serializing_if = "Option::is_none")]
    syscalls: Option<SyscallsAnswer>,
    /// `--latency`
    #[schemars(skip_serializing_if = "Option::is_none")]
    latency: Option<LatencyAnswer>,
    /// `--threads`
    #[schemars(skip_serializing_if = "Option::is_none")]
    threads: Option<ThreadsAnswer>,
    /// `--cpu`
    #[schemars(skip_serializing_if = "Option::is_none")]
    cpu: Option<CpuAnswer>,
    /// `--irq`
    #[schemars(skip_serializing_if = "Option::is_none")]
    irq: Option<IrqAnswer>,
    /// `--io`
    #[schemars(skip_serializing_if = "Option::is_none")]
    io: Option<IoAnswer>,
    /// `--locks`
    #[schemars(skip_serializing_if = "Option::is_none")]
    locks: Option<LocksAnswer>,
    /// `--profile`
    #[schemars(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileAnswer>,
    /// `--maps`
    #[schemars(skip_serializing_if = "Option::is_none")]
    maps: Option<Vec<MapObject>>,
    /// `--aux`
    #[schemars(skip_serializing_if = "Option::is_none")]
    aux: Option<AuxAnswer>,
    /// `--critical-path`
    #[schemars(skip_serializing_if = "Option::is_none")]
    critical_path: Option<CriticalPathAnswer>,
    /// `rtrace latency -i`
    #[schemars(skip_serializing_if = "Option::is_none")]
    worst_delay: Option<Case>,
}

/// Causes of waits.
#[derive(JsonSchema)]
pub struct Explained {
    why: Found,
}

/// System calls without the trace that they are of.
#[derive(JsonSchema)]
pub struct Counted {
    syscalls: SyscallsAnswer,
}
