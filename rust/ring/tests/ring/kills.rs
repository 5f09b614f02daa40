// SPDX-License-Identifier: GPL-2.0

//! Which of the checks here finds which fault.

use crate::faults::{self, Kill, Suite};
use crate::nested::one;
use crate::{directed, lifecycle};
use rtrace_ring::fault::Fault;

/// A fault that the nested search finds, in one scenario and mode, with so many interruptions.
macro_rules! nested {
    ($fault:ident, $scenario:literal, $mode:ident, $depth:literal, $message:literal) => {
        Kill {
            fault: Fault::$fault,
            with: &[],
            check: concat!("nested, ", $scenario, ", ", stringify!($mode), ", ", $depth),
            run: || one($scenario, rtrace_ring::Mode::$mode, $depth),
            message: $message,
        }
    };
}

/// A fault that a test finds.
macro_rules! directed {
    ($fault:ident, $module:ident::$test:ident, $message:literal) => {
        Kill {
            fault: Fault::$fault,
            with: &[],
            check: concat!(stringify!($module), "::", stringify!($test)),
            run: $module::$test,
            message: $message,
        }
    };
}

#[test]
#[rustfmt::skip]
fn each_fault_is_found() {
    faults::test(Suite::Ring, &[
        nested!(ProducedCount, "begin", Discard, 1, "a packet has the records that were committed in it"),
        nested!(ProducedCount, "full", Overwrite, 1, "a packet has the records that were committed in it"),
        nested!(UnsignedCount, "full", Overwrite, 1, "nobody below keeps a sub-buffer from being complete"),
        nested!(AddThenLoad, "begin", Discard, 1, "a packet is delivered twice"),
        nested!(AddThenLoad, "full", Overwrite, 1, "a packet is delivered twice"),
        nested!(NoEquation3, "full", Overwrite, 1, "more is committed than was reserved"),
        nested!(NoRetest, "begin", Discard, 1, "nobody below keeps a sub-buffer from being complete"),
        nested!(NoWriterCheck, "reader", Overwrite, 2, "is torn"),
        nested!(NoTagCheck, "reader", Overwrite, 1, "the packet is the one at that position"),
        nested!(NarrowTag, "reader", Overwrite, 1, "the packet is the one at that position"),
        nested!(SeqBeforeFlag, "begin", Overwrite, 1, "a record that nobody read is counted as overwritten"),
        nested!(HoldByStore, "full", Overwrite, 1, "wrote into the reader's memory"),
        nested!(OnlyOpenerHolds, "full", Overwrite, 2, "is torn"),
        nested!(PushByStore, "reader", Overwrite, 2, "nobody is there to be busy"),
        nested!(PushWithoutRetest, "full", Overwrite, 1, "a record that nobody read is counted as overwritten"),
        nested!(PushOnce, "full", Overwrite, 1, "nobody is there to be busy"),
        nested!(TimeOutsideLoop, "begin", Discard, 1, "times go back in a packet"),
        nested!(LateEndTime, "begin", Discard, 2, "times go back between packets"),
        nested!(LateLosses, "begin", Overwrite, 1, "the losses are not cumulative"),
        directed!(SwitchOfEmpty, directed::switch_of_an_empty_buffer_does_nothing, "a packet of nothing"),
        directed!(FullBeforeTooLarge, directed::too_large_is_not_called_full, "it never fits"),
        directed!(OneWayExchange, lifecycle::what_was_held_can_be_read_again, "what was held is given back"),
        nested!(NoExchange, "full and held", Overwrite, 1, "wrote into the reader's memory"),
        nested!(PollByEquation4, "begin", Discard, 1, "poll says that there is a packet, get does not"),
    ]);
}

/// What is tested above is tested: a table that is wrong does not pass.
#[test]
fn a_wrong_table_is_found() {
    let right = || {
        nested!(
            TimeOutsideLoop,
            "begin",
            Discard,
            1,
            "times go back in a packet"
        )
    };
    let wrong_of = |kill: Kill| {
        let mut wrong = faults::problems(Suite::Ring, &[kill]);
        wrong.retain(|what| !what.starts_with("nothing looks for"));
        wrong
    };
    assert_eq!(wrong_of(right()), [""; 0]);

    let survives = Kill {
        run: || (),
        ..right()
    };
    let found = wrong_of(survives);
    assert!(found[0].contains("TimeOutsideLoop survives"), "{found:?}");

    let another = Kill {
        message: "something else",
        ..right()
    };
    let found = wrong_of(another);
    assert!(found[0].contains("for another reason"), "{found:?}");

    let vacuous = Kill {
        run: || panic!("times go back in a packet"),
        ..right()
    };
    let found = wrong_of(vacuous);
    assert!(found[0].contains("fails without"), "{found:?}");

    let found = faults::problems(Suite::Ring, &[right()]);
    assert_eq!(found.len() + 1, faults::of(Suite::Ring).count());
}
