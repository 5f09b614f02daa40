// SPDX-License-Identifier: GPL-2.0

//! Maps of a session: sums by key that events update, whether the session records the events or not.
//!
//! As a trigger, a map is attached from its definition until its deletion, independent of starts and stops.

mod hists;

use crate::abi::schema::Shown;
use crate::event::Event;
use crate::input::map::{LinePart, MapDefinition, MapLine};
use crate::input::pattern::Pattern;
use crate::map::bucket;
use crate::map::table::MapEntry;
use crate::probe::filter::Refusal;
use crate::probe::map::{
    Durations, Kept, KeptKeys, KeyPart, Map, MapAtEvent, MapProgram, Matched, MissedUpdate,
    PartReason, Role, Sums, WrongPart,
};
use crate::probe::Probe;
use crate::session::choice::patterns::picks;
use crate::session::Session;
use crate::source::attached::AttachedProbes;
use crate::source::probe_list::NewProbe;
use crate::sys::debugfs::text::Text;
use crate::sys::functions::names::FunctionName;
use crate::sys::hotplug::HotplugWatch;
use crate::sys::privilege::Rights;
use crate::sys::signal;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Maximum number of maps of a session.
const MAX_MAPS: usize = 64;

/// Maximum number of bytes of the tables of a session's maps, for the CPUs that are online.
const MAX_BYTES: u64 = 4 << 30;

/// Maps, in the order of their definition. The list is replaced, never changed.
pub(in crate::session) struct Maps(KVec<Arc<NamedMap>>);

/// A map that events update. The drop detaches its probes.
#[pin_data]
struct NamedMap {
    name: CString,
    /// The line that defines it.
    line: CString,
    /// The line in ftrace's syntax, if the map is a histogram of its event.
    hist: Option<CString>,
    events: KVVec<Arc<Event>>,
    /// The program of its first event. Keys and columns of all events have the same form.
    program: Arc<MapProgram>,
    map: Arc<Map>,
    /// Number of bytes of the map's tables, for the CPUs that were online at its definition.
    bytes: u64,
    /// Gives tables to CPUs that come online.
    _watch: Pin<KBox<HotplugWatch<Map>>>,
    #[pin]
    probes: Mutex<AttachedProbes>,
}

impl Maps {
    /// An empty list.
    pub(in crate::session) const NONE: Self = Self(KVec::new());

    fn find(&self, name: &str) -> Option<&Arc<NamedMap>> {
        self.0.iter().find(|map| map.name() == name)
    }

    /// These maps except the one with this name, followed by `new`.
    fn changed(&self, without: Option<&str>, new: Option<Arc<NamedMap>>) -> Result<Self> {
        let mut maps = KVec::with_capacity(self.0.len() + 1, GFP_KERNEL)?;
        let kept = self.0.iter().filter(|map| Some(map.name()) != without);
        for map in Iterator::chain(kept.cloned(), new) {
            maps.push(map, GFP_KERNEL)?;
        }
        Ok(Self(maps))
    }
}

impl Session {
    /// Defines the maps of these lines, or deletes those that lines with `!` name. On failure the lines before the
    /// wrong one have an effect. Errors: `EEXIST` if there is a map of the name, `ENOENT` if there is none to
    /// delete, `EPERM` if an event is perf's, `ENOSPC` if there are too many maps, or their tables would be too large.
    /// May sleep.
    pub(in crate::session) fn set_maps(&self, text: &str, rights: Rights) -> Result {
        for line in text.lines().map(str::trim) {
            if !line.is_empty() {
                self.set_map(line, None, rights)?;
            }
        }
        Ok(())
    }

