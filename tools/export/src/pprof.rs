// SPDX-License-Identifier: GPL-2.0

//! `rtrace export pprof`: Google's format of profiles, which `go tool pprof` and others read. Messages and fields have
//! the names and numbers of its `profile.proto`.

use super::format::{Format, Loss, Now, Task};
use analysis::{integer, unit_of};
use ctf::{Event, Metadata};
use flate2::write::GzEncoder;
use flate2::Compression;
use prost::Message;
use std::collections::HashMap;
use std::io::{self, Write};
use symbols::{Place, Side, Stacks, Symbols};
use system::printing::Line;

/// A profile.
#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    /// Nanoseconds since the epoch.
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    /// The name of the type that is shown first.
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

/// Names, as indices into the table of strings.
#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// The innermost location is first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(int64, tag = "6")]
    build_id: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(uint64, tag = "3")]
    address: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<LineOf>,
}

/// `Line`: only the function.
#[derive(Clone, PartialEq, Message)]
struct LineOf {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// Gathers a profile. Memory grows with the number of different stacks.
pub struct Pprof {
    /// Stacks by stream class.
    stacks: Vec<Stacks>,
    symbols: Symbols,
    profile: Profile,
    strings: HashMap<String, i64>,
    /// Mappings by file and build id.
    mappings: HashMap<(String, String), u64>,
    /// Functions by mapping and name.
    functions: HashMap<(u64, String), u64>,
    /// Locations by mapping, function and address. The address is 0 if the function is known.
    locations: HashMap<(u64, u64, u64), u64>,
    /// Values by stack and thread name.
    samples: HashMap<(Vec<u64>, i64), [i64; 2]>,
    begin: u64,
    epoch: i128,
}

impl Pprof {
    /// For a trace with this description, whose samples have this unit. None if no event has a stack.
    pub fn new(metadata: &Metadata, symbols: Symbols, unit: Option<&str>) -> Option<Self> {
        let mut pprof = Self {
            stacks: Stacks::of_all(metadata)?,
            symbols,
            profile: Profile::default(),
            strings: HashMap::new(),
            mappings: HashMap::new(),
            functions: HashMap::new(),
            locations: HashMap::new(),
            samples: HashMap::new(),
            begin: 0,
            epoch: metadata.clock.since_epoch(0),
        };
        // The first string is the empty one.
        pprof.string("");
        let mut ty = |name, unit| ValueType {
            r#type: pprof.string(name),
            unit: pprof.string(unit),
        };
        let types = match unit {
            Some("nanoseconds") => [ty("samples", "count"), ty("cpu", "nanoseconds")],
            Some(unit) => [ty("samples", "count"), ty(unit, "count")],
            None => [ty("events", "count"), ty("weight", "count")],
        };
        pprof.profile.default_sample_type = types[1].r#type;
        pprof.profile.sample_type = types.to_vec();
        Some(pprof)
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(place) = self.strings.get(text) {
            return *place;
        }
        let place = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), place);
        place
    }

    fn mapping(&mut self, file: &str, build_id: &str) -> u64 {
        let key = (file.to_owned(), build_id.to_owned());
        if let Some(id) = self.mappings.get(&key) {
            return *id;
        }
        let mapping = Mapping {
            id: self.profile.mapping.len() as u64 + 1,
            filename: self.string(file),
            build_id: self.string(build_id),
            has_functions: true,
        };
        let id = mapping.id;
        self.profile.mapping.push(mapping);
        self.mappings.insert(key, id);
        id
    }

    /// Returns the location in a file: the function, if it is known, or else the address. A mapping of 0 is none.
    fn location(&mut self, mapping_id: u64, name: Option<&str>, address: u64) -> u64 {
        let function_id = name.map_or(0, |name| self.function(mapping_id, name));
        let address = if name.is_some() { 0 } else { address };
        let key = (mapping_id, function_id, address);
        if let Some(id) = self.locations.get(&key) {
            return *id;
        }
        let id = self.profile.location.len() as u64 + 1;
        let line = name.map(|_| LineOf { function_id });
        self.profile.location.push(Location {
            id,
            mapping_id,
            address,
            line: line.into_iter().collect(),
        });
        self.locations.insert(key, id);
        id
    }

    fn function(&mut self, mapping_id: u64, name: &str) -> u64 {
        let key = (mapping_id, name.to_owned());
        if let Some(id) = self.functions.get(&key) {
            return *id;
        }
        let id = self.profile.function.len() as u64 + 1;
        let string = self.string(name);
        let mapping = (mapping_id as usize).checked_sub(1);
        let mapping = mapping.and_then(|place| self.profile.mapping.get(place));
        self.profile.function.push(Function {
            id,
            name: string,
            system_name: string,
            filename: mapping.map_or(0, |mapping| mapping.filename),
        });
        self.functions.insert(key, id);
        id
    }

    /// Returns the locations of an event's stack, the innermost first.
    fn stack(&mut self, event: &Event<'_>, now: &Now<'_>) -> Vec<u64> {
        let stacks = self.stacks[event.layout.stream_id as usize];
        let mut locations = Vec::new();
        for frame in stacks.frames(event, Side::Kernel) {
            let symbol = self.symbols.kernel(now.ns, frame.code());
            let name = symbol.map(|symbol| symbol.name.clone());
            let module = symbol.and_then(|symbol| symbol.module.as_deref());
            let file = format!("[{}]", module.unwrap_or("kernel.kallsyms"));
            let mapping = self.mapping(&file, "");
            locations.push(self.location(mapping, name.as_deref(), frame.address));
        }
        for frame in stacks.frames(event, Side::User) {
            let tid = now.task.map(|task| task.tid);
            let place = tid.and_then(|tid| self.symbols.user(tid, now.ns, frame.code()));
            let inlined: Vec<_> = place.iter().flat_map(Place::inlined).collect();
            let (file, build_id, name, address) = match place {
                Some(Place {
                    file,
                    offset,
                    function,
                    ..
                }) => (
                    file.path.clone(),
                    file.build_id().map(str::to_owned),
                    function.map(|function| function.name.clone()),
                    offset,
                ),
                None => ("[unknown]".to_owned(), None, None, frame.address),
            };
            let mapping = self.mapping(&file, build_id.as_deref().unwrap_or(""));
            for inlined in &inlined {
                locations.push(self.location(mapping, Some(inlined), address));
            }
            locations.push(self.location(mapping, name.as_deref(), address));
        }
        if let Some(cut) = stacks.cut(event) {
            locations.push(self.location(0, Some(&cut), 0));
        }
        locations
    }
}

