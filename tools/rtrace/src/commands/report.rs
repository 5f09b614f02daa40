// SPDX-License-Identifier: GPL-2.0

//! `rtrace report`.

use crate::args::{trace, wrong, ReportArgs, ReportSort};
use crate::report::{self, Output};
use analysis::io::FileSort;
use analysis::syscalls::By;
use analysis::{Question, Sort};
use export::Target;

/// Prints a summary of a trace, or the answers to questions about it.
pub fn report(args: ReportArgs) -> anyhow::Result<()> {
    let questions = questions(&args)?;
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

fn questions(args: &ReportArgs) -> Result<Vec<Question>, clap::Error> {
    let (threads, files) = match args.sort {
        None => (Sort::default(), FileSort::default()),
        Some(ReportSort::Threads(sort)) if args.threads => (sort, FileSort::default()),
        Some(ReportSort::Files(sort)) if args.io => (Sort::default(), sort),
        Some(ReportSort::Threads(_)) => {
            return Err(wrong(
                "--sort running, runnable and blocked are for --threads",
            ));
        }
        Some(ReportSort::Files(_)) => {
            return Err(wrong("--sort time, reads, writes and bytes are for --io"));
        }
    };
    let by = match (args.by_process, args.by_name) {
        (true, _) => By::Process,
        (_, true) => By::Name,
        _ => By::Call,
    };
    let questions = [
        args.syscalls.then_some(Question::Syscalls { by }),
        args.latency.then_some(Question::Latency),
        args.threads.then_some(Question::Threads { sort: threads }),
        args.cpu.then_some(Question::Cpu),
        args.irq.then_some(Question::Irq),
        args.io.then_some(Question::Io { sort: files }),
        args.locks.then_some(Question::Locks),
        args.profile.then_some(Question::Profile),
        args.maps.then_some(Question::Maps),
        args.aux.then_some(Question::Aux),
        args.critical_path.map(|tid| Question::CriticalPath {
            tid,
            to: args.part.range.to,
        }),
    ];
    Ok(questions.into_iter().flatten().collect())
}
