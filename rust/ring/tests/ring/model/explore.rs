// SPDX-License-Identifier: GPL-2.0

//! The search: at each point nothing happens, or one of the steps possible there.
//!
//! An execution is a list of choices. The search runs it from the beginning, then changes the last
//! choice that has an untried alternative, until there is none. So it searches all executions,
//! depth first.

use super::machine::Machine;
use super::point::{arm, set_hook, Hook};
use super::Config;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// One step, of a scenario or between the steps of another context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A record of this many bytes.
    Record(u64),
    /// A record that fills the open packet to the last byte, or a packet alone.
    Fill,
    /// Enough records of the size of a sub-buffer to fill the whole buffer.
    Wrap,
    /// Closes the open packet, like the timer.
    Switch,
    /// Reads all packets.
    Drain,
    /// Gets a packet and keeps it. Does nothing if one is held.
    Get,
    /// Puts or ungets the held packet, if there is one. After a snapshot, puts one of its packets,
    /// or ungets all.
    Put,
    Unget,
    /// Takes all packets, or those that an unfinished snapshot has left. Does nothing if a packet
    /// is held.
    Snapshot,
}

/// Returns the steps that are possible at a point.
fn possible<const BITS: u32>(machine: &Machine<BITS>) -> &'static [Step] {
    use Step::{Drain, Fill, Get, Put, Record, Snapshot, Switch, Unget, Wrap};
    const NO_READER: [Step; 4] = [Record(1), Fill, Wrap, Switch];
    const NOT_HELD: [Step; 6] = [Record(1), Fill, Wrap, Switch, Drain, Get];
    const HELD: [Step; 6] = [Record(1), Fill, Wrap, Switch, Put, Unget];
    const UNFINISHED: [Step; 6] = [Record(1), Fill, Wrap, Switch, Snapshot, Unget];
    const SNAPSHOT: [Step; 6] = [Record(1), Fill, Wrap, Switch, Drain, Snapshot];
    if !machine.may_read() {
        &NO_READER
    } else if machine.has_unfinished() {
        &UNFINISHED
    } else if machine.config.snapshots && !machine.holds() {
        &SNAPSHOT
    } else if machine.holds() {
        &HELD
    } else {
        &NOT_HELD
    }
}

fn perform<const BITS: u32>(machine: &Machine<BITS>, step: Step) {
    match step {
        Step::Record(len) => {
            let _ = machine.record(len);
        }
        Step::Fill => {
            let _ = machine.record(machine.room());
        }
        Step::Wrap => {
            for _ in 0..=machine.config.count {
                let _ = machine.record(machine.whole());
            }
        }
        Step::Switch => {
            machine.switch();
        }
        Step::Drain => {
            if !machine.has_unfinished() || machine.snapshot() {
                while machine.get().is_ok() {
                    machine.put();
                }
            }
        }
        Step::Get => {
            if !machine.has_unfinished() {
                machine.check_poll();
                let _ = machine.get();
            }
        }
        Step::Snapshot => {
            if machine.has_unfinished() || !machine.holds() {
                machine.snapshot();
            }
        }
        Step::Put => {
            if machine.holds() && !machine.has_unfinished() {
                machine.put();
            }
        }
        Step::Unget => {
            if machine.holds() {
                machine.unget();
            }
        }
    }
}

/// A choice: the alternative chosen, and the number of alternatives.
struct Choice {
    chosen: usize,
    of: usize,
}

struct Search<const BITS: u32> {
    machine: Machine<BITS>,
    /// Choices of this execution; the first `next` have been made.
    choices: RefCell<Vec<Choice>>,
    next: Cell<usize>,
    /// Number of further interruptions allowed.
    budget: Cell<u32>,
    happened: RefCell<Vec<(usize, Step)>>,
}

impl<const BITS: u32> Hook for Search<BITS> {
    fn at_point(&self) {
        let possible = possible(&self.machine);
        let next = self.next.replace(self.next.get() + 1);
        let chosen = {
            let mut choices = self.choices.borrow_mut();
            if next == choices.len() {
                choices.push(Choice {
                    chosen: 0,
                    of: possible.len() + 1,
                });
            }
            assert_eq!(choices[next].of, possible.len() + 1, "not deterministic");
            choices[next].chosen
        };
        let Some(&step) = chosen.checked_sub(1).and_then(|step| possible.get(step)) else {
            return;
        };
        self.happened.borrow_mut().push((next, step));
        self.budget.set(self.budget.get() - 1);
        if self.budget.get() == 0 {
            arm(false);
        }
        perform(&self.machine, step);
    }
}

/// Prints the interruptions if the execution panics.
struct Report<'a, const BITS: u32>(&'a Search<BITS>, &'a Scenario);

impl<const BITS: u32> Drop for Report<'_, BITS> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{BITS} bits, {:?}", self.0.machine.config);
            let Scenario {
                name,
                before,
                steps,
            } = self.1;
            eprintln!("{name}: from {before:?}: {steps:?}");
            eprintln!("at points: {:?}", self.0.happened.borrow());
        }
    }
}

/// Initial state and steps of a search.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub before: &'static [Step],
    pub steps: &'static [Step],
}

impl Scenario {
    /// Returns whether a snapshot is taken in the scenario.
    pub fn has_snapshot(&self) -> bool {
        let mut steps = self.before.iter().chain(self.steps);
        steps.any(|&step| step == Step::Snapshot)
    }
}

/// Searches all executions of `scenario` with up to `budget` interruptions at its points. Returns
/// the number of executions.
pub fn explore<const BITS: u32>(config: Config, scenario: &Scenario, budget: u32) -> u64 {
    let mut executions = 0;
    let mut choices = Vec::new();
    loop {
        let search = Rc::new(Search {
            machine: Machine::<BITS>::new(config),
            choices: RefCell::new(choices),
            next: Cell::new(0),
            budget: Cell::new(budget),
            happened: RefCell::default(),
        });
        set_hook(Some(search.clone()));
        {
            let _report = Report(&search, scenario);
            for &step in scenario.before {
                perform(&search.machine, step);
            }
            arm(budget > 0);
            for &step in scenario.steps {
                perform(&search.machine, step);
            }
            arm(false);
            search.machine.check_end();
        }
        set_hook(None);
        executions += 1;

        choices = search.choices.take();
        choices.truncate(search.next.get());
        loop {
            match choices.last_mut() {
                None => return executions,
                Some(choice) if choice.chosen + 1 < choice.of => {
                    choice.chosen += 1;
                    break;
                }
                Some(_) => {
                    choices.pop();
                }
            }
        }
    }
}
