// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Records events of this program with rtrace. Usage: own_events [COUNT]
//!
//!     rtrace record -e 'user.shop' -o trace -- ./own_events 3

use rtrace_event::event;

fn main() {
    let count = std::env::args()
        .nth(1)
        .map_or(1, |count| count.parse().expect("a number"));
    for n in 0..count {
        // While nobody records the event, this does nothing but test a word.
        event!(shop:request, status: u32 = 200 + n, path: string = format!("/cart/{n}"));
    }
}
