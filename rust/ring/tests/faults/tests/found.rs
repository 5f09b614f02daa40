// SPDX-License-Identifier: GPL-2.0

//! Each seeded fault is found by its check, for the reason named.

use rtrace_ring_faults::{of, problems, right, test, Kill, Suite};

#[test]
fn ring() {
    test(Suite::Ring);
}

#[test]
fn order() {
    test(Suite::Order);
}

#[test]
fn shuttle() {
    test(Suite::Shuttle);
}

/// W2 is a second lock: the exchange returns memory to the writer and already orders that. Without
/// the exchange, W2 is the only lock; see RelaxedRcnt.
#[test]
fn a_relaxed_rcnt_does_no_harm_where_memory_is_exchanged() {
    use right::order_tests::checks::{handover, reuse};
    use right::order_tests::outside::{with, Outside};
    use right::order_tests::platform::Policy;
    use right::ring::Mode;
    for mode in [Mode::Discard, Mode::Overwrite] {
        with(Outside::RelaxedRcnt, || {
            reuse(mode, Policy::Delivery);
            handover(mode, Policy::Delivery);
        });
    }
}

/// Tests the check above: a wrong kill does not pass.
#[test]
fn a_wrong_kill_is_found() {
    let kills = of(Suite::Ring);
    let right = *kills
        .iter()
        .find(|kill| kill.fault == "TimeOutsideLoop")
        .expect("a fault of that name");
    assert_eq!(problems(&[right]), [""; 0]);

    let survives = Kill {
        run: right.without,
        ..right
    };
    let found = problems(&[survives]);
    assert!(found[0].contains("TimeOutsideLoop survives"), "{found:?}");

    let another = Kill {
        message: "something else",
        ..right
    };
    let found = problems(&[another]);
    assert!(found[0].contains("for another reason"), "{found:?}");

    let vacuous = Kill {
        without: right.run,
        ..right
    };
    let found = problems(&[vacuous]);
    assert!(found[0].contains("fails without"), "{found:?}");
}
