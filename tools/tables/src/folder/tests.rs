// SPDX-License-Identifier: GPL-2.0

//! The library's reader reads the tables back.

use super::*;
use crate::column::ColumnKind;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Row as Record;
use parquet::schema::printer::print_schema;
use std::fs::File;

const DAY: i64 = 86_400_000_000_000;

const fn integer(bits: u8, signed: bool) -> ColumnKind {
    ColumnKind::Integer { bits, signed }
}

const fn list(bits: u8, signed: bool) -> ColumnKind {
    ColumnKind::List { bits, signed }
}

fn columns() -> Vec<Column> {
    [
        ("ns", ColumnKind::Clock),
        ("small", integer(3, false)),
        ("name", ColumnKind::Text),
        ("list", list(64, true)),
    ]
    .map(|(name, kind)| Column::new(name, kind))
    .into()
}

/// All files.
fn files(folder: &Path) -> Vec<SerializedFileReader<File>> {
    let mut files = Vec::new();
    for table in folders(folder).unwrap() {
        for day in folders(&table.join("host=h")).unwrap() {
            for file in fs::read_dir(day).unwrap() {
                let file = File::open(file.unwrap().path()).unwrap();
                files.push(SerializedFileReader::new(file).unwrap());
            }
        }
    }
    files
}

/// All rows of all files, and the number of groups in which they were written.
fn read(folder: &Path) -> (Vec<Record>, usize) {
    let files = files(folder);
    let groups = files.iter().map(|file| file.num_row_groups()).sum();
    let rows = files.into_iter().flat_map(|file| file.into_iter());
    (rows.map(|row| row.unwrap()).collect(), groups)
}

/// The cells of a row.
fn text(row: &Record) -> String {
    let cells = row.get_column_iter().map(|(_, cell)| cell.to_string());
    cells.collect::<Vec<_>>().join(" ")
}

fn add(folder: &mut Files, table: TableId, ns: i64) {
    let mut row = folder.row(table, ns).unwrap();
    row.integer(ns as u64);
    row.integer(7);
    row.text(Some(b"a\xff"));
    row.list([-1_i64, 2].map(|number| number as u64).into_iter());
}

#[test]
fn values_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = Files::new(dir.path(), "h", "x").unwrap();
    let table = folder.table("t", &columns());
    add(&mut folder, table, 5);
    // A cell that is not filled is empty.
    folder.row(table, 6).unwrap().integer(6);
    assert_eq!(folder.finish(false).unwrap(), 1);
    let rows: Vec<_> = read(dir.path()).0.iter().map(text).collect();
    let expected = ["5 7 \"a\\xff\" [-1, 2]", "6 null null null"];
    assert_eq!(rows, expected);
    let file = &files(dir.path())[0];
    let group = file.metadata().row_group(0).columns();
    let are_dictionaries = group.iter().map(|column| column.dictionary_page_offset());
    let are_dictionaries: Vec<_> = are_dictionaries.map(|page| page.is_some()).collect();
    assert_eq!(are_dictionaries, [false, true, true, true]);
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn types_are_those_of_earlier_files() {
    let kinds = [
        ("time", ColumnKind::Time),
        ("ns", ColumnKind::Clock),
        ("flag", ColumnKind::Flag),
        ("i3", integer(3, true)),
        ("u9", integer(9, false)),
        ("i32", ColumnKind::INT),
        ("u32", integer(32, false)),
        ("i64", ColumnKind::LONG),
        ("u64", integer(33, false)),
        ("text", ColumnKind::Text),
        ("list", list(16, true)),
        ("long", list(64, true)),
    ];
    let columns = kinds.map(|(name, kind)| Column::new(name, kind));
    let dir = tempfile::tempdir().unwrap();
    let mut folder = Files::new(dir.path(), "h", "x").unwrap();
    let table = folder.table("t", &columns);
    folder.open(table, 0).unwrap();
    folder.finish(false).unwrap();
    let mut schema = Vec::new();
    let file = &files(dir.path())[0];
    print_schema(&mut schema, file.metadata().file_metadata().schema());
    assert_eq!(
        String::from_utf8(schema).unwrap(),
        "message arrow_schema {
  OPTIONAL INT64 time (TIMESTAMP(MICROS,true));
  OPTIONAL INT64 ns;
  OPTIONAL BOOLEAN flag;
  OPTIONAL INT32 i3 (INTEGER(8,true));
  OPTIONAL INT32 u9 (INTEGER(16,false));
  OPTIONAL INT32 i32;
  OPTIONAL INT32 u32 (INTEGER(32,false));
  OPTIONAL INT64 i64;
  OPTIONAL INT64 u64 (INTEGER(64,false));
  OPTIONAL BYTE_ARRAY text (STRING);
  OPTIONAL group list (LIST) {
    REPEATED group list {
      OPTIONAL INT32 item (INTEGER(16,true));
    }
  }
  OPTIONAL group long (LIST) {
    REPEATED group list {
      OPTIONAL INT64 item;
    }
  }
}
"
    );
}

