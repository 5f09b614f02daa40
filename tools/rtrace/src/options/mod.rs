// SPDX-License-Identifier: GPL-2.0

//! Values that the program uses, converted from the arguments as typed.

mod count;
mod latency;
mod profile;
mod record;
mod setup;
mod show;
#[cfg(test)]
mod tests;
mod top;

pub use count::{count, Count};
pub use latency::{latency, Latency, TIMERS};
pub use profile::{profile, Profile};
pub use record::{record, Conditions, Record};
pub use setup::{maps, start, without_probes};
pub use show::{show, Input, Show};
pub use top::{top, Top};

use crate::args::{trace, wrong};
