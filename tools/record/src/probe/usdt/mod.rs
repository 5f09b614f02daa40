// SPDX-License-Identifier: GPL-2.0

//! Probes that programs and libraries have in their code (USDT): a note in the file says where each probe is, and where
//! its arguments are.

mod argument;
mod files;
mod notes;

pub use argument::Argument;
pub use notes::{Semaphore, Site};

use super::resolve::Refusal;
use super::spec::{error, From, Spec, Usdt, Value};
use anyhow::{anyhow, bail};
use rtrace_input::dynamic::SITES_MAX;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use terminal::say;

/// The maximum number of names in an error.
const NAMED: usize = 16;

/// The probes of a file.
#[derive(Debug, JsonSchema, Serialize)]
pub struct FileProbes {
    /// Path of the file.
    pub file: String,
    /// Its probes. A probe with several locations has a row for each.
    pub probes: Vec<Site>,
}

/// The probes of a program or library, or of all files that a process executes: a path, the name of a running program
/// or of a mapped library, or a PID.
pub fn list(target: &str) -> anyhow::Result<Vec<FileProbes>> {
    let mut found = Vec::new();
    let files = files::of(target)?;
    if files.is_empty() {
        bail!("no program or library `{target}` runs or is in $PATH: write the path of the file");
    }
    for file in files {
        let probes = match notes::sites(&file) {
            Ok(sites) => sites,
            // Of the files of a process, some may be gone, or no ELF file.
            Err(_) if !files::is_path(target) => continue,
            Err(error) => return Err(error),
        };
        if !probes.is_empty() {
            let file = file.display().to_string();
            found.push(FileProbes { file, probes });
        }
    }
    if found.is_empty() {
        bail!(
            "`{target}` has no probes: no file has a section {}",
            notes::SECTION
        );
    }
    Ok(found)
}

/// The line that defines the event in `subsystem`, for all locations of a probe.
pub fn line(
    spec: &Spec<'_>,
    usdt: &Usdt<'_>,
    subsystem: &str,
    event: &str,
) -> Result<String, Refusal> {
    if spec.results.is_some() {
        return Ok(error(spec.at, "a probe in a program's code has no result")?);
    }
    let (file, sites) = match find(usdt) {
        Ok(found) => found,
        Err(what) => return Ok(error(spec.at, format!("{what:#}"))?),
    };
    let path = file.display().to_string();
    if path.contains(char::is_whitespace) {
        return Ok(error(
            spec.at,
            format!("the path `{path}` has white space: use a link without"),
        )?);
    }
    let every = every(usdt, &sites);
    let values = match spec.arguments_given {
        true => &spec.arguments,
        false => &every,
    };
    let mut line = format!("p:{subsystem}/{event} {path}");
    for site in &sites {
        // The file has no name at the other places.
        if !line.ends_with(&path) {
            line.push(' ');
        }
        write!(line, ":{:#x}", site.offset).expect("a string grows");
        if let Some(semaphore) = &site.semaphore {
            write!(line, "({:#x})", semaphore.offset).expect("a string grows");
        }
        for value in values {
            line.push(' ');
            line.push_str(&recorded(value, site)?);
        }
    }
    Ok(line)
}

/// The file that has the probe, and its locations.
fn find(usdt: &Usdt<'_>) -> anyhow::Result<(PathBuf, Vec<Site>)> {
    let Usdt { target, .. } = usdt;
    let mut provider = usdt.provider;
    let mut candidates = files::of(target)?;
    if candidates.is_empty() && provider.is_none() {
        provider = Some(target);
        candidates = files::of_all();
    }
    let is_it = |site: &Site| {
        site.name == usdt.name && provider.is_none_or(|provider| site.provider == provider)
    };
    let mut known = Vec::new();
    let mut found = Vec::new();
    for file in candidates {
        let sites = match notes::sites(&file) {
            Ok(sites) => sites,
            Err(error) if files::is_path(target) => return Err(error),
            Err(_) => continue,
        };
        let (mut sites, others): (Vec<_>, Vec<_>) = sites.into_iter().partition(is_it);
        known.extend(others);
        if !sites.is_empty() {
            sites.sort_by_key(|site| site.offset);
            sites.dedup_by_key(|site| site.offset);
            found.push((file, sites));
        }
    }
    match found.len() {
        0 => bail!(unknown(usdt, provider, &known)),
        1 => {}
        count => {
            let files = found.iter().map(|(file, _)| file.display());
            let files: Vec<_> = files.map(|file| format!("{file}:{}", usdt.name)).collect();
            bail!("{count} files have the probe: choose {}", listed(&files));
        }
    }
    let (file, sites) = found.remove(0);
    let mut providers: Vec<_> = sites.iter().map(|site| site.provider.as_str()).collect();
    providers.sort_unstable();
    providers.dedup();
    if providers.len() > 1 {
        let name = usdt.name;
        let providers: Vec<_> = providers
            .iter()
            .map(|one| format!("{one}:{name}"))
            .collect();
        bail!(
            "several providers have the probe: choose {}",
            listed(&providers)
        );
    }
    if sites.len() > SITES_MAX {
        bail!(
            "the probe has {} locations: at most {SITES_MAX} can be recorded",
            sites.len()
        );
    }
    Ok((file, sites))
}

