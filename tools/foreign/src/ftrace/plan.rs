// SPDX-License-Identifier: GPL-2.0

//! Compiles the fields of an event to rtrace's layouts, and to the steps that copy them from a record.

use super::format::{EventFormat, Field};
use super::names;
use ctf::{FieldLayout, Label, Type};
use rtrace_abi::schema::Integer;

/// A step of a translation: the next field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Bytes at a place in the record.
    Copy { at: u32, bytes: u32 },
    /// A text of at most so many bytes at a place. Bytes after its NUL are not copied.
    Text { at: u32, bytes: u32 },
    /// A text whose place is in the word at `at`; `from` is added to the place.
    DataText { at: u32, from: u32 },
    /// Integers of this number of bytes whose place is in the word at `at`, with their number before them.
    Data { at: u32, from: u32, each: u32 },
    /// The text at the end of the record.
    RestText { at: u32 },
    /// The integers at the end of the record, with their number before them.
    Rest { at: u32, each: u32 },
}

/// The layouts of an event's fields, and the steps that write them.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The layouts.
    pub fields: Vec<FieldLayout>,
    /// The steps.
    pub steps: Vec<Step>,
}

impl Plan {
    /// A plan for all fields of an event.
    pub fn of(event: &EventFormat) -> Self {
        let mut this = Self::default();
        for field in &event.fields {
            this.add(event, field);
        }
        this
    }

    /// Adds a field with rtrace's name.
    pub fn add(&mut self, event: &EventFormat, field: &Field) {
        let name = names::field(&event.system, &event.name, &field.name);
        let at = field.offset;
        let words: Vec<_> = field.ty.split_whitespace().collect();
        let is_relative = words.first() == Some(&"__rel_loc");
        if is_relative || words.first() == Some(&"__data_loc") {
            let from = if is_relative { field.end() } else { 0 };
            let element = words[1..].join(" ");
            return match element.as_str() {
                "char" => self.push(name, Type::String, Step::DataText { at, from }),
                element => {
                    let each = element_size(element);
                    let element = integer(name, element, each, false);
                    self.sequence(name, element, Step::Data { at, from, each });
                }
            };
        }
        let is_text = field.is_array && matches!(field.ty.as_str(), "char" | "const char");
        let is_rest = field.size == 0 || event.system == "ftrace" && field.name == "caller";
        match field.size {
            _ if is_rest && is_text => self.push(name, Type::String, Step::RestText { at }),
            _ if is_rest => {
                let each = element_size(&field.ty);
                let element = integer(name, &field.ty, each, field.is_signed);
                self.sequence(name, element, Step::Rest { at, each });
            }
            bytes if is_text => {
                let ty = Type::Array(Integer::TEXT, bytes);
                self.push(name, ty, Step::Text { at, bytes });
            }
            bytes @ (1 | 2 | 4 | 8) if !field.is_array => {
                let integer = match field.is_pointer() {
                    true if names::is_address(name) && bytes == 8 => Integer::address(),
                    true => Integer::hex(8 * bytes as u8),
                    false => integer(name, &field.ty, bytes, field.is_signed),
                };
                let labels = event.symbols.get(&field.name);
                let label = |(value, name): &(u64, String)| Label {
                    name: name.clone(),
                    first: *value,
                    last: *value,
                };
                let ty = match labels {
                    Some(labels) => Type::Enumeration(integer, labels.iter().map(label).collect()),
                    None => Type::Integer(integer),
                };
                self.push(name, ty, Step::Copy { at, bytes });
            }
            bytes => {
                let each = element_size(&field.ty);
                let (element, each) = match field.is_array && bytes % each == 0 {
                    true => (integer(name, &field.ty, each, field.is_signed), each),
                    false => (Integer::hex(8), 1),
                };
                let ty = Type::Array(element, bytes / each);
                self.push(name, ty, Step::Copy { at, bytes });
            }
        }
    }

    /// Adds a field with this type.
    pub fn push(&mut self, name: &str, ty: Type, step: Step) {
        self.fields.push(FieldLayout {
            name: name.to_owned(),
            ty,
        });
        match (self.steps.last_mut(), &step) {
            (
                Some(Step::Copy { at, bytes }),
                Step::Copy {
                    at: next,
                    bytes: more,
                },
            ) if at.checked_add(*bytes) == Some(*next) && bytes.checked_add(*more).is_some() => {
                *bytes += more;
            }
            _ => self.steps.push(step),
        }
    }

    fn sequence(&mut self, name: &str, element: Integer, step: Step) {
        self.fields.push(FieldLayout {
            name: format!("_{name}_length"),
            ty: Type::Integer(Integer::unsigned(32)),
        });
        let length = self.fields.len() - 1;
        self.push(name, Type::Sequence(element, length), step);
    }
}

/// The bytes of an element of an array whose elements have this type.
fn element_size(ty: &str) -> u32 {
    let words = || ty.split_whitespace();
    let has = |word: &str| words().any(|other| other == word);
    match ty {
        ty if ty.ends_with('*') || has("long") => 8,
        ty if ty.contains("64") => 8,
        ty if ty.contains("16") || has("short") => 2,
        ty if ty.contains("32") || has("int") || has("unsigned") && words().count() == 1 => 4,
        // The kernel's sets of CPUs are words.
        "cpumask_t" | "size_t" | "uintptr_t" => 8,
        "pid_t" | "uid_t" | "gid_t" | "dma_addr_t" => 4,
        _ => 1,
    }
}

