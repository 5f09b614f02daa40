// SPDX-License-Identifier: GPL-2.0

//! The entries of a session's maps, and the file of a trace that has them.

use crate::output::replace;
use rtrace_input::map::{LinePart, MapDefinition, MapLine};
use std::io;
use std::path::Path;
use system::access::Access;
use system::{regular_file, Error, Result};
use uuid::Uuid;

/// Name of the file, in the directory of the trace. Its first line names the trace. The rest is the text of the kernel's
/// `maps`.
const MAPS: &str = ".maps";

/// The file's temporary name while it is being written.
const MAPS_NEW: &str = ".maps.new";

/// Writes the text of the kernel's `maps` beside the trace `uuid` in `dir`.
pub fn save(dir: &Path, uuid: Uuid, text: &str, access: Access) -> Result<()> {
    let path = dir.join(MAPS);
    let contents = format!("trace {uuid}\n{text}");
    replace(&path, &dir.join(MAPS_NEW), contents.as_bytes(), access).map_err(Error::write(&path))
}

/// The maps beside the trace `uuid` in `dir`. Empty if it was recorded without maps.
pub fn read(dir: &Path, uuid: Uuid) -> Result<Vec<MapTable>> {
    let path = dir.join(MAPS);
    let text = match regular_file::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::read(&path)(e)),
    };
    let wrong = || Error::read(&path)(io::Error::other("expected tables of maps"));
    let (trace, text) = text.split_once('\n').ok_or_else(wrong)?;
    if trace != format!("trace {uuid}") {
        return Ok(Vec::new());
    }
    parse(text).ok_or_else(wrong)
}

/// The entries of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapTable {
    /// The map's name.
    pub name: String,
    /// The line that defines it.
    pub line: String,
    /// Names of the keys.
    pub keys: Vec<String>,
    /// The value that has a histogram, if there is one. Each row then is a bucket of a key.
    pub hist: Option<String>,
    /// Names of the numbers of each row. The first is `count`.
    pub columns: Vec<String>,
    /// The rows, the largest count first.
    pub rows: Vec<MapRow>,
    /// The numbers of the updates for which the tables had no room.
    pub overflow: Vec<i128>,
    /// Number of events that lacked a value.
    pub lacking: u64,
    /// If the map measures durations: begins and ends without the other.
    pub unpaired: Option<Unpaired>,
    /// If a key is a call stack: number of events whose stack found no room.
    pub stackless: Option<u64>,
}

/// The name of the key that is the kernel's call stack.
pub const STACK: &str = "kstack";

/// Begins and ends of durations without the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpaired {
    /// Number of ends without a begin.
    pub unmatched: u64,
    /// Number of begins that another one with the same values followed.
    pub repeated: u64,
    /// Number of begins for which there was no room.
    pub dropped: u64,
}

/// A row of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapRow {
    /// The keys.
    pub keys: Vec<MapKey>,
    /// First and last number of the bucket, if the map has a histogram.
    pub bucket: Option<(i128, i128)>,
    /// The numbers.
    pub numbers: Vec<i128>,
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MapKey {
    /// A number.
    Number(i128),
    /// A text, or a number that is not written in decimal.
    Text(String),
}

impl std::fmt::Display for MapKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Parses the text of the kernel's `maps`.
pub fn parse(text: &str) -> Option<Vec<MapTable>> {
    let blocks = text.split("\n\n").map(str::trim_ascii);
    blocks
        .filter(|block| !block.is_empty())
        .map(table)
        .collect()
}

fn table(block: &str) -> Option<MapTable> {
    let mut lines = block.lines();
    let line = lines.next()?.strip_prefix("map ")?;
    let Ok(MapLine::Define(definition)) = MapLine::parse(line) else {
        return None;
    };
    let overflow = lines.next()?.strip_prefix("overflow ")?;
    let overflow = overflow.split(' ').map(|word| word.parse().ok());
    let overflow = overflow.collect::<Option<_>>()?;
    let mut number = |name| lines.next()?.strip_prefix(name)?.trim().parse().ok();
    let lacking = number("lacking ")?;
    let unpaired = match definition.begins {
        Some(_) => Some(Unpaired {
            unmatched: number("unmatched ")?,
            repeated: number("repeated ")?,
            dropped: number("dropped ")?,
        }),
        None => None,
    };
    let keys: Vec<_> = items(definition.keys).collect();
    let stackless = match keys.iter().any(|key| key == STACK) {
        true => Some(number("stackless ")?),
        false => None,
    };
    let hist = definition.hist.map(|part| part.text.to_owned());
    let before = keys.len() + usize::from(hist.is_some());
    let columns = lines.next()?.split(' ').skip(before).map(str::to_owned);
    let columns: Vec<_> = columns.collect();
    let rows = lines.map(|line| row(line, &definition, columns.len()));
    Some(MapTable {
        name: definition.name.to_owned(),
        line: line.to_owned(),
        rows: rows.collect::<Option<_>>()?,
        keys,
        hist,
        columns,
        overflow,
        lacking,
        unpaired,
        stackless,
    })
}

