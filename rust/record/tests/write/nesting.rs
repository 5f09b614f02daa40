// SPDX-License-Identifier: GPL-2.0

//! Which contexts may record while others of the CPU do: an interruption may, a probe that fires
//! itself may not.

use super::platform::{at_level, level, preemption_is_disabled};
use super::Trace;
use rtrace_abi::header::Layout;
use rtrace_record::clock::TraceClock;
use rtrace_record::format::CompactTsc;
use rtrace_record::gate::Level::{self, Interrupt, Nmi, Softirq, Thread};
use rtrace_record::header::RecordLabel;
use rtrace_ring::lost::Lost;
use rtrace_ring::Mode;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Next step of the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A context of this level fires. If the level is that of the running context, the probe fires
    /// itself.
    Fire(Level),
    /// The latest record is complete.
    Done,
}

const STEPS: [Step; 6] = [
    Step::Done,
    Step::Fire(Thread),
    Step::Fire(Softirq),
    Step::Fire(Interrupt),
    Step::Fire(Nmi(0)),
    Step::Fire(Nmi(1)),
];

/// The expected records, by the documented rule.
#[derive(Default)]
struct Expected {
    /// Levels of the records being written.
    inside: Vec<Level>,
    /// Numbers of the admitted records.
    recorded: Vec<u32>,
    nested: u64,
}

impl Expected {
    /// Returns whether the context that fires as `number` records.
    fn fire(&mut self, level: Level, number: u32) -> bool {
        let recursion = match self.inside[..] {
            [] => false,
            // The gate does not store whether the outermost context was interrupted. One case is
            // certain: a thread interrupts no context.
            [_] => level == Thread,
            [.., _, latest] => level == latest,
        };
        if recursion {
            self.nested += 1;
        } else {
            self.inside.push(level);
            self.recorded.push(number);
        }
        !recursion
    }
}

struct Run {
    trace: Trace,
    steps: RefCell<VecDeque<Step>>,
    number: Cell<u32>,
    expected: RefCell<Expected>,
}

impl Run {
    fn new() -> Self {
        Self {
            trace: Trace::new(Mode::Discard, TraceClock::tsc()),
            steps: RefCell::default(),
            number: Cell::new(0),
            expected: RefCell::default(),
        }
    }

    /// Runs these steps, and then ends the records that were begun.
    fn take(&self, steps: &[Step]) {
        self.steps.borrow_mut().extend(steps);
        while !self.steps.borrow().is_empty() {
            self.go_on();
        }
        assert!(!preemption_is_disabled());
    }

    /// Runs steps until the current record is complete.
    fn go_on(&self) {
        loop {
            let step = self.steps.borrow_mut().pop_front();
            match step {
                Some(Step::Fire(level)) => at_level(level, || self.fire()),
                Some(Step::Done) | None => break,
            }
        }
    }

    fn fire(&self) {
        let number = self.number.replace(self.number.get() + 1);
        let let_in = self.expected.borrow_mut().fire(level(), number);
        let written = Cell::new(false);
        let label = RecordLabel::in_layout(1, Layout::Compact);
        self.trace.record_with::<CompactTsc>(&label, number, || {
            written.set(true);
            self.go_on();
        });
        assert_eq!(written.get(), let_in, "number {number}, at {:?}", level());
        if let_in {
            self.expected.borrow_mut().inside.pop();
        }
    }

    /// Compares the trace with the expected records.
    fn finish(self) {
        let Expected {
            inside,
            recorded,
            nested,
        } = self.expected.into_inner();
        assert!(inside.is_empty());
        let lost = self.trace.buffer.ring().lost();
        assert_eq!((lost.get(Lost::Nested), lost.discarded()), (nested, nested));
        self.trace.buffer.flush();
        let [packet] = &self.trace.packets()[..] else {
            panic!("not one packet");
        };
        let numbers = packet.content.chunks(8).map(|record| {
            let number = record[4..].try_into().expect("a whole record");
            u32::from_le_bytes(number)
        });
        assert_eq!(numbers.collect::<Vec<_>>(), recorded);
    }
}

/// Returns whether a CPU can run these steps. No record ends that was not begun, and no context is
/// interrupted by one that may not interrupt it. A refused context leaves at once.
fn can_be(steps: &[Step]) -> bool {
    let mut expected = Expected::default();
    steps.iter().all(|&step| match step {
        Step::Done => expected.inside.pop().is_some(),
        Step::Fire(level) => {
            let can_be = expected.inside.last().is_none_or(|&latest| level >= latest);
            expected.fire(level, 0);
            can_be
        }
    })
}

const EACH_LEVEL: [Step; 5] = [
    Step::Fire(Thread),
    Step::Fire(Softirq),
    Step::Fire(Interrupt),
    Step::Fire(Nmi(0)),
    Step::Fire(Nmi(1)),
];

#[test]
fn each_level_may_interrupt_those_below() {
    let run = Run::new();
    run.take(&EACH_LEVEL);
    assert_eq!(run.expected.borrow().recorded.len(), EACH_LEVEL.len());
    run.finish();
}

#[test]
fn a_thread_that_fires_itself_is_refused_at_once() {
    let run = Run::new();
    run.take(&[Step::Fire(Thread); 4]);
    assert_eq!(run.expected.borrow().nested, 3);
    run.finish();
}

#[test]
fn an_interruption_that_fires_itself_is_refused_at_once() {
    for level in [Softirq, Interrupt, Nmi(0), Nmi(1)] {
        let run = Run::new();
        run.take(&[
            Step::Fire(Thread),
            Step::Fire(level),
            Step::Fire(level),
            Step::Fire(level),
        ]);
        assert_eq!(run.expected.borrow().nested, 2);
        run.finish();
    }
}

#[test]
fn an_outermost_that_is_no_thread_fires_itself_once() {
    for level in [Softirq, Interrupt, Nmi(0), Nmi(1)] {
        let run = Run::new();
        run.take(&[Step::Fire(level); 4]);
        assert_eq!(run.expected.borrow().nested, 2);
        run.finish();
    }
}

#[test]
fn whatever_comes_is_recorded_or_counted() {
    const LENGTH: usize = 7;
    let mut runs = 0;
    let mut steps = vec![Vec::new()];
    while let Some(taken) = steps.pop() {
        let run = Run::new();
        run.take(&taken);
        // The state is that of the beginning.
        let before = run.expected.borrow().nested;
        run.take(&EACH_LEVEL);
        assert_eq!(run.expected.borrow().nested, before, "after {taken:?}");
        run.finish();
        runs += 1;
        if taken.len() < LENGTH {
            let next = STEPS.map(|step| [&taken[..], &[step]].concat());
            steps.extend(next.into_iter().filter(|steps| can_be(steps)));
        }
    }
    println!("{runs} sequences");
}