    /// As [`set_maps`](Self::set_maps), for one line. `hist`: the line in ftrace's syntax.
    fn set_map(&self, line: &str, hist: Option<CString>, rights: Rights) -> Result {
        let parsed = MapLine::parse(line)
            .map_err(|error| self.refuse_map(line, error.at, format_args!("{}", error.reason)))?;
        let map = match parsed {
            MapLine::Define(map) => map,
            MapLine::Delete(name) => {
                let _control = self.control.lock();
                let known = self.maps();
                if known.find(name).is_none() {
                    self.refuse(fmt!("set_map: there is no map '{name}'"));
                    return Err(ENOENT);
                }
                return self.replace_maps(known.changed(Some(name), None)?);
            }
        };
        let begins = map.begins.into_iter().flat_map(LinePart::items);
        for pattern in Iterator::chain(map.events.items(), begins) {
            signal::go_on()?;
            self.ask_for("set_map", &Pattern::parse(pattern.text), rights)?;
        }
        let _control = self.control.lock();
        let known = self.maps();
        if known.find(map.name).is_some() {
            self.refuse(fmt!("set_map: there is a map '{}'", map.name));
            return Err(EEXIST);
        }
        if known.0.len() >= MAX_MAPS {
            self.refuse(fmt!(
                "set_map: the session has {MAX_MAPS} maps, which is the limit"
            ));
            return Err(ENOSPC);
        }
        let make = || {
            let new = self.make_map(line, &map, hist, rights, &known)?;
            self.replace_maps(known.changed(None, Some(new))?)
        };
        make().inspect_err(|&error| {
            if error == ENOMEM {
                self.refuse(fmt!("set_map: no memory for the map (see size)"));
            }
        })
    }

    /// Makes a map beside those that are `known`, and attaches its probes. `control` must be held.
    fn make_map(
        &self,
        line: &str,
        definition: &MapDefinition<'_>,
        hist: Option<CString>,
        rights: Rights,
        known: &Maps,
    ) -> Result<Arc<NamedMap>> {
        let wrong = |at, reason: core::fmt::Arguments<'_>| self.refuse_map(line, at, reason);
        let events = self.events_of_map(line, definition.events, rights)?;
        let begins = match definition.begins {
            Some(begins) => self.events_of_map(line, begins, rights)?,
            None => KVVec::new(),
        };
        let mut programs: KVVec<Arc<MapProgram>> = KVVec::new();
        for event in &events {
            signal::go_on()?;
            let first = begins.first().map(|begin| begin.value_names(rights));
            let program = MapProgram::new(event.value_names(rights), first, definition)
                .map_err(|error| self.refuse_part(line, event, error))?;
            if programs
                .first()
                .is_some_and(|first| !first.is_like(&program))
            {
                let (subsystem, name) = event.full_name();
                let at = definition.events.at;
                return Err(wrong(
                    at,
                    format_args!("{subsystem}:{name} has keys or values of another type"),
                ));
            }
            programs.push(Arc::new(program, GFP_KERNEL)?, GFP_KERNEL)?;
        }
        let program = programs.first().ok_or(EINVAL)?.clone();
        let shape = program.shape(definition).ok_or_else(|| {
            let at = definition.keys.map_or(0, |keys| keys.at);
            wrong(at, format_args!("the key has more than 64 bytes"))
        })?;
        let stacks = program.stacks();
        let kept = Kept {
            stacks,
            keys: program.kept_words(),
        };
        let bytes = Map::bytes(&shape, definition, kept);
        let of_all = known.0.iter().map(|map| map.bytes).sum::<u64>();
        if of_all.saturating_add(bytes) > MAX_BYTES {
            self.refuse(fmt!(
                "set_map: the map has {bytes} bytes and the others of the session {of_all}; the limit is {MAX_BYTES} (see size)"
            ));
            return Err(ENOSPC);
        }
        let durations = Durations::of(definition, kept)?;
        let map = Map::new(shape, durations, stacks, &self.shared.user_stacks)?;
        let watch = HotplugWatch::new(&self.shared.map_hotplug, map.clone())?;
        let mut probes = AttachedProbes::new(&self.sources);
        for ((place, event), program) in (0..).zip(&events).zip(&programs) {
            signal::go_on()?;
            let filter = match definition.filter {
                None => None,
                Some(LinePart { text, at }) => match event.filter(text, at, rights) {
                    Ok(filter) => Some(filter),
                    Err(Refusal::Memory) => return Err(ENOMEM),
                    Err(Refusal::Wrong(error)) => {
                        return Err(wrong(error.at, format_args!("{}", error.reason)));
                    }
                    Err(Refusal::TooLong) => {
                        let reason = "the event's records are too long for a filter";
                        return Err(wrong(at, format_args!("{reason}")));
                    }
                },
            };
            let program = program.clone();
            let role = Role::Update {
                event: place,
                program,
            };
            let at_event = MapAtEvent::new(map.clone(), role, filter);
            self.attach_map(event, at_event, &mut probes)?;
        }
        let side = definition.matched.map(|(begin, _)| begin);
        for event in &begins {
            signal::go_on()?;
            let matched = Matched::new(event.value_names(rights), side)
                .map_err(|error| self.refuse_part(line, event, error))?;
            let keys = KeptKeys::new(event.value_names(rights), definition, &program)
                .map_err(|error| self.refuse_part(line, event, error))?;
            let at_event = MapAtEvent::new(map.clone(), Role::Begin(matched, keys), None);
            self.attach_map(event, at_event, &mut probes)?;
        }
        let name = CString::try_from_fmt(fmt!("{}", definition.name))?;
        let line = CString::try_from_fmt(fmt!("{}", format_args!("{definition}")))?;
        let named = pin_init!(NamedMap {
            name,
            line,
            hist,
            events,
            program,
            map,
            bytes,
            _watch: watch,
            probes <- new_mutex!(probes),
        });
        Arc::pin_init(named, GFP_KERNEL)
    }

