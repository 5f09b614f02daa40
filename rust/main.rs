// SPDX-License-Identifier: GPL-2.0

//! rtrace: a kernel tracer.

use kernel::prelude::*;

pub(crate) mod abi;
pub(crate) mod channel;
pub(crate) mod event;
pub(crate) mod probe;
pub(crate) mod ring;
pub(crate) mod sys;

module! {
    type: Rtrace,
    name: "rtrace",
    authors: ["The rtrace developers"],
    description: "Lockless multi-core kernel tracer",
    license: "GPL",
}

struct Rtrace;

impl kernel::Module for Rtrace {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
