// SPDX-License-Identifier: GPL-2.0

//! Parses the kernel's descriptions of its events: the `format` files of tracefs.
//!
//! ```text
//! name: sched_wakeup
//! ID: 320
//! format:
//!         field:unsigned short common_type;       offset:0;       size:2; signed:0;
//!
//!         field:char comm[16];    offset:8;       size:16;        signed:0;
//! print fmt: "comm=%s ...", REC->comm, ...
//! ```

use super::symbols::{symbols, Symbols};

/// The maximum number of fields that an event may have.
const FIELDS: usize = 4096;

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFormat {
    /// The subsystem.
    pub system: String,
    /// Its name in the subsystem.
    pub name: String,
    /// The number that its records begin with.
    pub id: u16,
    /// Its fields, without the common ones.
    pub fields: Vec<Field>,
    /// Fields that all events have.
    pub common: Vec<Field>,
    /// Names of values, by field.
    pub symbols: Symbols,
}

/// A field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type in C, without the length of an array.
    pub ty: String,
    /// Its place in the record.
    pub offset: u32,
    /// Its bytes.
    pub size: u32,
    /// Whether its integers are signed.
    pub is_signed: bool,
    /// Whether it is an array.
    pub is_array: bool,
}

impl Field {
    /// The bytes after it.
    pub fn end(&self) -> u32 {
        self.offset.saturating_add(self.size)
    }

    /// Whether it is a pointer.
    pub fn is_pointer(&self) -> bool {
        self.ty.ends_with('*')
    }
}

impl EventFormat {
    /// Parses a `format` file of an event in the subsystem `system`.
    pub fn parse(system: &str, text: &str) -> Result<Self, String> {
        let mut this = Self {
            system: system.to_owned(),
            ..Self::default()
        };
        let mut id = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("name:") {
                this.name = name.trim().to_owned();
            } else if let Some(number) = line.strip_prefix("ID:") {
                let number = number.trim();
                let wrong = |_| format!("the event {}:{} has the id `{number}`", system, this.name);
                id = Some(number.parse().map_err(wrong)?);
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                this.symbols = symbols(print);
            } else if let Some(field) = field(line) {
                let wrong = |what| format!("the event {}:{} has {what}", system, this.name);
                let field = field.map_err(wrong)?;
                let is_common = field.name.starts_with("common_");
                let fields = if is_common {
                    &mut this.common
                } else {
                    &mut this.fields
                };
                fields.push(field);
                if fields.len() > FIELDS {
                    return Err(wrong(format!("more than {FIELDS} fields")));
                }
            }
        }
        if this.name.is_empty() {
            return Err(format!("an event of {system} has no name"));
        }
        this.id = id.ok_or_else(|| format!("the event {}:{} has no id", system, this.name))?;
        Ok(this)
    }

    /// The common field with this name.
    pub fn common(&self, name: &str) -> Option<&Field> {
        self.common.iter().find(|field| field.name == name)
    }
}

/// Parses a line of a field. [`None`]: it is another line.
pub fn field(line: &str) -> Option<Result<Field, String>> {
    let line = line.trim_start();
    let parts = line
        .strip_prefix("field:")
        .or_else(|| line.strip_prefix("field special:"))?;
    let mut parts = parts.split(';').map(str::trim);
    let declaration = parts.next()?;
    let mut field = match declared(declaration) {
        Some(field) => field,
        None => return Some(Err(format!("a field without a name: `{declaration}`"))),
    };
    let (mut offset, mut size) = (None, None);
    for part in parts {
        let Some((key, value)) = part.split_once(':') else {
            continue;
        };
        match key {
            "offset" => offset = value.parse().ok(),
            "size" => size = value.parse().ok(),
            "signed" => field.is_signed = value != "0",
            _ => {}
        }
    }
    let (Some(offset), Some(size)) = (offset, size) else {
        return Some(Err(format!("a field without a place: `{}`", field.name)));
    };
    (field.offset, field.size) = (offset, size);
    Some(Ok(field))
}

/// Parses the declaration of a field: `unsigned long args[6]`.
fn declared(text: &str) -> Option<Field> {
    let (text, is_array) = match text.split_once('[') {
        // `__data_loc char[] name`
        Some((before, after)) if before.starts_with("__") => {
            let (_, name) = after.split_once(']')?;
            return Some(Field {
                name: name.trim().to_owned(),
                ty: before.trim().to_owned(),
                is_array: true,
                ..Field::default()
            });
        }
        Some((before, _)) => (before.trim_end(), true),
        None => (text, false),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begin = text.trim_end_matches(is_name).len();
    let (ty, name) = text.split_at(begin);
    (begin > 0 && !name.is_empty()).then(|| Field {
        name: name.to_owned(),
        ty: ty.trim_end().to_owned(),
        is_array,
        ..Field::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_kinds_are_parsed() {
        let text = "name: some\nID: 77\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
            \tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;\n\
            \tfield:const char * filename;\toffset:32;\tsize:8;\tsigned:0;\n\
            \tfield:unsigned long args[6];\toffset:40;\tsize:48;\tsigned:0;\n\
            \tfield:int vec;\toffset:88;\tsize:4;\tsigned:1;\n\
            print fmt: \"vec=%d [action=%s]\", REC->vec, __print_symbolic(REC->vec, { 0, \"HI\" }, { 1, \"TIMER\" })\n";
        let event = EventFormat::parse("irq", text).unwrap();
        assert_eq!((event.name.as_str(), event.id), ("some", 77));
        assert_eq!(event.common("common_type").unwrap().size, 2);
        let fields = event.fields.iter().map(|field| {
            (
                field.name.as_str(),
                field.ty.as_str(),
                field.offset,
                field.is_array,
                field.is_signed,
            )
        });
        let fields: Vec<_> = fields.collect();
        assert_eq!(
            fields,
            [
                ("comm", "char", 8, true, false),
                ("name", "__data_loc char", 24, true, false),
                ("filename", "const char *", 32, false, false),
                ("args", "unsigned long", 40, true, false),
                ("vec", "int", 88, false, true),
            ]
        );
        assert_eq!(
            event.symbols["vec"],
            [(0, "HI".to_owned()), (1, "TIMER".to_owned())]
        );
    }

    #[test]
    fn wrong_descriptions_have_a_reason() {
        for (text, reason) in [
            ("ID: 7\n", "no name"),
            ("name: a\n", "no id"),
            ("name: a\nID: 70000\n", "the id `70000`"),
            (
                "name: a\nID: 1\nfield:int x;offset:8;",
                "without a place: `x`",
            ),
            (
                "name: a\nID: 1\nfield:int [4];offset:8;size:4;",
                "without a name",
            ),
        ] {
            let error = EventFormat::parse("s", text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
