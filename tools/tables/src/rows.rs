// SPDX-License-Identifier: GPL-2.0

//! Rows that a program takes, instead of a file.

use crate::column::{width, Column, ColumnKind};
use std::io;
use system::printing;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableId(pub(crate) usize);

/// Takes the rows of tables, in their order.
pub trait Rows {
    /// Announces a table; the first one has the number 0. Returns which of its columns are wanted; none if its
    /// rows are not wanted. Other cells stay empty.
    fn table(&mut self, name: &str, columns: &[Column]) -> Option<Vec<bool>>;

    /// Takes a row of a table: a cell for each column, and its time in nanoseconds since the epoch.
    fn row(&mut self, table: usize, ns: i64, cells: &[Cell]) -> io::Result<()>;
}

/// A cell of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// An empty cell.
    #[default]
    Empty,
    /// An integer, or a boolean as 0 or 1.
    Integer(i128),
    /// A floating-point number.
    Real(f64),
    /// A text.
    Text(String),
    /// A list of integers.
    List(Vec<i128>),
}

/// The program, and the tables that it was announced.
pub struct Program {
    rows: Box<dyn Rows>,
    tables: Vec<Table>,
    /// The cells of the row that is being filled. Texts are kept, to be filled again.
    cells: Vec<Cell>,
    /// The first error of the program.
    failed: Option<io::Error>,
}

struct Table {
    kinds: Vec<ColumnKind>,
    /// None if no row is wanted.
    wanted: Option<Vec<bool>>,
}

impl Program {
    /// Hands rows to this program.
    pub fn new(rows: Box<dyn Rows>) -> Self {
        Self {
            rows,
            tables: Vec::new(),
            cells: Vec::new(),
            failed: None,
        }
    }

    /// Announces a table.
    pub fn table(&mut self, name: &str, columns: &[Column]) -> TableId {
        self.tables.push(Table {
            kinds: columns.iter().map(|column| column.kind).collect(),
            wanted: self.rows.table(name, columns),
        });
        TableId(self.tables.len() - 1)
    }

    /// Whether the rows of a table are wanted.
    pub fn wants(&self, TableId(table): TableId) -> bool {
        self.tables[table].wanted.is_some()
    }

    /// Begins a row with a time in nanoseconds since the epoch.
    pub fn row(&mut self, TableId(table): TableId, ns: i64) -> Taken<'_> {
        let columns = self.tables[table].kinds.len();
        self.cells.resize(columns, Cell::Empty);
        Taken {
            program: self,
            table,
            ns,
            next: 0,
        }
    }

    /// The first error of the program, if there was one.
    pub fn check(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

/// A row that the program takes when it is dropped.
pub struct Taken<'a> {
    program: &'a mut Program,
    table: usize,
    ns: i64,
    /// The next column.
    next: usize,
}

impl Taken<'_> {
    /// The next cell and the type of its column, if it is wanted.
    fn cell(&mut self) -> Option<(ColumnKind, &mut Cell)> {
        let place = self.next;
        self.next += 1;
        let table = &self.program.tables[self.table];
        let wanted = table.wanted.as_ref()?;
        let kind = table.kinds.get(place).filter(|_| wanted[place])?;
        Some((*kind, &mut self.program.cells[place]))
    }

    pub fn integer(&mut self, bits: u64) {
        if let Some((kind, cell)) = self.cell() {
            *cell = match kind {
                ColumnKind::Text | ColumnKind::List { .. } => Cell::Empty,
                ColumnKind::Flag => Cell::Integer((bits != 0).into()),
                ColumnKind::Real => Cell::Real(f64::from_bits(bits)),
                ColumnKind::Time | ColumnKind::Clock => Cell::Integer((bits as i64).into()),
                ColumnKind::Integer {
                    bits: width,
                    signed,
                } => Cell::Integer(integer(bits, width, signed)),
            };
        }
    }

    pub fn text(&mut self, text: &[u8]) {
        if let Some((kind, cell)) = self.cell() {
            match (kind, &mut *cell) {
                (ColumnKind::Text, Cell::Text(old)) => {
                    old.clear();
                    old.push_str(&printing::text(text));
                }
                (ColumnKind::Text, _) => *cell = Cell::Text(printing::text(text).into_owned()),
                _ => *cell = Cell::Empty,
            }
        }
    }

    pub fn list(&mut self, list: impl Iterator<Item = u64>) {
        if let Some((kind, cell)) = self.cell() {
            *cell = match kind {
                ColumnKind::List { bits, signed } => {
                    Cell::List(list.map(|item| integer(item, bits, signed)).collect())
                }
                _ => Cell::Empty,
            };
        }
    }

    pub fn null(&mut self) {
        if let Some((_, cell)) = self.cell() {
            *cell = Cell::Empty;
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        while self.next < self.program.cells.len() {
            self.null();
        }
        let program = &mut *self.program;
        if program.failed.is_none() && program.tables[self.table].wanted.is_some() {
            program.failed = program.rows.row(self.table, self.ns, &program.cells).err();
        }
    }
}

