// SPDX-License-Identifier: GPL-2.0

//! Contexts that interrupt the writer, at random.

use super::machine::Machine;
use super::random_write;
use shuttle::rand::{thread_rng, Rng};
use std::cell::RefCell;
use std::sync::Arc;

/// Maximum number of contexts nested in one another.
const DEPTH: u32 = 3;

struct Cpu {
    machine: Arc<Machine>,
    depth: u32,
    left: u32,
    happened: u32,
}

shuttle::thread_local! {
    static WRITER: RefCell<Option<Cpu>> = RefCell::new(None);
}

/// Makes this thread's CPU the writer's. It is interrupted up to `left` times.
pub fn begin(machine: Arc<Machine>, left: u32) {
    let cpu = Cpu {
        machine,
        depth: 0,
        left,
        happened: 0,
    };
    WRITER.with(|writer| *writer.borrow_mut() = Some(cpu));
}

/// Ends the writer. Returns how often it was interrupted.
pub fn end() -> u32 {
    let cpu = WRITER.with(|writer| writer.borrow_mut().take());
    cpu.map_or(0, |cpu| cpu.happened)
}

/// Called before each access: an interrupt may happen.
pub fn operation() {
    let machine = WRITER.with(|writer| {
        let mut writer = writer.borrow_mut();
        let cpu = writer.as_mut()?;
        if cpu.left == 0 || cpu.depth == DEPTH || !thread_rng().gen_ratio(1, 24) {
            return None;
        }
        cpu.left -= 1;
        cpu.happened += 1;
        cpu.depth += 1;
        Some(cpu.machine.clone())
    });
    let Some(machine) = machine else {
        return;
    };
    for _ in 0..thread_rng().gen_range(1..=3) {
        machine.write(random_write());
    }
    WRITER.with(|writer| {
        if let Some(cpu) = writer.borrow_mut().as_mut() {
            cpu.depth -= 1;
        }
    });
}