    /// The events that patterns of a line match.
    fn events_of_map(
        &self,
        line: &str,
        patterns: LinePart<'_>,
        rights: Rights,
    ) -> Result<KVVec<Arc<Event>>> {
        let mut events: KVVec<Arc<Event>> = KVVec::new();
        for item in patterns.items() {
            let pattern = Pattern::parse(item.text);
            let is_picked = |event: &Event| picks(&pattern, event);
            let is_match = self.for_each_picked(is_picked, |event| {
                self.check_rights(event, rights)?;
                if !events.iter().any(|known| known.id() == event.id()) {
                    events.push(event.clone(), GFP_KERNEL)?;
                }
                Ok(())
            })?;
            if !is_match {
                return Err(self.refuse_map(
                    line,
                    item.at,
                    format_args!("the pattern matches no event"),
                ));
            }
        }
        Ok(events)
    }

    /// Attaches the probe of a map to an event. May sleep.
    fn attach_map(&self, event: &Event, at_event: MapAtEvent, to: &mut AttachedProbes) -> Result {
        let probe = Probe::of_map(at_event, self.tasks.clone())?;
        let new = NewProbe {
            probe: Arc::new(probe, GFP_KERNEL)?,
            channel: None,
            frequency: self.sample_frequency(),
        };
        event.source().attach(new, to)
    }

    fn refuse_part(&self, line: &str, event: &Event, wrong: WrongPart) -> Error {
        let (subsystem, name) = event.full_name();
        match wrong.reason {
            PartReason::Memory => ENOMEM,
            reason => self.refuse_map(line, wrong.at, format_args!("{subsystem}:{name}: {reason}")),
        }
    }

    fn refuse_map(&self, line: &str, at: usize, reason: core::fmt::Arguments<'_>) -> Error {
        let error = crate::input::caret::Error { at, reason };
        self.refuse(fmt!(
            "set_map: the map is wrong\n{}",
            format_args!("{}", error.shown(line))
        ))
    }

    /// Removes all maps. `control` must be held. May sleep.
    pub(in crate::session) fn clear_maps(&self) -> Result {
        if self.map_count() != 0 {
            self.replace_maps(Maps::NONE)?;
        }
        Ok(())
    }

    /// Removes all maps. May sleep.
    pub(in crate::session) fn remove_maps(&self) -> Result {
        let _control = self.control.lock();
        self.clear_maps()
    }

    fn replace_maps(&self, maps: Maps) -> Result {
        let maps = Arc::new(maps, GFP_KERNEL)?;
        let before = core::mem::replace(&mut self.state.lock().maps, maps);
        // Dropped without the lock: the drop of a map waits until no event updates it.
        drop(before);
        Ok(())
    }

    /// The probes of maps examine tasks from now on, if the session has a set of tasks. `control` must be held.
    pub(in crate::session) fn choose_tasks_of_maps(&self) {
        for map in &self.maps().0 {
            map.probes.lock().iter().for_each(Probe::choose_tasks);
        }
    }

