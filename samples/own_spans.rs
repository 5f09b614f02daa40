// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Records events and spans of the crate `tracing` with rtrace. Usage: own_spans [COUNT]
//!
//!     rtrace record -e 'user.*' -o trace -- ./own_spans 3

use tracing::{info, info_span};
use tracing_subscriber::prelude::*;

fn main() {
    tracing_subscriber::registry()
        .with(rtrace_event::layer())
        .init();
    let count = std::env::args()
        .nth(1)
        .map_or(1, |count| count.parse().expect("a number"));
    for number in 0..count {
        let _request = info_span!("request", number).entered();
        info!(name: "cart", items = 3_u64, "found");
    }
}
