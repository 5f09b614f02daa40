// SPDX-License-Identifier: GPL-2.0

//! The entries of a session's maps, live and beside a trace.

use crate::beside::{Lines, MAPS};
use rtrace_input::map::{LinePart, MapDefinition, MapLine};
use std::cmp::Reverse;
use std::collections::btree_map::{BTreeMap, Entry};
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

/// The name of the key that is the user's call stack.
pub const USER_STACK: &str = "ustack";

/// Whether the map that this line of `set_map` defines has the key [`USER_STACK`].
pub fn has_user_stack(line: &str) -> bool {
    match MapLine::parse(line.trim()) {
        Ok(MapLine::Define(map)) => items(map.keys).any(|key| key == USER_STACK),
        _ => false,
    }
}

impl MapTable {
    /// The table of a map that has counted nothing.
    pub fn empty(line: &str, definition: &MapDefinition<'_>) -> Self {
        let keys: Vec<_> = items(definition.keys).collect();
        let columns = definition.columns.iter().flatten();
        let columns = columns.map(|(kind, part)| format!("{}({})", kind.name(), part.text));
        let columns: Vec<_> = [COUNT.to_owned()].into_iter().chain(columns).collect();
        let is_stack = |key: &String| key == STACK || key == USER_STACK;
        Self {
            name: definition.name.to_owned(),
            line: line.to_owned(),
            hist: definition.hist.map(|part| part.text.to_owned()),
            rows: Vec::new(),
            overflow: vec![0; columns.len()],
            lacking: 0,
            unpaired: definition.begins.map(|_| Unpaired::default()),
            stackless: keys.iter().any(is_stack).then_some(0),
            keys,
            columns,
        }
    }

    /// The user's call stacks in the keys whose functions have no names yet.
    pub fn user_stacks(&self) -> impl Iterator<Item = &UserStack> {
        let keys = self.rows.iter().flat_map(|row| &row.keys);
        keys.filter_map(|key| match key {
            MapKey::UserStack(stack) => Some(stack),
            MapKey::Number(_) | MapKey::Text(_) => None,
        })
    }

    /// Gives names to the functions of the user's call stacks: `name` returns them as a text, in the form of the kernel's
    /// stacks.
    pub fn name_user_stacks(&mut self, mut name: impl FnMut(&UserStack) -> String) {
        self.name_keys(|_, key| match key {
            MapKey::UserStack(stack) => Some(name(stack)),
            MapKey::Number(_) | MapKey::Text(_) => None,
        });
    }

    /// Replaces keys by texts: `name` gets the number of the key's column and the key. Rows that then have the same keys
    /// become one row.
    pub fn name_keys(&mut self, mut name: impl FnMut(usize, &MapKey) -> Option<String>) {
        let mut rows: BTreeMap<_, Vec<i128>> = BTreeMap::new();
        for MapRow {
            mut keys,
            bucket,
            numbers,
        } in std::mem::take(&mut self.rows)
        {
            for (place, key) in keys.iter_mut().enumerate() {
                if let Some(name) = name(place, key) {
                    *key = MapKey::Text(name);
                }
            }
            match rows.entry((keys, bucket)) {
                Entry::Vacant(entry) => drop(entry.insert(numbers)),
                Entry::Occupied(mut known) => {
                    let known = known.get_mut().iter_mut().zip(&self.columns);
                    for ((known, column), number) in known.zip(numbers) {
                        *known = joined(column, *known, number);
                    }
                }
            }
        }
        let rows = rows.into_iter();
        let rows = rows.map(|((keys, bucket), numbers)| MapRow {
            keys,
            bucket,
            numbers,
        });
        self.rows = rows.collect();
        self.rows
            .sort_by_key(|row| Reverse(row.numbers.first().copied()));
    }
}

/// The number in a column for two rows together.
fn joined(column: &str, one: i128, other: i128) -> i128 {
    if column.starts_with("min(") {
        one.min(other)
    } else if column.starts_with("max(") {
        one.max(other)
    } else {
        // As in the kernel's numbers.
        (one + other).clamp(i64::MIN.into(), u64::MAX.into())
    }
}

/// Begins and ends of durations without the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MapKey {
    /// A number.
    Number(i128),
    /// A text, or a number that is not written in decimal.
    Text(String),
    /// A user's call stack whose functions have no names yet.
    UserStack(UserStack),
}

/// A user's call stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserStack {
    /// The process.
    pub pid: u32,
    /// The reason why it ends, as in a trace.
    pub end: u8,
    /// The innermost address, then the addresses to which the functions return.
    pub addresses: Vec<u64>,
}

impl UserStack {
    /// Parses `PID:END:ADDRESS;ADDRESS...`.
    fn parse(word: &str) -> Option<Self> {
        let (pid, rest) = word.split_once(':')?;
        let (end, addresses) = rest.split_once(':')?;
        let address = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
        let addresses = addresses.split(';').filter(|word| !word.is_empty());
        Some(Self {
            pid: pid.parse().ok()?,
            end: end.parse().ok()?,
            addresses: addresses.map(address).collect::<Option<_>>()?,
        })
    }
}

