// SPDX-License-Identifier: GPL-2.0

//! rtrace: a kernel tracer.

#[allow(unreachable_pub)] // The tools use its public items.
pub(crate) mod abi;
pub(crate) mod api;
#[allow(unreachable_pub)] // The tools use its public items.
pub(crate) mod arch;
pub(crate) mod channel;
pub(crate) mod context;
pub(crate) mod event;
pub(crate) mod file;
#[allow(dead_code, unreachable_pub)] // Its tests use all of it.
pub(crate) mod filter;
#[allow(unreachable_pub)] // The tools use its public items.
pub(crate) mod input;
#[allow(dead_code, unreachable_pub)] // Its tests use all of it.
pub(crate) mod map;
pub(crate) mod probe;
#[allow(dead_code, unreachable_pub)] // Its tests use all of it.
pub(crate) mod program;
#[allow(unreachable_pub)] // The tools use its public items.
pub(crate) mod record;
#[allow(dead_code, unreachable_pub)] // Its tests use all of it.
pub(crate) mod ring;
pub(crate) mod session;
pub(crate) mod source;
pub(crate) mod sys;
pub(crate) mod tracer;
#[allow(dead_code, unreachable_pub)] // Its tests use all of it.
pub(crate) mod unwind;

use channel::config::Config;
use channel::platform::BarrierPolicy;
use kernel::prelude::*;
use tracer::Tracer;

module! {
    type: Rtrace,
    name: "rtrace",
    authors: ["The rtrace developers"],
    description: "Lockless multi-core kernel tracer",
    license: "GPL",
}

/// The module. Its state is the [`Tracer`], in a static where modules that use the API find it.
struct Rtrace;

impl kernel::Module for Rtrace {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let config = Config {
            barriers: match sys::parameter::delivery_barrier() {
                0 => BarrierPolicy::Auto,
                _ => BarrierPolicy::Writer,
            },
            origin: sys::parameter::origin(),
            ..Config::DEFAULT
        };
        sys::stack::prepare()?;
        let tracer = Tracer::new(config).inspect_err(|_| {
            sys::retired::wait();
            sys::stack::forget();
        })?;
        api::TRACER.replace(Some(tracer));
        Ok(Self)
    }
}

impl Drop for Rtrace {
    fn drop(&mut self) {
        // No other code holds the tracer: open files and callers keep the module loaded.
        api::TRACER.replace(None);
        // Waits for handlers that may sleep in a page fault.
        sys::retired::wait();
        sys::stack::forget();
    }
}