fn items(part: Option<LinePart<'_>>) -> impl Iterator<Item = String> + '_ {
    let items = part.into_iter().flat_map(LinePart::items);
    items.map(|item| item.text.to_owned())
}

fn row(line: &str, definition: &MapDefinition<'_>, columns: usize) -> Option<MapRow> {
    let mut words = line.split(' ');
    let key_count = items(definition.keys).count();
    let keys = words.by_ref().take(key_count).map(key);
    let keys: Vec<_> = keys.collect::<Option<_>>()?;
    let bucket = match definition.hist {
        Some(_) => {
            let (first, last) = words.next()?.split_once("..")?;
            Some((first.parse().ok()?, last.parse().ok()?))
        }
        None => None,
    };
    let numbers = words.map(|word| word.parse().ok());
    let numbers: Vec<_> = numbers.collect::<Option<_>>()?;
    let is_complete = keys.len() == key_count && numbers.len() == columns;
    is_complete.then_some(MapRow {
        keys,
        bucket,
        numbers,
    })
}

/// Parses a key: a number, a text in quotes, or the name of an event.
fn key(word: &str) -> Option<MapKey> {
    if let Ok(number) = word.parse() {
        return Some(MapKey::Number(number));
    }
    let Some(quoted) = word.strip_prefix('"') else {
        return Some(MapKey::Text(word.to_owned()));
    };
    let mut bytes = Vec::new();
    let mut rest = quoted.strip_suffix('"')?;
    while let Some((before, escape)) = rest.split_once("\\x") {
        bytes.extend(before.bytes());
        let (digits, after) = escape.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    bytes.extend(rest.bytes());
    Some(MapKey::Text(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_maps() {
        let text = "\
map calls sched:* by comm,cpu sum(len) size 4
overflow 3 -7
lacking 2
comm cpu count sum(len)
\"a\\x20b\\xc3\\xa4\" 0 5 -1
\"\" 1 2 18446744073709551615

map one sys_enter_read
overflow 0
lacking 0
count
9

map sizes sys_exit_read by event hist(ret)
overflow 0
lacking 0
event ret count
syscall_exit_read -17..-16 4

map stacks e by kstack,comm
overflow 0
lacking 0
stackless 6
kstack comm count
f+0x2a;g \"a\" 3

map times b max(duration) from a
overflow 0 0
lacking 0
unmatched 1
repeated 2
dropped 3
count max(duration)
4 700

";
        let tables = parse(text).unwrap();
        let [calls, one, sizes, stacks, times] = tables.as_slice() else {
            panic!("{tables:?}");
        };
        assert_eq!((calls.name.as_str(), calls.lacking), ("calls", 2));
        assert_eq!(calls.keys, ["comm", "cpu"]);
        assert_eq!(calls.columns, ["count", "sum(len)"]);
        assert_eq!(calls.overflow, [3, -7]);
        let text = |text: &str| MapKey::Text(text.to_owned());
        assert_eq!(calls.rows[0].keys, [text("a bä"), MapKey::Number(0)]);
        assert_eq!(calls.rows[0].numbers, [5, -1]);
        assert_eq!(calls.rows[1].keys, [text(""), MapKey::Number(1)]);
        assert_eq!(calls.rows[1].numbers, [2, u64::MAX.into()]);
        assert_eq!((one.keys.len(), &one.rows[0].numbers), (0, &vec![9]));
        assert_eq!(sizes.hist.as_deref(), Some("ret"));
        assert_eq!(sizes.rows[0].bucket, Some((-17, -16)));
        assert_eq!(sizes.rows[0].keys, [text("syscall_exit_read")]);
        assert_eq!(
            (sizes.unpaired, &times.rows[0].numbers),
            (None, &vec![4, 700])
        );
        let unpaired = Unpaired {
            unmatched: 1,
            repeated: 2,
            dropped: 3,
        };
        assert_eq!(times.unpaired, Some(unpaired));
        assert_eq!((stacks.stackless, times.stackless), (Some(6), None));
        assert_eq!(stacks.rows[0].keys, [text("f+0x2a;g"), text("a")]);
        assert_eq!(parse(""), Some(Vec::new()));
        for wrong in [
            "x",
            "map one sys_enter_read",
            "map one sys_enter_read\noverflow 0\nlacking 0\ncount\n9 8\n",
            "map one e by cpu\noverflow 0\nlacking 0\ncpu count\n9\n",
            "map one e by comm\noverflow 0\nlacking 0\ncomm count\n\"a 9\n",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn maps_are_stored() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (Uuid::from_bytes([1; 16]), Uuid::from_bytes([2; 16]));
        assert_eq!(read(dir.path(), one).unwrap(), []);
        let text = "map one e by cpu\noverflow 0\nlacking 0\ncpu count\n0 9\n\n";
        save(dir.path(), one, text, Access::default()).unwrap();
        let maps = read(dir.path(), one).unwrap();
        assert_eq!(maps, parse(text).unwrap());
        assert_eq!(maps[0].line, "one e by cpu");
        assert_eq!(read(dir.path(), other).unwrap(), []);
        save(dir.path(), one, "map", Access::default()).unwrap();
        assert!(read(dir.path(), one).is_err());
    }
}