    /// The probes of maps follow a changed set of tasks. `control` must be held.
    pub(in crate::session) fn maps_follow_tasks(&self) -> Result {
        let maps = self.maps();
        let mut maps = maps.0.iter();
        maps.try_for_each(|map| map.probes.lock().follow_tasks())
    }

    fn maps(&self) -> Arc<Maps> {
        self.state.lock().maps.clone()
    }

    /// Whether an event updates a map.
    pub(in crate::session) fn has_map(&self, event: &Event) -> bool {
        let maps = self.maps();
        let mut events = maps.0.iter().flat_map(|map| map.events.iter());
        events.any(|known| known.id() == event.id())
    }

    /// Number of maps.
    pub(in crate::session) fn map_count(&self) -> usize {
        self.maps().0.len()
    }

    /// Writes the lines that define the maps.
    pub(in crate::session) fn write_map_lines(&self, out: &mut Text) -> Result {
        for map in &self.maps().0 {
            writeln!(out, "{}", map.line.to_str()?)?;
        }
        Ok(())
    }

    /// Removes the entries of a map, or, without a name, of all maps. `ENOENT`: there is no such map. May sleep.
    pub(crate) fn empty_maps(&self, name: &str) -> Result {
        let maps = self.maps();
        if name.is_empty() {
            return maps.0.iter().try_for_each(|map| map.map.clear());
        }
        let map = maps.find(name).ok_or_else(|| {
            self.refuse(fmt!("maps: there is no map '{name}'"));
            ENOENT
        })?;
        map.map.clear()
    }

    /// Writes the entries of all maps.
    pub(crate) fn write_maps(&self, out: &mut Text) -> Result {
        for map in &self.maps().0 {
            map.write(out)?;
        }
        Ok(())
    }
}

impl NamedMap {
    fn name(&self) -> &str {
        self.name.to_str().unwrap_or("")
    }

    /// Writes the map: its line; the updates without an entry; the names of the columns; the entries, each in a
    /// line.
    fn write(&self, out: &mut Text) -> Result {
        let sums = self.map.sums()?;
        let parsed = MapLine::parse(self.line.to_str()?);
        let Ok(MapLine::Define(definition)) = parsed else {
            return Err(EINVAL);
        };
        writeln!(out, "map {}", self.line.to_str()?)?;
        out.write_str("overflow ")?;
        self.write_numbers(&sums.overflow, out)?;
        writeln!(out, "\nlacking {}", sums.missed(MissedUpdate::Lacking))?;
        if definition.begins.is_some() {
            writeln!(
                out,
                "unmatched {}\nrepeated {}\ndropped {}",
                sums.missed(MissedUpdate::Unmatched),
                sums.missed(MissedUpdate::Repeated),
                sums.missed(MissedUpdate::Dropped)
            )?;
        }
        if self.program.stacks().any() {
            writeln!(out, "stackless {}", sums.missed(MissedUpdate::Stackless))?;
        }
        for key in definition.keys.into_iter().flat_map(LinePart::items) {
            write!(out, "{} ", key.text)?;
        }
        if let Some(value) = definition.hist {
            write!(out, "{} ", value.text)?;
        }
        out.write_str("count")?;
        for (kind, value) in definition.columns.iter().flatten() {
            write!(out, " {}({})", kind.name(), value.text)?;
        }
        out.write_str("\n")?;
        for entry in &*sums.entries {
            self.write_key(&sums, entry, out)?;
            if !self.program.keys().is_empty() {
                out.write_str(" ")?;
            }
            self.write_numbers(entry, out)?;
            out.write_str("\n")?;
        }
        out.write_str("\n")?;
        Ok(())
    }

    fn write_key(&self, sums: &Sums, entry: &MapEntry, out: &mut Text) -> Result {
        let mut words = &entry.key[..];
        for (place, part) in self.program.keys().iter().enumerate() {
            if place != 0 {
                out.write_str(" ")?;
            }
            let (own, rest) = words.split_at_checked(part.words()).ok_or(EINVAL)?;
            words = rest;
            self.write_part(sums, part, own, out)?;
        }
        Ok(())
    }

