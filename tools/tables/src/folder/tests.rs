// SPDX-License-Identifier: GPL-2.0

//! Tables are read back by the library's reader.

use super::*;
use crate::column::Kind;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type};
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;

const DAY: i64 = 86_400_000_000_000;

fn columns() -> Vec<Column> {
    [
        ("ns", Kind::Clock),
        (
            "small",
            Kind::Integer {
                bits: 3,
                signed: false,
            },
        ),
        ("name", Kind::Name),
        (
            "list",
            Kind::List {
                bits: 64,
                signed: true,
            },
        ),
    ]
    .map(|(name, kind)| Column::new(name, kind))
    .into()
}

/// All rows of the files that are there, and how many groups they were written in.
fn read(folder: &Path) -> (Vec<RecordBatch>, usize) {
    let (mut batches, mut groups) = (Vec::new(), 0);
    for table in folders(folder).unwrap() {
        for day in folders(&table.join("host=h")).unwrap() {
            for file in fs::read_dir(day).unwrap() {
                let file = File::open(file.unwrap().path()).unwrap();
                let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
                groups += reader.metadata().num_row_groups();
                batches.extend(reader.build().unwrap().map(|batch| batch.unwrap()));
            }
        }
    }
    (batches, groups)
}

fn add(folder: &mut Folder, table: TableId, ns: i64) {
    let mut row = folder.row(table, ns).unwrap();
    row.integer(ns as u64);
    row.integer(7);
    row.text(Some(b"a\xff"));
    row.list([-1_i64, 2].map(|number| number as u64).into_iter());
}

#[test]
fn values_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = Folder::new(dir.path(), "h", "x").unwrap();
    let table = folder.table("t", &columns());
    add(&mut folder, table, 5);
    // What is not filled is empty.
    folder.row(table, 6).unwrap().integer(6);
    assert_eq!(folder.finish(false).unwrap(), 1);
    let (batches, _) = read(dir.path());
    let [batch] = &batches[..] else {
        panic!("{batches:?}");
    };
    assert_eq!(batch.num_rows(), 2);
    assert_eq!(
        batch.column(0).as_primitive::<Int64Type>().values(),
        &[5, 6]
    );
    let small = batch.column(1).as_primitive::<UInt8Type>();
    assert_eq!(small.iter().collect::<Vec<_>>(), [Some(7), None]);
    let is_dictionary = matches!(batch.column(2).data_type(), DataType::Dictionary(..));
    assert!(is_dictionary, "{:?}", batch.column(2).data_type());
    let names = batch.column(2).as_any_dictionary().values();
    assert_eq!(names.as_string::<i32>().value(0), "a\u{fffd}");
    let list = batch.column(3).as_list::<i32>();
    assert_eq!(list.value(0).as_primitive::<Int64Type>().values(), &[-1, 2]);
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn what_is_there_is_not_overwritten_unless_told() {
    let dir = tempfile::tempdir().unwrap();
    let write = |label: &str, rows: i64, replaces| {
        let mut folder = Folder::new(dir.path(), "h", label).unwrap();
        let table = folder.table("t", &columns());
        (0..rows).for_each(|row| add(&mut folder, table, row * DAY));
        folder.finish(replaces)
    };
    let rows = || {
        read(dir.path())
            .0
            .iter()
            .map(RecordBatch::num_rows)
            .sum::<usize>()
    };
    assert_eq!(write("x", 3, false).unwrap(), 3);
    assert!(matches!(write("x", 1, false), Err(Error::Exists(_))));
    assert_eq!(rows(), 3);
    assert_eq!(write("y", 1, false).unwrap(), 1);
    assert_eq!(rows(), 4);
    // All that was there, also for days that are no more.
    assert_eq!(write("x", 1, true).unwrap(), 1);
    assert_eq!(rows(), 2);
}

#[test]
fn nothing_is_left_of_what_is_not_finished() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = Folder::new(dir.path(), "h", "x").unwrap();
    let table = folder.table("t", &columns());
    add(&mut folder, table, 0);
    folder.tables[0].flush(&folder.place).unwrap();
    drop(folder);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn late_rows_of_a_day_have_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = Folder::new(dir.path(), "h", "x").unwrap();
    let table = folder.table("t", &columns());
    // Two days are open at a time.
    let days = [0, 1, 0, 1, 2, 0];
    days.iter()
        .for_each(|day| add(&mut folder, table, day * DAY));
    assert_eq!(folder.finish(false).unwrap(), 4);
    let (batches, _) = read(dir.path());
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, days.len());
}

#[test]
fn memory_does_not_grow_with_the_number_of_tables() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = Folder::new(dir.path(), "h", "x").unwrap();
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
    let (batches, groups) = read(dir.path());
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 80_000);
    assert!(groups > 800, "{groups}");
}

#[test]
fn a_failed_replacement_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let made = |tables: &[&str], ns| {
        let mut folder = Folder::new(dir.path(), "h", "x").unwrap();
        for name in tables {
            let table = folder.table(*name, &columns());
            add(&mut folder, table, ns);
        }
        folder.finish(true)
    };
    assert_eq!(made(&["a"], 5).unwrap(), 1);
    // Where the second table's folder would be.
    fs::write(dir.path().join("b"), "").unwrap();
    assert!(made(&["a", "b"], 6).is_err());
    let (batches, _) = read(dir.path());
    let ns = batches[0].column(0).as_primitive::<Int64Type>();
    assert_eq!((batches.len(), ns.value(0)), (1, 5));
    fs::remove_file(dir.path().join("b")).unwrap();
    assert_eq!(made(&["a", "b"], 6).unwrap(), 2);
    assert_eq!(read(dir.path()).0.len(), 2);
    // Nothing else is left.
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}
