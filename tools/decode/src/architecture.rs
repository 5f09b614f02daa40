// SPDX-License-Identifier: GPL-2.0

//! The processor that a trace is of.

/// Kind of processor. Numbers of system calls, and some flags, depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64, whose traces do not name it.
    #[default]
    X86_64,
    /// arm64.
    Arm64,
}

impl Architecture {
    /// The architecture of the machine that runs this.
    pub const HERE: Self = match cfg!(target_arch = "aarch64") {
        true => Self::Arm64,
        false => Self::X86_64,
    };

    /// The architecture of a trace whose environment has this `architecture`.
    pub fn named(name: Option<&str>) -> Self {
        match name {
            Some("aarch64") => Self::Arm64,
            _ => Self::X86_64,
        }
    }

    /// The name that uname(2) has for it.
    pub fn machine(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }
}