#[test]
fn cells_are_as_wide_as_their_column() {
    let kinds = [
        ColumnKind::Flag,
        integer(8, true),
        integer(8, false),
        integer(16, true),
        integer(16, false),
        integer(32, true),
        integer(32, false),
        integer(64, true),
        integer(64, false),
    ];
    let names = kinds.iter().enumerate();
    let columns: Vec<_> = names
        .map(|(number, kind)| Column::new(number.to_string(), *kind))
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let mut folder = Files::new(dir.path(), "h", "x").unwrap();
    let table = folder.table("t", &columns);
    for bits in [0, 1, -2_i64 as u64] {
        let mut row = folder.row(table, 0).unwrap();
        kinds.iter().for_each(|_| row.integer(bits));
    }
    // Values that the columns cannot have.
    let mut row = folder.row(table, 0).unwrap();
    row.text(Some(b"1"));
    row.list([1].into_iter());
    drop(row);
    folder.finish(false).unwrap();
    let rows: Vec<_> = read(dir.path()).0.iter().map(text).collect();
    let expected = [
        "false 0 0 0 0 0 0 0 0",
        "true 1 1 1 1 1 1 1 1",
        "true -2 254 -2 65534 -2 4294967294 -2 18446744073709551614",
        "null null null null null null null null null",
    ];
    assert_eq!(rows, expected);
}

/// Texts are written in batches, and lists by their items.
#[test]
fn texts_and_lists_of_many_rows_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = Files::new(dir.path(), "h", "x").unwrap();
    let columns = [
        Column::new("text", ColumnKind::Text),
        Column::new("list", list(8, false)),
    ];
    let table = folder.table("t", &columns);
    let mut expected = Vec::new();
    for number in 0..5000_u64 {
        let mut row = folder.row(table, 0).unwrap();
        // Combinations of empty cells, empty texts, empty lists and others.
        let text = (number % 3 > 0).then(|| "t".repeat(number as usize % 7));
        row.text(text.as_ref().map(String::as_bytes));
        let list = (number % 5 > 0).then(|| (0..number % 4).collect::<Vec<_>>());
        match &list {
            Some(list) => row.list(list.iter().copied()),
            None => row.null(),
        }
        let text = text.map_or("null".to_owned(), |text| format!("{text:?}"));
        let list = list.map_or("null".to_owned(), |list| format!("{list:?}"));
        expected.push(format!("{text} {list}"));
    }
    folder.finish(false).unwrap();
    let rows: Vec<_> = read(dir.path()).0.iter().map(text).collect();
    assert_eq!(rows, expected);
}

#[test]
fn what_is_there_is_not_overwritten_unless_told() {
    let dir = tempfile::tempdir().unwrap();
    let write = |label: &str, rows: i64, replaces| {
        let mut folder = Files::new(dir.path(), "h", label).unwrap();
        let table = folder.table("t", &columns());
        (0..rows).for_each(|row| add(&mut folder, table, row * DAY));
        folder.finish(replaces)
    };
    let rows = || read(dir.path()).0.len();
    assert_eq!(write("x", 3, false).unwrap(), 3);
    assert!(matches!(write("x", 1, false), Err(Error::Exists(_))));
    assert_eq!(rows(), 3);
    assert_eq!(write("y", 1, false).unwrap(), 1);
    assert_eq!(rows(), 4);
    // All old files are replaced, including those of days without new rows.
    assert_eq!(write("x", 1, true).unwrap(), 1);
    assert_eq!(rows(), 2);
}

#[test]
fn nothing_is_left_of_what_is_not_finished() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = Files::new(dir.path(), "h", "x").unwrap();
    let table = folder.table("t", &columns());
    add(&mut folder, table, 0);
    folder.tables[0].flush().unwrap();
    drop(folder);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn late_rows_of_a_day_have_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = Files::new(dir.path(), "h", "x").unwrap();
    let table = folder.table("t", &columns());
    // Two days are open at a time.
    let days = [0, 1, 0, 1, 2, 0];
    days.iter()
        .for_each(|day| add(&mut folder, table, day * DAY));
    assert_eq!(folder.finish(false).unwrap(), 4);
    assert_eq!(read(dir.path()).0.len(), days.len());
}

#[test]
fn memory_does_not_grow_with_the_number_of_tables() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = Files::new(dir.path(), "h", "x").unwrap();
    folder.memory = 1 << 20;
    let tables: Vec<_> = (0..800)
        .map(|number| folder.table(format!("t{number}"), &columns()))
        .collect();
    for row in 0..100 {
        for table in &tables {
            add(&mut folder, *table, row);
        }
        // A row may take a little more.
        assert!(folder.held < folder.memory + (1 << 12), "{}", folder.held);
    }
    folder.finish(false).unwrap();
    let (rows, groups) = read(dir.path());
    assert_eq!(rows.len(), 80_000);
    assert!(groups > 800, "{groups}");
}

#[test]
fn a_failed_replacement_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let made = |tables: &[&str], ns| {
        let mut folder = Files::new(dir.path(), "h", "x").unwrap();
        for name in tables {
            let table = folder.table(*name, &columns());
            add(&mut folder, table, ns);
        }
        folder.finish(true)
    };
    assert_eq!(made(&["a"], 5).unwrap(), 1);
    // The path of the second table's folder.
    fs::write(dir.path().join("b"), "").unwrap();
    assert!(made(&["a", "b"], 6).is_err());
    let rows: Vec<_> = read(dir.path()).0.iter().map(text).collect();
    assert_eq!(rows, ["5 7 \"a\\xff\" [-1, 2]"]);
    fs::remove_file(dir.path().join("b")).unwrap();
    assert_eq!(made(&["a", "b"], 6).unwrap(), 2);
    assert_eq!(read(dir.path()).0.len(), 2);
    // No other file is left.
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}
