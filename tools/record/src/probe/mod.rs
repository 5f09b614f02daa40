// SPDX-License-Identifier: GPL-2.0

//! Events at functions of the kernel and of programs, at tracepoints, and at probes in the code of programs: `rtrace
//! probe`, and `-k` and `-u` of `rtrace record`.

mod program;
mod resolve;
mod spec;
mod symbols;
mod types;
mod usdt;

pub use usdt::{Argument, FileProbes, Semaphore, Site};

use crate::place::Place;
use crate::session::leftovers;
use crate::session::maker::Maker;
use anyhow::{anyhow, bail, Context};
use control::{OnClose, Tracer};
use resolve::Refusal;
use rtrace_input::glob;
use spec::{Spec, TRACEPOINT, USDT};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::slice;
use symbols::Symbols;
use terminal::say;

/// The subsystem of events that `rtrace probe` defines.
const SUBSYSTEM: &str = "probe";

/// Folder with the kernel's descriptions of its types.
const TYPES: &str = "/sys/kernel/btf";

/// Events of one recording. Dropping this deletes them, as does the end of the process.
pub struct Probes<'t> {
    tracer: &'t Tracer,
    subsystem: String,
    /// The files with probes, each with its device and inode.
    files: BTreeMap<PathBuf, (u64, u64)>,
    _on_close: OnClose,
}

/// The device and the inode of a file.
fn identity(file: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(file).ok()?;
    Some((found.dev(), found.ino()))
}

impl<'t> Probes<'t> {
    /// Defines one event for each specification, all or none, in the subsystem of `maker`, which is this process.
    /// Deletes the events of makers that were killed.
    pub fn define(tracer: &'t Tracer, specs: &[String], maker: &Maker) -> anyhow::Result<Self> {
        // These sessions may record the events.
        leftovers::remove_sessions(tracer, maker)?;
        leftovers::remove_events(tracer, maker)?;
        let subsystem = maker.subsystem();
        // Before the definition: no other process defines events in this subsystem.
        let mut on_close = tracer.on_close()?;
        on_close.events(&subsystem)?;
        let lines = define(tracer, &subsystem, specs)?;
        let files = lines.iter().filter_map(|line| {
            let file = usdt::file(line)?;
            Some((file.to_owned(), identity(file)?))
        });
        let files = files.collect();
        Ok(Self {
            tracer,
            subsystem,
            files,
            _on_close: on_close,
        })
    }
}

impl Drop for Probes<'_> {
    fn drop(&mut self) {
        // The probes stay at the file that was there when they were defined. A path through a process ends with it.
        for (file, before) in &self.files {
            let now = identity(file);
            if now != Some(*before) && (now.is_some() || !file.starts_with("/proc")) {
                say(format_args!(
                    "{} was replaced or removed during the recording: programs that started later ran without its probes",
                    file.display()
                ));
            }
        }
        let removed = self.tracer.dynamic_events().and_then(|events| {
            let own = events
                .iter()
                .filter(|event| event.subsystem == self.subsystem);
            let names: Vec<_> = own.map(ToString::to_string).collect();
            self.tracer.undefine(&names)
        });
        if let Err(error) = removed {
            say(format_args!(
                "the events of -k could not be deleted: {error}"
            ));
        }
    }
}

/// The name of the event that a specification defines. `None` if the specification is wrong.
pub fn event_name(spec: &str) -> Option<String> {
    Some(resolve::event_name(&Spec::parse(spec).ok()?))
}

/// The specification of a probe in the code of a program, for [`Probes::define`]: `TARGET:[PROVIDER:]NAME(...)` with an
/// optional name of the event.
pub fn in_program(text: &str) -> String {
    match text.split_once('=') {
        Some((event, probe)) if !event.contains([':', '(', '/']) => {
            format!("{event}={USDT}{}", probe.trim_start())
        }
        _ => format!("{USDT}{}", text.trim_start()),
    }
}

/// The probes in the code of a file, or of the files that processes execute.
pub fn in_programs(target: &str) -> anyhow::Result<Vec<FileProbes>> {
    usdt::list(target)
}

/// Defines events that exist until they are deleted. Returns the lines for `dynamic_events`.
pub fn add(tracer: &Tracer, specs: &[String]) -> anyhow::Result<Vec<String>> {
    define(tracer, SUBSYSTEM, specs)
}

