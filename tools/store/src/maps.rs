// SPDX-License-Identifier: GPL-2.0

//! The entries of a session's maps, live and beside a trace.

use crate::beside::{Lines, MAPS};
use rtrace_input::map::{LinePart, MapLine};
use std::io::BufRead;
use std::path::Path;
use system::access::Access;
use system::printing::text;
use system::Result;
use uuid::Uuid;

/// Writes the text of the kernel's `maps` beside the trace `uuid` in `dir`, after a line that names the trace.
pub fn save(dir: &Path, uuid: Uuid, text: &str, access: Access) -> Result<()> {
    MAPS.write(dir, access, |out| write!(out, "trace {uuid}\n{text}"))
}

/// The maps beside the trace `uuid` in `dir`. Empty if it was recorded without maps.
pub fn read(dir: &Path, uuid: Uuid) -> Result<Vec<MapTable>> {
    match MAPS.open(dir)? {
        Some(lines) => read_lines(lines, uuid),
        None => Ok(Vec::new()),
    }
}

/// The maps of the trace `uuid` in the file's text.
pub fn read_lines(mut lines: Lines<impl BufRead>, uuid: Uuid) -> Result<Vec<MapTable>> {
    let head = lines.head()?;
    if head == format!("trace {uuid}") {
        return tables(lines);
    }
    match head.strip_prefix("trace ") {
        Some(_) => Ok(Vec::new()),
        None => Err(lines.wrong("expected `trace UUID`")),
    }
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

/// The name of the first column.
const COUNT: &str = "count";

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
pub fn parse(text: &str) -> Result<Vec<MapTable>> {
    tables(MAPS.lines(text.as_bytes()))
}

fn tables(mut lines: Lines<impl BufRead>) -> Result<Vec<MapTable>> {
    let mut tables = Vec::new();
    while let Some(line) = lines.next_line()? {
        if !line.is_empty() {
            let line = line.to_owned();
            tables.push(table(&line, &mut lines)?);
        }
    }
    Ok(tables)
}

/// Parses the map that this line defines, up to an empty line.
fn table(line: &str, lines: &mut Lines<impl BufRead>) -> Result<MapTable> {
    let Some(line) = line.strip_prefix("map ") else {
        return Err(lines.wrong("expected `map` and its definition"));
    };
    let definition = match MapLine::parse(line) {
        Ok(MapLine::Define(definition)) => definition,
        Ok(MapLine::Delete(_)) => return Err(lines.wrong("it defines no map")),
        Err(error) => return Err(lines.wrong(format!("it defines no map: {}", error.reason))),
    };
    let keys: Vec<_> = items(definition.keys).collect();
    let hist = definition.hist.map(|part| part.text.to_owned());
    let columns = definition.columns.iter().flatten();
    let columns = columns.map(|(kind, part)| format!("{}({})", kind.name(), part.text));
    let columns: Vec<_> = [COUNT.to_owned()].into_iter().chain(columns).collect();

    let overflow = lines.head()?.strip_prefix("overflow ");
    let overflow = overflow.and_then(|words| numbers(words.split(' '), columns.len()));
    let overflow = overflow.ok_or_else(|| lines.wrong("expected `overflow` and its numbers"))?;
    let lacking = counter(lines, "lacking")?;
    let unpaired = match definition.begins {
        Some(_) => Some(Unpaired {
            unmatched: counter(lines, "unmatched")?,
            repeated: counter(lines, "repeated")?,
            dropped: counter(lines, "dropped")?,
        }),
        None => None,
    };
    let stackless = match keys.iter().any(|key| key == STACK) {
        true => Some(counter(lines, "stackless")?),
        false => None,
    };
    let heading = keys.iter().chain(&hist).chain(&columns);
    let heading = heading.map(String::as_str).collect::<Vec<_>>().join(" ");
    if lines.head()? != heading {
        return Err(lines.wrong(format!("expected the names `{heading}`")));
    }
    let mut rows = Vec::new();
    loop {
        match lines.head()? {
            "" => break,
            line => match row(line, keys.len(), hist.is_some(), columns.len()) {
                Some(row) => rows.push(row),
                None => return Err(lines.wrong(format!("expected an entry of `{heading}`"))),
            },
        }
    }
    Ok(MapTable {
        name: definition.name.to_owned(),
        line: line.to_owned(),
        rows,
        keys,
        hist,
        columns,
        overflow,
        lacking,
        unpaired,
        stackless,
    })
}

/// The number in the next line, `NAME NUMBER`.
fn counter(lines: &mut Lines<impl BufRead>, name: &str) -> Result<u64> {
    let number = lines.head()?.split_once(' ');
    let number = number.filter(|(own, _)| *own == name);
    let number = number.and_then(|(_, number)| number.trim().parse().ok());
    number.ok_or_else(|| lines.wrong(format!("expected `{name}` and a number")))
}

fn items(part: Option<LinePart<'_>>) -> impl Iterator<Item = String> + '_ {
    let items = part.into_iter().flat_map(LinePart::items);
    items.map(|item| item.text.to_owned())
}

fn row(line: &str, keys: usize, has_bucket: bool, columns: usize) -> Option<MapRow> {
    let mut words = line.split(' ');
    let of_keys = words.by_ref().take(keys).map(key);
    let of_keys: Vec<_> = of_keys.collect::<Option<_>>()?;
    let bucket = match has_bucket {
        true => {
            let (first, last) = words.next()?.split_once("..")?;
            Some((number(first)?, number(last)?))
        }
        false => None,
    };
    let numbers = numbers(words, columns)?;
    (of_keys.len() == keys).then_some(MapRow {
        keys: of_keys,
        bucket,
        numbers,
    })
}

/// The numbers in these words, of which there must be `count`.
fn numbers<'a>(words: impl Iterator<Item = &'a str>, count: usize) -> Option<Vec<i128>> {
    let numbers: Vec<_> = words.map(number).collect::<Option<_>>()?;
    (numbers.len() == count).then_some(numbers)
}

/// A number of the kernel: signed or unsigned, with 64 bits. A sum of these does not overflow.
fn number(word: &str) -> Option<i128> {
    let number = word.parse().ok()?;
    (i64::MIN.into()..=u64::MAX.into())
        .contains(&number)
        .then_some(number)
}

/// Parses a key: a number, a text in quotes, or the name of an event.
fn key(word: &str) -> Option<MapKey> {
    if let Some(number) = number(word) {
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
    Some(MapKey::Text(text(&bytes).into_owned()))
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
        assert_eq!(parse("").unwrap(), []);
        for (line, wrong) in [
            (1, "x"),
            (1, "map !one"),
            (1, "map one e by"),
            (1, "map one sys_enter_read"),
            (2, "map one e\noverflow \n"),
            (2, "map one e\noverflow 0 0\n"),
            (3, "map one e\noverflow 0\nlacking\n"),
            (3, "map one e\noverflow 0\nlacking -1\n"),
            // No columns, or others than those of the definition.
            (4, "map one e\noverflow 0\nlacking 0\n\n"),
            (4, "map one e by cpu\noverflow 0\nlacking 0\ncpu\n1\n"),
            (
                4,
                "map one e sum(a)\noverflow 0 0\nlacking 0\ncount sum(b)\n",
            ),
            (
                5,
                "map one sys_enter_read\noverflow 0\nlacking 0\ncount\n9 8\n",
            ),
            (5, "map one e by cpu\noverflow 0\nlacking 0\ncpu count\n9\n"),
            (
                5,
                "map one e by comm\noverflow 0\nlacking 0\ncomm count\n\"a 9\n",
            ),
            (
                6,
                "map one e\noverflow 0\nlacking 0\ncount\n9\n18446744073709551616\n",
            ),
        ] {
            let error = parse(wrong).unwrap_err().to_string();
            // The last line is missing where the text is shorter.
            let begins = [line, line - 1].map(|line| format!(".maps: line {line}: "));
            assert!(
                begins.iter().any(|begin| error.starts_with(begin)),
                "{wrong}: {error}"
            );
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
        let error = read(dir.path(), one).unwrap_err().to_string();
        assert!(error.contains(".maps: line 2: "), "{error}");
    }
}
