// SPDX-License-Identifier: GPL-2.0

//! Choice: the settings of a session, and the chosen events, filters, contexts, CPUs, tasks and functions.

mod contexts;
mod cpus;
mod events;
mod filters;
mod functions;
pub(super) mod patterns;
pub(super) mod perf;
mod regions;
mod selection;
mod setting;
mod settings;
mod standing;
mod table;
mod tasks;

pub(super) use filters::Filters;
pub(super) use functions::FunctionChoice;
pub(crate) use regions::Regions;
pub(crate) use selection::{Enabled, Selection};
pub(crate) use setting::Setting;
pub(crate) use settings::ChannelId;
pub(super) use settings::{ChannelSettings, Settings};
pub(super) use tasks::TaskChoice;
