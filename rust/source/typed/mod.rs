// SPDX-License-Identifier: GPL-2.0

//! Events with a probe of their own, declared one by one.
//!
//! One file per subsystem. A declaration names the tracepoint, its arguments and the fields
//! with how each is read; the `event!` macro in [`declare`] makes the probe, the layout and the
//! description from it.

#[macro_use]
mod declare;
mod field;
mod irq;
mod module;
mod nmi;
mod sched;
mod signal;
mod task;
mod timer;

pub(crate) use declare::Declaration;

/// All of them, in the order of their ids, the most frequent first.
pub(crate) static DECLARED: &[&Declaration] = &[
    &sched::SCHED_SWITCH,
    &sched::SCHED_WAKING,
    &sched::SCHED_WAKEUP,
    &irq::IRQ_SOFTIRQ_ENTRY,
    &irq::IRQ_SOFTIRQ_EXIT,
    &irq::IRQ_SOFTIRQ_RAISE,
    &irq::IRQ_HANDLER_ENTRY,
    &irq::IRQ_HANDLER_EXIT,
    &sched::SCHED_MIGRATE_TASK,
    &sched::SCHED_STAT_RUNTIME,
    &timer::TIMER_HRTIMER_START,
    &timer::TIMER_HRTIMER_CANCEL,
    &timer::TIMER_HRTIMER_EXPIRE_ENTRY,
    &timer::TIMER_HRTIMER_EXPIRE_EXIT,
    &timer::TIMER_START,
    &timer::TIMER_CANCEL,
    &timer::TIMER_EXPIRE_ENTRY,
    &timer::TIMER_EXPIRE_EXIT,
    &timer::TIMER_INIT,
    &timer::TIMER_HRTIMER_INIT,
    &signal::SIGNAL_GENERATE,
    &signal::SIGNAL_DELIVER,
    &sched::SCHED_PROCESS_FORK,
    &sched::SCHED_WAKEUP_NEW,
    &sched::SCHED_PROCESS_EXEC,
    &sched::SCHED_PROCESS_EXIT,
    &sched::SCHED_PROCESS_FREE,
    &sched::SCHED_PROCESS_WAIT,
    &module::MODULE_LOAD,
    &module::MODULE_FREE,
    &module::MODULE_REQUEST,
    &sched::SCHED_STAT_WAIT,
    &sched::SCHED_STAT_SLEEP,
    &sched::SCHED_STAT_IOWAIT,
    &sched::SCHED_STAT_BLOCKED,
    &sched::SCHED_PI_SETPRIO,
    &timer::TIMER_ITIMER_STATE,
    &timer::TIMER_ITIMER_EXPIRE,
    &module::MODULE_GET,
    &module::MODULE_PUT,
    &nmi::NMI_HANDLER,
    &task::TASK_RENAME,
];
