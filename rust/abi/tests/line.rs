// SPDX-License-Identifier: GPL-2.0

//! Lines of text for records.

use proptest::collection::vec;
use proptest::prelude::*;
use rtrace_abi::header::Layout;
use rtrace_abi::line::{write, LineEvent, NoLine};
use rtrace_abi::records::{Malformed, RecordHeader};
use rtrace_abi::schema::{Field, FieldType, Integer, LabelPlace, Labels};
use std::fmt;
use std::num::NonZeroU64;

const fn place(first: i64, last: i64, name: (u32, u32)) -> LabelPlace {
    LabelPlace {
        first: first as u64,
        last: last as u64,
        name,
    }
}

const LABELS: Labels<'static> = Labels::new(
    b"lowmidhigh",
    &[
        place(-9, -2, (0, 3)),
        place(-1, 1, (3, 6)),
        place(2, 2, (6, 10)),
    ],
);

const NANOSECONDS: NonZeroU64 = NonZeroU64::new(1_000_000_000).unwrap();

/// Returns the field at this index.
fn at(fields: &[Field<'static>], place: usize) -> Option<Field<'static>> {
    fields.get(place).copied()
}

/// Returns the line of a record that consists only of these bytes, of an event with this header.
fn line_at(
    header: RecordHeader,
    frequency: NonZeroU64,
    bytes: &[u8],
    contexts: &[Field<'static>],
    fields: &[Field<'static>],
) -> Result<String, NoLine> {
    let event = LineEvent {
        name: "event",
        cpu: 2,
        header,
        frequency,
    };
    let mut line = String::new();
    let (context, field) = (|place| at(contexts, place), |place| at(fields, place));
    let end = write(&mut line, bytes, &event, context, field)?;
    assert_eq!(end, bytes.len());
    Ok(line)
}

fn line(
    bytes: &[u8],
    contexts: &[Field<'static>],
    fields: &[Field<'static>],
) -> Result<String, NoLine> {
    let header = RecordHeader {
        number: 0,
        time: 5_912_348_170_999,
        end: 0,
    };
    line_at(header, NANOSECONDS, bytes, contexts, fields)
}

/// Returns the text after the event's name.
fn fields_of(bytes: &[u8], fields: &[Field<'static>]) -> Result<String, NoLine> {
    let line = line(bytes, &[], fields)?;
    let (_, fields) = line.split_once(" event:").expect("a name");
    Ok(fields.strip_suffix('\n').expect("a line").to_owned())
}

#[test]
fn the_task_is_what_the_contexts_say() {
    let comm = Field::new("procname", FieldType::text(4));
    let tid = Field::new("tid", FieldType::signed(32));
    let pid = Field::new("pid", FieldType::signed(16));
    assert_eq!(
        line(&[], &[], &[]).unwrap(),
        "           <...>-...     [002]  5912.348170: event:\n"
    );
    assert_eq!(
        line(b"sh\0x\xd2\x04\0\0", &[comm, tid], &[]).unwrap(),
        "              sh-1234    [002]  5912.348170: event:\n"
    );
    // A thread id has precedence over a process id.
    for contexts in [[tid, pid], [pid, tid]] {
        let line = line(&[1, 0, 1, 0, 1, 0], &contexts, &[]).unwrap();
        assert!(
            line.starts_with("           <...>-65537   [002] "),
            "{line}"
        );
    }
    // Other contexts come last, without the length of a stack.
    let others = [
        pid,
        Field::new("prio", FieldType::signed(8)),
        Field::new("length", FieldType::unsigned(8)),
        Field::new("stack", FieldType::Sequence(Integer::address(), "length")),
    ];
    let mut bytes = vec![7, 0, 0xfe, 2];
    bytes.extend(0xffff_ffff_8100_0000_u64.to_le_bytes());
    bytes.extend(1_u64.to_le_bytes());
    bytes.push(9);
    assert_eq!(
        line(&bytes, &others, &[Field::new("own", FieldType::unsigned(8))]).unwrap(),
        "           <...>-7       [002]  5912.348170: event: own=9 {prio=-2 stack={0xffffffff81000000,0x1}}\n"
    );
}

#[test]
fn all_types() {
    let bits = |bits| FieldType::Integer(Integer::unsigned(8).bit_field(bits));
    let signed = |bits| FieldType::Integer(Integer::signed(8).bit_field(bits));
    let enumeration = Field::new("e", FieldType::Enumeration(Integer::signed(16), LABELS));
    let cases: &[(&[u8], &[Field<'static>], &str)] = &[
        (
            &[0xff],
            &[Field::new("u", FieldType::unsigned(8))],
            " u=255",
        ),
        (
            &[0xff, 0xff],
            &[Field::new("s", FieldType::signed(16))],
            " s=-1",
        ),
        (
            &[0x1f, 0, 0, 0x80],
            &[Field::new("x", FieldType::hex(32))],
            " x=0x8000001f",
        ),
        (
            &[0xff; 8],
            &[Field::new("u", FieldType::unsigned(64))],
            " u=18446744073709551615",
        ),
        (
            &[0xff; 8],
            &[Field::new("s", FieldType::signed(64))],
            " s=-1",
        ),
        (&[0; 8], &[Field::new("a", FieldType::address())], " a=0x0"),
        (
            &[0b1011_0101],
            &[Field::new("a", bits(3)), Field::new("b", bits(4))],
            " a=5 b=6",
        ),
        (
            &[0b1011_0101, 1],
            &[Field::new("a", signed(7)), Field::new("b", signed(2))],
            " a=53 b=-1",
        ),
        // A bit field may span nine bytes.
        (
            &[0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
            &[Field::new("a", bits(7)), Field::new("b", bits(64))],
            " a=0 b=18446744073709551615",
        ),
        (&[0xfe, 0xff], &[enumeration], " e=low"),
        (&[0xff, 0xff], &[enumeration], " e=mid"),
        (&[2, 0], &[enumeration], " e=high"),
        (&[3, 0], &[enumeration], " e=3"),
        (&[0xf0, 0xff], &[enumeration], " e=-16"),
        (
            &[1, 2, 0, 3],
            &[Field::new("a", FieldType::Array(Integer::hex(16), 2))],
            " a={0x201,0x300}",
        ),
        (
            &[],
            &[Field::new("a", FieldType::Array(Integer::unsigned(8), 0))],
            " a={}",
        ),
        (b"abc\0d", &[Field::new("t", FieldType::text(5))], " t=abc"),
        (b"abcde", &[Field::new("t", FieldType::text(5))], " t=abcde"),
        (
            "ä\n\x1b[0m\0".as_bytes(),
            &[Field::new("t", FieldType::String)],
            " t=ä\\x0a\\x1b[0m",
        ),
        (
            b"\xff\xc2\x85.\0",
            &[Field::new("t", FieldType::String)],
            " t=\\xff\\xc2\\x85.",
        ),
        (
            b"\0\x07",
            &[
                Field::new("t", FieldType::String),
                Field::new("n", FieldType::unsigned(8)),
            ],
            " t= n=7",
        ),
        (
            &[2, 0, b'h', b'i', 9],
            &[
                Field::new("length", FieldType::unsigned(16)),
                Field::new("text", FieldType::Sequence(Integer::TEXT, "length")),
                Field::new("n", FieldType::unsigned(8)),
            ],
            " text=hi n=9",
        ),
    ];
    for (bytes, fields, expected) in cases {
        assert_eq!(
            fields_of(bytes, fields).as_deref(),
            Ok(*expected),
            "{bytes:x?}"
        );
    }
}

#[test]
fn what_is_no_record_has_no_line() {
    let length = Field::new("length", FieldType::unsigned(8));
    let sequence = |name| Field::new("s", FieldType::Sequence(Integer::hex(64), name));
    let cases: &[(&[u8], &[Field<'static>])] = &[
        (&[0; 7], &[Field::new("u", FieldType::unsigned(64))]),
        (b"no end", &[Field::new("t", FieldType::String)]),
        (&[2, 0, 0, 0, 0, 0, 0, 0, 0], &[length, sequence("length")]),
        (&[1; 9], &[length, sequence("nothing")]),
        (&[], &[Field::new("t", FieldType::text(1))]),
    ];
    for (bytes, fields) in cases {
        assert_eq!(
            fields_of(bytes, fields),
            Err(NoLine::Malformed),
            "{bytes:x?}"
        );
        assert_eq!(
            line(bytes, fields, &[]),
            Err(NoLine::Malformed),
            "{bytes:x?}"
        );
    }
}

/// An output with room for this many bytes.
struct Room(usize);

impl fmt::Write for Room {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.0 = self.0.checked_sub(s.len()).ok_or(fmt::Error)?;
        Ok(())
    }
}

#[test]
fn no_room_is_said() {
    let header = RecordHeader {
        number: 0,
        time: 0,
        end: 0,
    };
    let event = LineEvent {
        name: "event",
        cpu: 0,
        header,
        frequency: NANOSECONDS,
    };
    let fields = [Field::new("t", FieldType::String)];
    let write = |room| {
        let field = |place| at(&fields, place);
        write(&mut Room(room), b"abc\0", &event, |_| None, field)
    };
    let needed = (0..).find(|room| write(*room).is_ok()).unwrap();
    assert_eq!(
        needed,
        "           <...>-...     [000]     0.000000: event: t=abc\n".len()
    );
    assert!((0..needed).all(|room| write(room) == Err(NoLine::NoRoom)));
}

#[test]
fn headers() {
    let read = |bytes: &[u8], layout, before| {
        RecordHeader::read(bytes, 0, layout, before)
            .map(|header| (header.number, header.time, header.end))
    };
    let compact = |id: u32, low: u32| ((low << 5) | id).to_le_bytes();
    let extended = |escape: &[u8], id: u32, time: u64| {
        [escape, &id.to_le_bytes(), &time.to_le_bytes()].concat()
    };
    let lap = 1 << 27;
    assert_eq!(read(&compact(30, 5), Layout::Compact, 0), Ok((30, 5, 4)));
    assert_eq!(read(&compact(0, 5), Layout::Compact, 5), Ok((0, 5, 4)));
    // The clock's low bits have wrapped since then.
    assert_eq!(
        read(&compact(0, 5), Layout::Compact, 6),
        Ok((0, lap + 5, 4))
    );
    assert_eq!(
        read(&compact(0, 5), Layout::Compact, 7 * lap + 6),
        Ok((0, 8 * lap + 5, 4))
    );
    assert_eq!(
        read(&extended(&[31], 70_000, 1 << 60), Layout::Compact, 9),
        Ok((70_000, 1 << 60, 13))
    );
    assert_eq!(
        read(&[1, 2, 3, 0, 0, 0], Layout::Large, 4),
        Ok((513, lap * 32 + 3, 6))
    );
    assert_eq!(
        read(&extended(&[255, 255], 9, 8), Layout::Large, 100),
        Ok((9, 8, 14))
    );
    for (bytes, layout) in [
        (&compact(0, 5)[..3], Layout::Compact),
        (&extended(&[31], 1, 2)[..12], Layout::Compact),
        (&[0; 5], Layout::Large),
        (&extended(&[255, 255], 1, 2)[..13], Layout::Large),
    ] {
        assert_eq!(read(bytes, layout, 0), Err(Malformed), "{bytes:x?}");
    }
}

proptest! {
    /// Any content: no panic. If there is a line, it is a single line.
    #[test]
    fn any_bytes_are_one_line_or_none(
        bytes in vec(any::<u8>(), 0..200),
        kinds in vec((0..8_u8, 0..3_u8), 0..9),
        split: prop::sample::Index,
        end in 0..20_usize,
        time: u64,
        frequency: u64,
    ) {
        let fields: Vec<_> = kinds.into_iter().map(|(kind, bits)| {
            let bits = 8 << bits;
            match kind {
                0 => Field::new("length", FieldType::unsigned(bits)),
                1 => Field::new("procname", FieldType::String),
                2 => Field::new("s", FieldType::Sequence(Integer::signed(bits), "length")),
                3 => Field::new("t", FieldType::Sequence(Integer::TEXT, "length")),
                4 => Field::new("b", FieldType::Integer(Integer::signed(64).bit_field(bits + 3))),
                5 => Field::new("e", FieldType::Enumeration(Integer::signed(bits), LABELS)),
                6 => Field::new("tid", FieldType::Array(Integer::hex(bits), 3)),
                _ => Field::new("x", FieldType::text(bits.into())),
            }
        }).collect();
        let (contexts, fields) = fields.split_at(split.index(fields.len() + 1));
        let header = RecordHeader { number: 0, time, end };
        let event = LineEvent {
            name: "event",
            cpu: u32::MAX,
            header,
            frequency: NonZeroU64::new(frequency).unwrap_or(NANOSECONDS),
        };
        let mut line = String::new();
        let (context, field) = (|place| at(contexts, place), |place| at(fields, place));
        match write(&mut line, &bytes, &event, context, field) {
            Ok(end) => {
                prop_assert!(end <= bytes.len().max(header.end));
                prop_assert!(line.ends_with('\n') && line.lines().count() == 1, "{line:?}");
            }
            Err(why) => prop_assert_eq!(why, NoLine::Malformed),
        }
    }
}
