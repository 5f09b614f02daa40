// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --html`: a trace as one page, which needs only a browser.
//!
//! `rtrace report --serve`: the same page from a [`Server`], which reads the part that the page shows.
//!
//! [`Timeline`] gathers the data that the page draws, in the same pass as the answers to the questions. `write`
//! makes the page from both. The files in `script/` draw it.

#![forbid(unsafe_code)]

mod calls;
mod columns;
mod data;
mod detail;
mod html;
mod lanes;
mod marks;
mod moments;
mod packets;
mod serve;
mod stacks;
mod threads;
mod timeline;

pub use detail::Details;
pub use html::Page;
pub use serve::Server;
pub use stacks::Stacks;
pub use timeline::Timeline;
