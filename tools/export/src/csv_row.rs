// SPDX-License-Identifier: GPL-2.0

//! Rows of comma-separated values, harmless to terminals and spreadsheets.

use csv::{ByteRecord, WriterBuilder};
use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};
use system::printing::hex;
use terminal::printable;

/// First characters of a cell that a spreadsheet executes, also in their wide forms.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// Buffer of a row, in bytes. A longer row takes more than one write to memory.
const BUFFER: usize = 1 << 10;

/// Row that is being filled.
#[derive(Default)]
pub struct CsvRow {
    cell: String,
    row: ByteRecord,
    text: Vec<u8>,
}

impl CsvRow {
    /// Adds a cell. A character that commands a terminal becomes `\xHH`, as does the first character of a cell that a
    /// spreadsheet would execute. A number is no formula.
    pub fn cell(&mut self, value: impl Display) -> fmt::Result {
        self.cell.clear();
        write!(self.cell, "{value}")?;
        if !self.cell.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            self.cell = printable(&self.cell);
        }
        let is_number = || self.cell.parse::<f64>().is_ok_and(f64::is_finite);
        let first = self.cell.chars().next();
        if let Some(first) = first.filter(|first| FORMULA.contains(first) && !is_number()) {
            let mut escape = String::new();
            hex(&mut escape, first.encode_utf8(&mut [0; 4]).as_bytes())?;
            self.cell.replace_range(..first.len_utf8(), &escape);
        }
        self.row.push_field(self.cell.as_bytes());
        Ok(())
    }

    /// Writes the row, and begins the next one.
    pub fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.text.clear();
        let mut writer = WriterBuilder::new()
            .buffer_capacity(BUFFER)
            .from_writer(&mut self.text);
        writer.write_byte_record(&self.row)?;
        writer.flush()?;
        drop(writer);
        self.row.clear();
        // The writer of `csv` would hide the kind of an error.
        out.write_all(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_harmless() {
        let mut row = CsvRow::default();
        for cell in [
            "a,\"b\"",
            "",
            "-7",
            "-1.5e3",
            "+7",
            "-",
            "=1+1",
            "-1+1",
            "@a",
            "-inf",
            "\t=1",
            "＝1",
            "\x1b[2J\n",
            "é",
        ] {
            row.cell(cell).unwrap();
        }
        let mut out = Vec::new();
        row.end(&mut out).unwrap();
        row.cell("next").unwrap();
        row.end(&mut out).unwrap();
        let expected = r#""a,""b""",,-7,-1.5e3,+7,\x2d,\x3d1+1,\x2d1+1,\x40a,\x2dinf,\x09=1,\xef\xbc\x9d1,\x1b[2J\x0a,é"#;
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!("{expected}\nnext\n")
        );
    }
}
