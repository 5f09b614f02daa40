// SPDX-License-Identifier: GPL-2.0

//! `rtrace report`.

use crate::args::{trace, ReportArgs};
use crate::report::{self, Output};
use analysis::syscalls::By;
use analysis::Question;
use export::Target;

/// Prints a summary of a trace, or the answers to questions about it.
pub fn report(args: ReportArgs) -> anyhow::Result<()> {
    let questions = questions(&args);
    let mut choice = args.part.choice();
    if args.critical_path.is_some() {
        // The path alone ends at `to`, and needs what happened before.
        choice.part.to = None;
    }
    let output = match args.html {
        Some(file) => Output::Page(Target::named(file, args.force)),
        None if args.serve => Output::Served,
        None => Output::new(args.json, args.rows, args.size.budget),
    };
    report::report(&trace(args.dir)?, &questions, &choice, &output)
}

fn questions(args: &ReportArgs) -> Vec<Question> {
    let by = match (args.by_process, args.by_name) {
        (true, _) => By::Process,
        (_, true) => By::Name,
        _ => By::Call,
    };
    let questions = [
        args.syscalls.then_some(Question::Syscalls { by }),
        args.latency.then_some(Question::Latency),
        args.threads
            .then_some(Question::Threads { sort: args.sort }),
        args.cpu.then_some(Question::Cpu),
        args.irq.then_some(Question::Irq),
        args.io.then_some(Question::Io),
        args.locks.then_some(Question::Locks),
        args.profile.then_some(Question::Profile),
        args.maps.then_some(Question::Maps),
        args.aux.then_some(Question::Aux),
        args.critical_path.map(|tid| Question::CriticalPath {
            tid,
            to: args.part.range.to,
        }),
    ];
    questions.into_iter().flatten().collect()
}