impl Format for Pprof {
    fn begin(&mut self, ns: u64, _out: &mut dyn Write) -> io::Result<()> {
        self.begin = ns;
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, now: &Now<'_>, _out: &mut dyn Write) -> io::Result<()> {
        let unit = unit_of(&event.layout.name);
        if unit.is_some() && matches!(now.task, Some(Task { tid: 0, .. })) {
            return Ok(());
        }
        let stack = self.stack(event, now);
        if stack.is_empty() {
            return Ok(());
        }
        let comm = now.task.and_then(|task| task.comm);
        let comm = comm.map_or("?".to_owned(), |comm| Line(comm).to_string());
        let comm = self.string(&comm);
        let period = event.layout.field("period").filter(|_| unit.is_some());
        let period = period.and_then(|period| integer(event.value(period)));
        let [count, weight] = self.samples.entry((stack, comm)).or_default();
        *count += 1;
        *weight = weight.saturating_add(period.unwrap_or(1));
        Ok(())
    }

    /// The format has no place for losses.
    fn loss(&mut self, _loss: &Loss, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, ns: u64, out: &mut dyn Write) -> io::Result<()> {
        let key = self.string("thread");
        let mut samples: Vec<_> = std::mem::take(&mut self.samples).into_iter().collect();
        samples.sort();
        let samples = samples.into_iter();
        self.profile.sample = samples
            .map(|((location_id, str), value)| Sample {
                location_id,
                value: value.to_vec(),
                label: vec![Label { key, str }],
            })
            .collect();
        let time = self.epoch + i128::from(self.begin);
        self.profile.time_nanos = i64::try_from(time).unwrap_or(0);
        self.profile.duration_nanos = i64::try_from(ns.saturating_sub(self.begin)).unwrap_or(0);
        let mut packed = GzEncoder::new(out, Compression::default());
        packed.write_all(&self.profile.encode_to_vec())?;
        packed.finish().map(drop)
    }
}
