// SPDX-License-Identifier: GPL-2.0

//! Records events by `event!`, and events and spans of the crate `tracing`. Prints "CALLS LOST": the number of records that
//! it has made, and of those that had no room.
//!
//!     rust_events record COUNT [THREADS [PAUSE]]
//!         each thread records COUNT times, with a pause of PAUSE microseconds after each 100
//!     rust_events fork COUNT
//!         the parent and a child record COUNT times each

use rtrace_event::{event, lost};
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{env, thread};
use tracing_subscriber::prelude::*;

static CALLS: AtomicU64 = AtomicU64::new(0);

/// A value of another type than the one in the same place before.
fn generic<T: tracing::Value>(value: T) {
    tracing::info!(name: "generic", target: "rust::told", value);
}

fn work(me: u32, count: u64, pause: Option<Duration>) {
    for number in 0..count {
        let sum = (number ^ u64::from(me)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        event!(rust:number, thread: u32 = me, number: u64 = number, sum: x64 = sum, minus: s8 = -1);
        event!(rust:text, thread: u32 = me, text: string = format!("number {number}"));
        let outer = tracing::info_span!(target: "rust::told", "outer", thread = me, number);
        {
            let _outer = outer.enter();
            let _inner = tracing::info_span!(target: "rust::told", "inner", sum).entered();
            tracing::info!(name: "message", target: "rust::told", thread = me, is_odd = number % 2 == 1, "number {number}");
        }
        drop(outer);
        CALLS.fetch_add(2 + 2 + 2 + 1, Ordering::Relaxed);
        if let Some(pause) = pause.filter(|_| number % 100 == 99) {
            thread::sleep(pause);
        }
    }
    generic(u64::from(me));
    generic("text");
    generic(None::<u64>);
    event!(rust:empty);
    CALLS.fetch_add(4, Ordering::Relaxed);
}

fn main() {
    tracing_subscriber::registry()
        .with(rtrace_event::layer())
        .init();
    let given: Vec<String> = env::args().collect();
    let number = |at: usize| {
        given
            .get(at)
            .map_or(0, |text| text.parse().expect("a number"))
    };
    let count = number(2);
    match given.get(1).map(String::as_str) {
        Some("record") => {
            let pause = Some(number(4)).filter(|&pause| pause != 0);
            let pause = pause.map(Duration::from_micros);
            let threads = 1..=number(3).max(1) as u32;
            let threads: Vec<_> = threads
                .map(|me| thread::spawn(move || work(me, count, pause)))
                .collect();
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        }
        Some("fork") => {
            work(1, count, None);
            let mut status = 0;
            // SAFETY: There is one thread.
            unsafe {
                match libc::fork() {
                    0 => {
                        work(2, count, None);
                        exit((lost() != 0).into());
                    }
                    child => assert_eq!(libc::waitpid(child, &raw mut status, 0), child),
                }
            }
            assert_eq!(status, 0, "the child has lost records");
            CALLS.fetch_add(7 * count + 4, Ordering::Relaxed);
        }
        _ => exit(2),
    }
    println!("{} {}", CALLS.load(Ordering::Relaxed), lost());
}