fn unknown(usdt: &Usdt<'_>, provider: Option<&str>, known: &[Site]) -> anyhow::Error {
    let Usdt { target, name, .. } = usdt;
    if provider == Some(target) {
        return anyhow!(
            "no running program or library has the name `{target}`, or a probe `{target}:{name}`: write the path of the file"
        );
    }
    let mut names: Vec<_> = known
        .iter()
        .map(|site| format!("{}:{}", site.provider, site.name))
        .collect();
    names.sort_unstable();
    names.dedup();
    // Similar names are more useful than the first ones.
    let is_similar = |known: &String| {
        let mut words = name.split(|c: char| !c.is_alphanumeric());
        words.any(|word| !word.is_empty() && known.contains(word))
    };
    if names.iter().any(is_similar) {
        names.retain(is_similar);
    }
    match names.is_empty() {
        true => anyhow!("`{target}` has no probe `{name}`, and no other one"),
        false => anyhow!(
            "`{target}` has no probe `{name}`: there is {}",
            listed(&names)
        ),
    }
}

/// Some names for an error.
fn listed(names: &[String]) -> String {
    let more = match names.len() > NAMED {
        true => ", ...",
        false => "",
    };
    let names = names.iter().take(NAMED).map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ") + more
}

/// All arguments that can be recorded at each location. Prints a message about the others.
fn every(usdt: &Usdt<'_>, sites: &[Site]) -> Vec<Value<'static>> {
    let least = sites.iter().map(|site| site.arguments.len()).min();
    let mut values = Vec::new();
    for number in 1..=least.unwrap_or_default().min(NAMES.len()) {
        let mut there = sites
            .iter()
            .filter_map(|site| site.arguments.get(number - 1));
        if let Some(reason) = there.find_map(|argument| argument.value.as_ref().err()) {
            say(format_args!(
                "arg{number} of {} is not recorded: {reason}",
                usdt.name
            ));
            continue;
        }
        values.push(Value {
            at: 0,
            name: None,
            from: From::Path(NAMES[number - 1], Vec::new()),
            ty: None,
        });
    }
    values
}

/// The names of arguments. The macros for probes have at most 12.
const NAMES: [&str; 12] = [
    "arg1", "arg2", "arg3", "arg4", "arg5", "arg6", "arg7", "arg8", "arg9", "arg10", "arg11",
    "arg12",
];

/// `NAME=VALUE:TYPE` of a value at a location.
fn recorded(value: &Value<'_>, site: &Site) -> Result<String, Refusal> {
    let (first, members) = match &value.from {
        From::Raw(raw) => {
            let name = value.name.map_or(String::new(), |name| format!("{name}="));
            let ty = value.ty.map_or(String::new(), |ty| format!(":{ty}"));
            return Ok(format!("{name}{raw}{ty}"));
        }
        From::Path(first, members) => (*first, members),
    };
    let name = value.name.unwrap_or(first);
    let wrong = |what: String| -> Result<String, Refusal> { Ok(error(value.at, what)?) };
    if let Some(member) = members.first() {
        return Ok(error(
            member.at,
            "the note of a probe has no types of structures: use +OFFSET(VALUE)",
        )?);
    }
    let number = first
        .strip_prefix("arg")
        .and_then(|number| number.parse().ok());
    let Some(number) = number.filter(|number: &usize| *number > 0) else {
        return wrong("the arguments of a probe are arg1, arg2, ...".to_owned());
    };
    let Some(argument) = site.arguments.get(number - 1) else {
        return wrong(match site.arguments.len() {
            0 => "the probe has no arguments".to_owned(),
            count => format!("the probe has arg1 to arg{count}"),
        });
    };
    let Argument { ty, place, .. } = argument;
    let found = match &argument.value {
        Ok(value) => value,
        Err(reason) => {
            return wrong(format!("`{first}` cannot be read from `{place}`: {reason}"));
        }
    };
    Ok(match value.ty {
        Some(ty @ ("string" | "ustring")) => match argument.pointer() {
            Ok(pointer) => format!("{name}=+0({pointer}):{ty}"),
            Err(reason) => return wrong(format!("`{first}`: {reason}")),
        },
        Some(ty) => format!("{name}={found}:{ty}"),
        None => format!("{name}={found}:{ty}"),
    })
}

/// The path of the file that a line of `dynamic_events` probes.
pub fn file(line: &str) -> Option<&Path> {
    use rtrace_input::dynamic::{Definition, PlaceBase};
    match Definition::parse(line).ok()? {
        Definition::Add(probe) => match probe.place.base {
            PlaceBase::File(file) => Some(Path::new(file)),
            _ => None,
        },
        Definition::Remove(_) => None,
    }
}
