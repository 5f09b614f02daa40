// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --html`: a trace as one page, which needs nothing but a browser.
//!
//! [`Timeline`] gathers, beside the questions and in the same pass, what the page draws; `write` makes
//! the page of both; the files in `script/` are what draws it.

#![forbid(unsafe_code)]

mod calls;
mod columns;
mod html;
mod lanes;
mod marks;
mod stacks;
mod threads;
mod timeline;

pub use html::Page;
pub use stacks::Stacks;
pub use timeline::Timeline;