/// The type of an integer.
fn integer(name: &str, ty: &str, bytes: u32, is_signed: bool) -> Integer {
    let bits = 8 * bytes as u8;
    let is_code = names::is_address(name) && bytes == 8;
    match ty {
        "cpumask_t" => Integer::hex(bits),
        _ if is_code && (ty.contains("long") || ty.ends_with('*') || ty == "u64") => {
            Integer::address()
        }
        _ if is_signed => Integer::signed(bits),
        _ => Integer::unsigned(bits),
    }
}

/// Performs steps: appends the fields of a record to `out`. `Err`: the record is too short for a field.
#[inline]
pub fn run(steps: &[Step], record: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    for step in steps {
        match *step {
            Step::Copy { at, bytes } => out.extend_from_slice(part(record, at, bytes)?),
            Step::Text { at, bytes } => {
                let text = part(record, at, bytes)?;
                let length = memchr::memchr(0, text).unwrap_or(text.len());
                let end = out.len() + text.len();
                out.extend_from_slice(&text[..length]);
                out.resize(end, 0);
            }
            ref step => rare(step, record, out)?,
        }
    }
    Ok(())
}

fn rare(step: &Step, record: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    match *step {
        Step::DataText { at, from } => text(data(record, at, from)?, out),
        Step::Data { at, from, each } => sequence(data(record, at, from)?, each, out),
        Step::RestText { at } => text(rest(record, at)?, out),
        Step::Rest { at, each } => sequence(rest(record, at)?, each, out),
        Step::Copy { .. } | Step::Text { .. } => {}
    }
    Ok(())
}

/// Bytes of a record.
#[inline]
pub fn part(record: &[u8], at: u32, bytes: u32) -> Result<&[u8], String> {
    let at = at as usize;
    let part = record.get(at..at.saturating_add(bytes as usize));
    part.ok_or_else(|| short(record, at))
}

#[cold]
fn short(record: &[u8], at: usize) -> String {
    let length = record.len();
    format!("an event of {length} bytes, which has a field at byte {at}")
}

/// The bytes whose place is in the word at `at`: 16 bits of length above 16 bits of the place.
fn data(record: &[u8], at: u32, from: u32) -> Result<&[u8], String> {
    let word = part(record, at, 4)?
        .first_chunk()
        .copied()
        .unwrap_or_default();
    let word = u32::from_le_bytes(word);
    part(record, (word & 0xffff) + from, word >> 16)
}

fn rest(record: &[u8], at: u32) -> Result<&[u8], String> {
    record
        .get(at as usize..)
        .ok_or_else(|| short(record, at as usize))
}

fn text(bytes: &[u8], out: &mut Vec<u8>) {
    let length = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    out.extend_from_slice(&bytes[..length]);
    out.push(0);
}

fn sequence(bytes: &[u8], each: u32, out: &mut Vec<u8>) {
    let count = bytes.len() / each as usize;
    out.extend_from_slice(&(count as u32).to_le_bytes());
    out.extend_from_slice(&bytes[..count * each as usize]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(fields: &str) -> Plan {
        let text = format!("name: e\nID: 1\n{fields}");
        Plan::of(&EventFormat::parse("s", &text).unwrap())
    }

    #[test]
    fn fields_are_copied() {
        let plan = plan(
            "field:int a;offset:8;size:4;signed:1;\nfield:u32 b;offset:12;size:4;signed:0;\n\
             field:char c[4];offset:16;size:4;signed:0;\n\
             field:__data_loc char[] d;offset:20;size:4;signed:0;\n\
             field:__rel_loc u8[] e;offset:24;size:4;signed:0;\n\
             field:char f[];offset:28;size:0;signed:0;\n",
        );
        assert_eq!(plan.steps.len(), 5, "two integers are one step: {plan:?}");
        let mut record = vec![0; 8];
        record.extend_from_slice(&(-2_i32).to_le_bytes());
        record.extend_from_slice(&7_u32.to_le_bytes());
        record.extend_from_slice(b"x\0yz");
        record.extend_from_slice(&(28_u32 | (3 << 16)).to_le_bytes());
        record.extend_from_slice(&(1_u32 | (2 << 16)).to_le_bytes());
        record.extend_from_slice(b"ab\0\0");
        let mut out = Vec::new();
        run(&plan.steps, &record, &mut out).unwrap();
        let expected = [
            &(-2_i32).to_le_bytes()[..],
            &7_u32.to_le_bytes(),
            b"x\0\0\0ab\0",
            &2_u32.to_le_bytes(),
            b"b\0",
            b"ab\0",
        ];
        assert_eq!(out, expected.concat());
        assert_eq!(plan.fields[4].name, "_e_length");
    }

    #[test]
    fn a_short_record_is_refused() {
        let plan = plan("field:int a;offset:8;size:4;signed:1;\nfield:__data_loc char[] d;offset:12;size:4;signed:0;\n");
        for record in [&[0; 8][..], &[0; 12], &[0xff; 16]] {
            let error = run(&plan.steps, record, &mut Vec::new()).unwrap_err();
            assert!(error.contains("has a field at byte"), "{error}");
        }
    }
}