    /// Writes a part of a key of these sums, which has these words.
    fn write_part(&self, sums: &Sums, part: &KeyPart, own: &[u64], out: &mut Text) -> Result {
        let number = *own.first().ok_or(EINVAL)?;
        match part {
            KeyPart::Event => {
                let event = self.events.get(number as usize).ok_or(EINVAL)?;
                out.write_str(event.name())?;
            }
            KeyPart::Stack => write_stack(sums.stack(number), out)?,
            KeyPart::UserStack => {
                let pid = *own.last().ok_or(EINVAL)?;
                write_user_stack(sums, number, pid, out)?;
            }
            KeyPart::Number(_, integer) => write_number(number, integer.shown, out)?,
            KeyPart::Bucket(of) if of.is_signed() => {
                let last = bucket::last_signed(number);
                write!(out, "{}..{}", number as i64, last as i64)?;
            }
            KeyPart::Bucket(_) => write!(out, "{number}..{}", bucket::last(number))?,
            KeyPart::Text(..) => write_text(own, out)?,
        }
        Ok(())
    }

    fn write_numbers(&self, entry: &MapEntry, out: &mut Text) -> Result {
        let count = entry.count;
        write!(out, "{count}")?;
        let columns = entry.columns.iter().take(self.map.shape().columns().len());
        for (column, stored) in columns.enumerate() {
            match self.program.number(column, *stored) {
                _ if count == 0 => out.write_str(" 0")?,
                (number, true) => write!(out, " {}", number as i64)?,
                (number, false) => write!(out, " {number}")?,
            }
        }
        Ok(())
    }
}

fn write_number(number: u64, shown: Shown, out: &mut Text) -> core::fmt::Result {
    match shown {
        Shown::Signed => write!(out, "{}", number as i64),
        Shown::Hex => write!(out, "0x{number:x}"),
        Shown::Address => write_place(number, out),
        Shown::Unsigned | Shown::Text => write!(out, "{number}"),
    }
}

/// Distance from the begin of a function to the places where ftrace calls from it.
const FTRACE_PLACE: u64 = 16;

/// Writes an address of the kernel as a place in a function: its name, and the distance unless the place is ftrace's.
/// Other addresses are 0 for a reader that may not see addresses.
fn write_place(address: u64, out: &mut Text) -> core::fmt::Result {
    let place = FunctionName::with_distance(address as usize);
    let Some((name, rest)) = place.bare().split_once('+') else {
        let shown = if out.rights().sees_addresses {
            address
        } else {
            0
        };
        return write!(out, "0x{shown:x}");
    };
    let distance = rest.split('/').next().unwrap_or(rest);
    let digits = distance.trim_start_matches("0x");
    match u64::from_str_radix(digits, 16) {
        Ok(..=FTRACE_PLACE) => out.write_str(name),
        _ => write!(out, "{name}+{distance}"),
    }
}

/// Writes a call stack: its places, the innermost first, with `;` between them; `-` if there is none.
fn write_stack(addresses: impl Iterator<Item = u64>, out: &mut Text) -> core::fmt::Result {
    let mut before = "";
    for address in addresses {
        out.write_str(before)?;
        write_place(address, out)?;
        before = ";";
    }
    out.write_str(if before.is_empty() { "-" } else { "" })
}

/// Writes the user's call stack with a name, of a process: `PID:END:` and its addresses, the innermost first, with `;`
/// between them; `-` if there is none.
fn write_user_stack(sums: &Sums, name: u64, pid: u64, out: &mut Text) -> core::fmt::Result {
    let Some(stack) = sums.user_stack(name).filter(|_| pid != 0) else {
        return out.write_str("-");
    };
    write!(out, "{pid}:{}:", stack.end)?;
    let mut before = "";
    for address in stack.addresses {
        write!(out, "{before}0x{address:x}")?;
        before = ";";
    }
    Ok(())
}

/// Writes a text up to its NUL, in quotes. White space, quotes, backslashes, control characters and bytes that are not
/// ASCII become `\xHH`.
fn write_text(words: &[u64], out: &mut Text) -> core::fmt::Result {
    out.write_str("\"")?;
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    for byte in bytes.take_while(|byte| *byte != 0) {
        match byte {
            b'"' | b'\\' => write!(out, "\\x{byte:02x}")?,
            _ if byte.is_ascii_graphic() => out.write_char(byte.into())?,
            _ => write!(out, "\\x{byte:02x}")?,
        }
    }
    out.write_str("\"")
}