impl std::fmt::Display for UserStack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:", self.pid, self.end)?;
        for (place, address) in self.addresses.iter().enumerate() {
            let before = if place == 0 { "" } else { ";" };
            write!(f, "{before}{address:#x}")?;
        }
        Ok(())
    }
}

impl std::fmt::Display for MapKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::UserStack(stack) => write!(f, "{stack}"),
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
    let mut table = MapTable::empty(line, &definition);
    let (keys, hist, columns) = (&table.keys, &table.hist, &table.columns);

    let overflow = lines.head()?.strip_prefix("overflow ");
    let overflow = overflow.and_then(|words| numbers(words.split(' '), columns.len()));
    let overflow = overflow.ok_or_else(|| lines.wrong("expected `overflow` and its numbers"))?;
    table.lacking = counter(lines, "lacking")?;
    if let Some(unpaired) = &mut table.unpaired {
        unpaired.unmatched = counter(lines, "unmatched")?;
        unpaired.repeated = counter(lines, "repeated")?;
        unpaired.dropped = counter(lines, "dropped")?;
    }
    if let Some(stackless) = &mut table.stackless {
        *stackless = counter(lines, "stackless")?;
    }
    let heading = keys.iter().chain(hist).chain(columns);
    let heading = heading.map(String::as_str).collect::<Vec<_>>().join(" ");
    if lines.head()? != heading {
        return Err(lines.wrong(format!("expected the names `{heading}`")));
    }
    let mut rows = Vec::new();
    loop {
        match lines.head()? {
            "" => break,
            line => match row(line, keys, hist.is_some(), columns.len()) {
                Some(row) => rows.push(row),
                None => return Err(lines.wrong(format!("expected an entry of `{heading}`"))),
            },
        }
    }
    (table.overflow, table.rows) = (overflow, rows);
    Ok(table)
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

fn row(line: &str, keys: &[String], has_bucket: bool, columns: usize) -> Option<MapRow> {
    let mut words = line.split(' ');
    let of_keys = keys.iter().zip(words.by_ref());
    let of_keys = of_keys.map(|(name, word)| match (name.as_str(), word) {
        (USER_STACK, "-") => key(word),
        (USER_STACK, _) => UserStack::parse(word).map(MapKey::UserStack),
        _ => key(word),
    });
    let of_keys: Vec<_> = of_keys.collect::<Option<_>>()?;
    let bucket = match has_bucket {
        true => {
            let (first, last) = words.next()?.split_once("..")?;
            Some((number(first)?, number(last)?))
        }
        false => None,
    };
    let numbers = numbers(words, columns)?;
    (of_keys.len() == keys.len()).then_some(MapRow {
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
    fn user_stacks_get_names() {
        let text = "\
map u e by ustack,comm sum(n) min(n) max(n)
overflow 0 0 0 0
lacking 0
stackless 1
ustack comm count sum(n) min(n) max(n)
12:0:0x10;0x2a \"a\" 3 9 2 4
13:0:0x10;0x2a \"a\" 4 8 1 3
12:2:0x10 \"a\" 2 3 1 2
- \"b\" 1 1 1 1

";
        let mut tables = parse(text).unwrap();
        let table = &mut tables[0];
        let stacks: Vec<_> = table.user_stacks().cloned().collect();
        let stack = UserStack {
            pid: 12,
            end: 2,
            addresses: vec![0x10],
        };
        assert_eq!((stacks.len(), &stacks[2]), (3, &stack));
        assert_eq!(table.rows[0].keys[0].to_string(), "12:0:0x10;0x2a");
        assert_eq!(table.stackless, Some(1));
        // Two processes of one program, and a stack that is cut.
        table.name_user_stacks(|stack| format!("f{}", stack.addresses.len()));
        let row = |stack: &str, comm: &str, numbers: [i128; 4]| MapRow {
            keys: [stack, comm].map(|key| MapKey::Text(key.to_owned())).into(),
            bucket: None,
            numbers: numbers.into(),
        };
        let rows = [
            row("f2", "a", [7, 17, 1, 4]),
            row("f1", "a", [2, 3, 1, 2]),
            row("-", "b", [1, 1, 1, 1]),
        ];
        assert_eq!(table.rows, rows);
        assert_eq!(table.user_stacks().count(), 0);
        for wrong in [
            "x",
            "12:0x10",
            "12:0:10",
            "12:300:0x10",
            "-1:0:0x10",
            "1:0:0x10;g",
        ] {
            let row = format!("{wrong} 1\n\n");
            let head = "map u e by ustack\noverflow 0\nlacking 0\nstackless 0\nustack count\n";
            assert!(parse(&format!("{head}{row}")).is_err(), "{wrong}");
        }
        assert!(has_user_stack("m a:b by comm,ustack if x == 1"));
        assert!(!has_user_stack("m a:b by kstack if ustack == 1"));
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
