// SPDX-License-Identifier: GPL-2.0

//! `rtrace why`: the causes of waits.

use crate::args::{trace, wrong, WhyArgs};
use crate::report::{why, Output};
use analysis::choice::Part;
use analysis::why::Who;
use std::path::PathBuf;

/// Prints the causes of the waits of some threads.
pub fn explain(args: WhyArgs) -> anyhow::Result<()> {
    let (who, dir) = match (args.pid, args.who) {
        (Some(pid), dir) => (Some(Who::Process(pid)), dir.map(PathBuf::from)),
        // A single argument that is a directory is the trace.
        (None, Some(who)) if args.dir.is_none() && PathBuf::from(&who).is_dir() => {
            (None, Some(who.into()))
        }
        (None, who) => (who.map(named).transpose()?, args.dir),
    };
    let output = Output::new(args.json, args.rows, args.size.budget);
    let part = Part {
        from: args.range.from,
        to: args.range.to,
        ..Part::default()
    };
    why(&trace(dir)?, who.as_ref(), &part, &output)
}

/// The threads that a word names.
fn named(word: String) -> Result<Who, clap::Error> {
    match word.parse() {
        Ok(tid @ 1..) => Ok(Who::Thread(tid)),
        Ok(_) => Err(wrong("a thread id is above 0")),
        Err(_) => Ok(Who::Named(crate::args::comm(&word).map_err(wrong)?)),
    }
}
