// SPDX-License-Identifier: GPL-2.0

//! A route that is diverted leads to gates that stay closed, whatever happens to the channel's.

use super::Trace;
use rtrace_record::clock::TraceClock;
use rtrace_record::gate::{Route, Ways};
use rtrace_ring::Mode;

#[test]
fn diverted() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let route = Route::new(trace.gates.ways().clone(), Ways::closed().unwrap());
    for diverted in [false, true, false] {
        route.divert(diverted);
        let entered = route.enter();
        assert_eq!(entered.is_err(), diverted);
        if let Err(stopped) = entered {
            assert!(route.was_diverted(&stopped));
            assert!(stopped.pass().is_err());
        }
    }
}

#[test]
fn closed() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    trace.gates.close(0);
    let route = Route::new(trace.gates.ways().clone(), Ways::closed().unwrap());
    let Err(stopped) = route.enter() else {
        panic!("entered a closed gate");
    };
    assert!(!route.was_diverted(&stopped));
    assert!(stopped.pass().is_err());
}

#[test]
fn direct() {
    let trace = Trace::new(Mode::Discard, TraceClock::tsc());
    let route = Route::new(trace.gates.ways().clone(), Ways::closed().unwrap());
    route.divert(true);
    // A probe that has looked goes in all the same.
    assert!(route.direct().enter().is_ok());
}
