// SPDX-License-Identifier: GPL-2.0

//! A session's `set_ftrace_filter`, `set_ftrace_notrace`, `max_graph_depth` and `graph_missed`.

use crate::session::{FunctionChoice, Session};
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, READ, READ_WRITE};
use core::fmt::Write;
use core::marker::PhantomData;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Makes them.
pub(super) fn make(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    dir.text::<Names<SetFilter>>(SetFilter::FILE, READ_WRITE, session)?;
    dir.text::<Names<SetNotrace>>(SetNotrace::FILE, READ_WRITE, session)?;
    dir.text::<MaxGraphDepth>("max_graph_depth", READ_WRITE, session)?;
    dir.text::<GraphMissed>("graph_missed", READ, session)
}

/// Writes which of them are not as they are by default.
pub(super) fn write_differences(session: &Session, out: &mut Text) -> Result {
    for (file, choice) in [
        (SetFilter::FILE, SetFilter::CHOICE),
        (SetNotrace::FILE, SetNotrace::CHOICE),
    ] {
        let functions = session.function_count(choice);
        if functions != 0 {
            writeln!(out, "{file} {functions} 0")?;
        }
    }
    let depth = session.max_graph_depth();
    if depth != 0 {
        writeln!(out, "max_graph_depth {depth} 0")?;
    }
    Ok(())
}

/// A set of functions that has a file.
trait FunctionSetFile: 'static {
    const FILE: &'static str;
    const CHOICE: FunctionChoice;
}

/// The functions that are traced, and no others.
struct SetFilter;

impl FunctionSetFile for SetFilter {
    const FILE: &'static str = "set_ftrace_filter";
    const CHOICE: FunctionChoice = FunctionChoice::Only;
}

/// Those of them that are not.
struct SetNotrace;

impl FunctionSetFile for SetNotrace {
    const FILE: &'static str = "set_ftrace_notrace";
    const CHOICE: FunctionChoice = FunctionChoice::Not;
}

struct Names<S>(PhantomData<S>);

impl<S: FunctionSetFile> TextFile for Names<S> {
    type Data = Arc<Session>;
    const ENDS_ITEM: Option<fn(u8) -> bool> = Some(|byte| byte.is_ascii_whitespace());

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.write_functions(S::CHOICE, out)
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        session.choose_functions(S::CHOICE, S::FILE, input, false)
    }

    fn replace(session: &Arc<Session>, input: &str) -> Result {
        session.choose_functions(S::CHOICE, S::FILE, input, true)
    }
}

/// How many calls in each other a graph has; 0: all.
struct MaxGraphDepth;

impl TextFile for MaxGraphDepth {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", session.max_graph_depth())?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        let input = input.trim();
        let depth = input.parse().map_err(|_| {
            session.refuse(fmt!("max_graph_depth: '{input}' is no number of calls"))
        })?;
        session.set_max_graph_depth(depth);
        Ok(())
    }
}

/// How many calls a graph lacks, for so many of their task had not returned.
struct GraphMissed;

impl TextFile for GraphMissed {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", session.graph_missed())?;
        Ok(())
    }
}