/// Functions of the kernel and its modules whose names match a pattern. If the pattern begins with [`TRACEPOINT`], the
/// kernel's tracepoints.
pub fn functions(place: &Place, pattern: &str) -> anyhow::Result<Vec<String>> {
    let functions = match pattern.strip_prefix(TRACEPOINT) {
        Some(pattern) => types::tracepoints(Path::new(TYPES), |name| glob::matches(pattern, name))?,
        None => {
            let symbols = symbols(place.tracer().ok().as_ref());
            let functions =
                types::functions(Path::new(TYPES), |name| glob::matches(pattern, name))?;
            let functions = functions.iter();
            functions.flat_map(|shown| named(shown, &symbols)).collect()
        }
    };
    if functions.is_empty() {
        bail!("no function of the kernel's types matches `{pattern}`");
    }
    Ok(functions)
}

/// Deletes events: by `SUBSYSTEM:EVENT`, or by the name of an event that [`add`] has defined.
pub fn delete(tracer: &Tracer, names: &[String]) -> anyhow::Result<()> {
    let whole = |name: &String| match name.split_once([':', '/']) {
        Some((subsystem, event)) => format!("{subsystem}/{event}"),
        None => format!("{SUBSYSTEM}/{name}"),
    };
    let names: Vec<_> = names.iter().map(whole).collect();
    Ok(tracer.undefine(&names)?)
}

/// A function that is shown as `MODULE:NAME(...)`, once for each name under which it can be probed.
fn named(shown: &str, symbols: &Symbols) -> Vec<String> {
    let (head, rest) = shown.split_once('(').unwrap_or((shown, ""));
    let (module, name) = head.rsplit_once(':').unwrap_or(("", head));
    let colon = if module.is_empty() { "" } else { ":" };
    let names = symbols.of(name).into_iter();
    names
        .map(|name| format!("{module}{colon}{name}({rest}"))
        .collect()
}

/// The functions that can be probed, as far as they are known.
fn symbols(tracer: Option<&Tracer>) -> Symbols {
    let debugfs = tracer.map_or(Path::new(control::DEBUGFS), Tracer::debugfs);
    Symbols::read(debugfs)
}

/// Defines an event for each specification. Returns the lines for `dynamic_events`. If one line is refused, the error
/// names the specifications that would work.
fn define(tracer: &Tracer, subsystem: &str, specs: &[String]) -> anyhow::Result<Vec<String>> {
    let lines = specs.iter().map(|text| line(text, subsystem));
    let lines: anyhow::Result<Vec<_>> = lines.collect();
    let defined = lines.and_then(|lines| {
        tracer.define(&lines)?;
        Ok(lines)
    });
    let error = match defined {
        Ok(lines) => return Ok(lines),
        Err(error) => error,
    };
    let (mut fine, mut wrong) = (Vec::new(), Vec::new());
    for text in specs {
        match alone(tracer, subsystem, text) {
            Ok(()) => fine.push(text.as_str()),
            Err(error) => wrong.push(error),
        }
    }
    if wrong.is_empty() {
        return Err(error);
    }
    let wrong: Vec<_> = wrong.iter().map(|error| format!("{error:#}")).collect();
    let wrong = wrong.join("\n");
    if fine.is_empty() {
        bail!(wrong);
    }
    let fine: Vec<_> = fine.iter().map(|text| format!("`{text}`")).collect();
    bail!(
        "{wrong}\nno event was defined; these are valid: {}",
        fine.join(", ")
    );
}

/// Checks whether the kernel accepts a specification: defines the event and deletes it at once.
fn alone(tracer: &Tracer, subsystem: &str, text: &str) -> anyhow::Result<()> {
    let line = line(text, subsystem)?;
    let function = Spec::parse(text).ok();
    let function = function.filter(Spec::is_in_kernel);
    let advice = function.and_then(|spec| {
        let name = spec.function().rsplit(':').next()?;
        symbols(Some(tracer)).advice(name)
    });
    let defined = tracer.define(slice::from_ref(&line));
    match advice {
        Some(advice) => defined.context(advice)?,
        None => defined?,
    }
    let name = line.split(' ').next().and_then(|head| head.split_once(':'));
    Ok(tracer.undefine(
        &name
            .map(|(_, name)| name.to_owned())
            .into_iter()
            .collect::<Vec<_>>(),
    )?)
}

fn line(text: &str, subsystem: &str) -> anyhow::Result<String> {
    let spec = Spec::parse(text).map_err(Refusal::Wrong);
    let line = spec.and_then(|spec| resolve::line(&spec, subsystem, Path::new(TYPES)));
    match line {
        Ok(line) => Ok(line),
        Err(Refusal::Wrong(error)) => {
            Err(anyhow!("this cannot be an event\n{}", error.shown(text)))
        }
        Err(Refusal::Types(error)) => bail!("`{text}`: {error:#}"),
    }
}