/// The integer of a column of this width, given as its bits.
fn integer(bits: u64, columns: u8, signed: bool) -> i128 {
    match (width(columns), signed) {
        (8, true) => (bits as i8).into(),
        (16, true) => (bits as i16).into(),
        (32, true) => (bits as i32).into(),
        (_, true) => (bits as i64).into(),
        (8, false) => (bits as u8).into(),
        (16, false) => (bits as u16).into(),
        (32, false) => (bits as u32).into(),
        (_, false) => bits.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Folder;
    use std::cell::RefCell;
    use std::rc::Rc;

    type Taken = Rc<RefCell<Vec<(usize, i64, Vec<Cell>)>>>;

    struct Test(Taken);

    impl Rows for Test {
        fn table(&mut self, name: &str, columns: &[Column]) -> Option<Vec<bool>> {
            let wanted = columns.iter().map(|column| column.name != "unwanted");
            (name != "other").then(|| wanted.collect())
        }

        fn row(&mut self, table: usize, ns: i64, cells: &[Cell]) -> io::Result<()> {
            if ns < 0 {
                return Err(io::Error::other("before the epoch"));
            }
            self.0.borrow_mut().push((table, ns, cells.to_vec()));
            Ok(())
        }
    }

    #[test]
    fn a_program_takes_the_rows_and_columns_that_it_wants() {
        let taken = Taken::default();
        let mut folder = Folder::program(Box::new(Test(taken.clone())));
        let unsigned = |bits| ColumnKind::Integer {
            bits,
            signed: false,
        };
        let list = ColumnKind::List {
            bits: 8,
            signed: true,
        };
        let other = folder.table("other", &[Column::new("a", ColumnKind::INT)]);
        let table = folder.table(
            "table",
            &[
                Column::new("byte", unsigned(8)),
                Column::new("unwanted", ColumnKind::Text),
                Column::new("long", unsigned(64)),
                Column::new("text", ColumnKind::Text),
                Column::new("list", list),
                Column::new("flag", ColumnKind::Flag),
            ],
        );
        assert!(folder.wants(table) && !folder.wants(other));
        folder.row(other, 1).unwrap().integer(1);
        let mut row = folder.row(table, 2).unwrap();
        row.integer(0x1ff);
        row.text(Some(b"unwanted"));
        row.integer(u64::MAX);
        row.text(Some(b"\xff!"));
        row.list([1, 255].into_iter());
        row.integer(4);
        drop(row);
        // A text does not fit a column of integers; the other cells are empty.
        folder.row(table, 3).unwrap().text(Some(b"7"));
        let full = vec![
            Cell::Integer(255),
            Cell::Empty,
            Cell::Integer(u64::MAX.into()),
            Cell::Text("\\xff!".to_owned()),
            Cell::List(vec![1, -1]),
            Cell::Integer(1),
        ];
        let empty = vec![Cell::Empty; 6];
        assert_eq!(*taken.borrow(), [(1, 2, full), (1, 3, empty)]);
        drop(folder.row(table, -1).unwrap());
        assert!(folder.row(table, 4).is_err());
    }
}
