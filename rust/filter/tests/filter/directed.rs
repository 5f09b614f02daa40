// SPDX-License-Identifier: GPL-2.0

//! Realistic expressions, and errors in others.

use super::*;
use rtrace_abi::schema::Labels;

pub(super) const FIELDS: [Field<'static>; 11] = [
    Field::new("prio", FieldType::signed(32)),
    Field::new("flags", FieldType::hex(64)),
    Field::new("next_comm", FieldType::text(8)),
    Field::new("level", FieldType::unsigned(8)),
    Field::new("low", FieldType::unsigned(8)),
    Field::new("high", FieldType::signed(16)),
    Field::new("mask", FieldType::Array(Integer::unsigned(16), 1)),
    Field::new("length", FieldType::unsigned(8)),
    Field::new("filename", FieldType::String),
    Field::new("data", FieldType::Sequence(Integer::TEXT, "length")),
    Field::new("last", FieldType::unsigned(16)),
];

pub(super) fn record() -> Vec<u8> {
    let mut record = Vec::new();
    record.extend((-5_i32).to_le_bytes());
    record.extend(0xffff_8000_0000_0001_u64.to_le_bytes());
    record.extend(b"kworker\0");
    record.push(200);
    record.push(5);
    record.extend((-3_i16).to_le_bytes());
    record.extend(0b1000_0010_u16.to_le_bytes());
    record.push(4);
    record.extend(b"/etc/passwd\0");
    record.extend(b"ab\0d");
    record.extend(0x1234_u16.to_le_bytes());
    record
}

pub(super) fn moment() -> Moment {
    Moment {
        numbers: [Some(3), None, Some(-1_i64 as u64), None],
        text: Some(b"bash\0\0".to_vec()),
    }
}

fn wants(expression: &str) -> bool {
    let wants = |program: Program<'_>| wants_whole(program, &record(), &moment());
    compiled(expression, &FIELDS, wants)
        .unwrap_or_else(|error| panic!("{}", error.shown(expression)))
}

#[test]
fn numbers_are_compared_by_their_sign() {
    for expression in [
        "prio == -5",
        "prio < 0",
        "prio <= -5",
        "prio >= -5",
        "prio > -6",
        "prio >= -2147483648",
        "prio != 5",
        "prio == 0xfffffffb",
        "prio >= 0x80000000",
        "prio & 0x80000000",
        "prio & 3",
        "prio & -8",
        "flags > 0x7fffffffffffffff",
        "flags == 0xffff800000000001",
        "flags == 18446603336221196289",
        "level == 200",
        "level > 127",
        "level <= 255",
        "level == 0310",
        "low == 5",
        "low & 4",
        "high == -3",
        "high < 0",
        "high == 0xfffd",
        "last == 0x1234",
    ] {
        assert!(wants(expression), "{expression}");
        assert!(!wants(&format!("!({expression})")), "{expression}");
    }
    for expression in [
        "prio > 0",
        "prio & 4",
        "prio & 0",
        "flags < 0",
        "level < 0",
        "level > 255",
        "low & 2",
        "high > 61",
        "last < 0x1234",
    ] {
        assert!(!wants(expression), "{expression}");
        assert!(wants(&format!("!{expression}")), "{expression}");
    }
}

#[test]
fn texts_end_at_a_nul() {
    for expression in [
        "next_comm == \"kworker\"",
        "next_comm == 'kworker'",
        "next_comm != \"kworker/\"",
        "next_comm ~ \"k*er\"",
        // The end of the field does not matter.
        "next_comm ~ \"*er\"",
        "next_comm ~ \"kwork?[a-r]\"",
        "next_comm ~ '!*x*'",
        "next_comm ~ \"\" || next_comm != \"\"",
        "filename ~ \"/etc/*\"",
        "filename.ustring == \"/etc/passwd\"",
        "data == \"ab\"",
        "comm == \"bash\"",
        "COMM ~ '*sh'",
    ] {
        assert!(wants(expression), "{expression}");
    }
    for expression in [
        "next_comm == \"kworke\"",
        "next_comm == \"\"",
        "next_comm ~ \"worker\"",
        "next_comm ~ '!k*'",
        "data ~ '*d'",
        "comm != 'bash'",
    ] {
        assert!(!wants(expression), "{expression}");
    }
}

#[test]
fn cpus_are_numbers_or_sets() {
    for expression in [
        "CPU == 3",
        "cpu & CPUS{0-3,5}",
        "common_cpu == CPUS{3}",
        "cpu & CPUS{3}",
        "cpu != CPUS{2}",
        // A number never equals several CPUs.
        "cpu != CPUS{2-4}",
        "low & CPUS{1-9:1/2}",
        // All its values are CPUs.
        "low != CPUS{1,8}",
        "mask & CPUS{0,1}",
        "mask == CPUS{1,7}",
        "mask != CPUS{1}",
        "mask != CPUS{0-1,7}",
        "mask & CPUS{all}",
    ] {
        assert!(wants(expression), "{expression}");
    }
    for expression in [
        "cpu & CPUS{0-2,4-N}",
        "cpu == CPUS{2-4}",
        "cpu != CPUS{3}",
        // 200 is not the number of a CPU.
        "level != CPUS{0-1}",
        "level & CPUS{0-1}",
        "mask & CPUS{0,2-6}",
        "mask == CPUS{1}",
        "tid & CPUS{0-1}",
    ] {
        assert!(!wants(expression), "{expression}");
    }
}

#[test]
fn contexts_are_found_where_no_field_is() {
    assert!(wants("tid == -1"));
    assert!(wants("common_pid < 0"));
    // The value cannot be determined: the record is refused, whatever the comparison.
    assert!(!wants("nice == 0"));
    assert!(!wants("!(nice == 0)"));
    assert!(wants("prio == -5 || nice == 0"));
    let fields = [Field::new("comm", FieldType::unsigned(8))];
    let wants = |program: Program<'_>| program.wants(&[7], &moment());
    assert_eq!(compiled("comm == 7", &fields, wants), Ok(true));
    assert_eq!(compiled("COMM == 'bash'", &fields, wants), Ok(true));
}

#[test]
fn and_binds_stronger_than_or() {
    let fields = ["a", "b", "c"].map(|name| Field::new(name, FieldType::unsigned(8)));
    for (expression, meaning) in [
        (
            "a==1||b==1&&c==1",
            (|a, b, c| a || b && c) as fn(bool, bool, bool) -> bool,
        ),
        ("a==1&&b==1||c==1", |a, b, c| a && b || c),
        ("(a==1||b==1)&&c==1", |a, b, c| (a || b) && c),
        ("!a==1&&b==1||c==1", |a, b, c| !a && b || c),
        ("! (a==1 && b==1) || !c==1", |a, b, c| !(a && b && c)),
        ("!!(a==1||!(b==1&&!c==1))", |a, b, c| a || !b || c),
        ("((a==1))&&!((b!=1)||c==1)", |a, b, c| a && b && !c),
    ] {
        for bits in 0..8_u8 {
            let record = [bits & 1, (bits >> 1) & 1, bits >> 2];
            let [a, b, c] = record.map(|byte| byte == 1);
            let wants = |program: Program<'_>| program.wants(&record, &moment());
            assert_eq!(
                compiled(expression, &fields, wants),
                Ok(meaning(a, b, c)),
                "{expression} {record:?}"
            );
        }
    }
}

#[test]
fn a_short_record_is_not_wanted() {
    let record = record();
    for (expression, enough) in [
        ("prio == -5", 4),
        ("!prio == 5", 4),
        // Never equal, but there must be a number.
        ("!(prio == CPUS{1-2})", 4),
        ("high == -3", 24),
        ("filename == '/etc/passwd'", 39),
        ("data == 'ab'", 43),
        ("last == 0x1234", 45),
    ] {
        for len in 0..=record.len() {
            let wants = |program: Program<'_>| program.wants(&record[..len], &moment());
            let wanted = compiled(expression, &FIELDS, wants).unwrap();
            assert_eq!(wanted, len >= enough, "{expression} {len}");
        }
    }
}

/// Error and caret position of invalid expressions.
#[test]
fn what_does_not_fit_is_refused() {
    let range = |is_signed, bits| FilterReason::OutOfRange { is_signed, bits };
    let too_long = |most| FilterReason::TooLong { most };
    for (expression, caret, reason) in [
        (
            "prio == 1 && dprio == 2",
            "             ^",
            FilterReason::Unknown,
        ),
        ("Prio == 1", "^", FilterReason::Unknown),
        ("prio.ustring == 1", "^", FilterReason::NoText),
        ("next_comm == 3", "             ^", FilterReason::IsText),
        ("filename == CPUS{1}", "            ^", FilterReason::IsText),
        ("prio == \"3\"", "        ^", FilterReason::IsNumber),
        ("mask & 3", "       ^", FilterReason::IsArray),
        ("mask == 'a'", "        ^", FilterReason::IsArray),
        ("next_comm < 'a'", "          ^", FilterReason::TextOperator),
        ("next_comm & 'a'", "          ^", FilterReason::TextOperator),
        ("prio ~ 3", "     ^", FilterReason::NumberOperator),
        ("prio < CPUS{3}", "     ^", FilterReason::CpusOperator),
        ("mask ~ CPUS{3}", "     ^", FilterReason::CpusOperator),
        ("prio == 2147483648", "        ^", range(true, 32)),
        ("prio == -2147483649", "        ^", range(true, 32)),
        ("prio == 0x100000000", "        ^", range(true, 32)),
        ("level < 256", "        ^", range(false, 8)),
        ("level == -1", "         ^", range(false, 8)),
        ("low == 256", "       ^", range(false, 8)),
        ("high == 32768", "        ^", range(true, 16)),
        ("next_comm == 'kworker/0'", "             ^", too_long(8)),
        ("next_comm != 'kworker/0'", "             ^", too_long(8)),
        ("next_comm ~ 'kw*[o]*r???/0'", "            ^", too_long(8)),
        ("next_comm ~ '!*kworker/0'", "            ^", too_long(8)),
        (
            "COMM == 'averylongprogra'||comm~'averylongprogram'",
            "                                ^",
            too_long(15),
        ),
        ("CPU & CPUS{3-x}", "             ^", FilterReason::NoCpuList),
        (
            "CPU & CPUS{3,12}",
            "             ^",
            FilterReason::LargeCpu { cpus: 12 },
        ),
        ("CPU & CPUS{,}", "      ^", FilterReason::NoCpu),
    ] {
        let error = compiled(expression, &FIELDS, |_| ()).expect_err(expression);
        let at = caret.len() - 1;
        assert_eq!(error, Error { at, reason }, "{}", error.shown(expression));
    }
}

/// The kernel's array for the name of a thread has 16 bytes, of which the last is always NUL.
#[test]
fn only_the_name_of_a_thread_ends_in_a_nul() {
    for (name, most) in [("next_comm", 15), ("device", 16)] {
        let fields = [Field::new(name, FieldType::text(16))];
        let fits = |length: usize| {
            let expression = format!("{name} == '{}'", "x".repeat(length));
            compiled(&expression, &fields, |_| ()).is_ok()
        };
        assert!(fits(most) && !fits(most + 1), "{name}");
    }
}

/// A number of whole bytes at a fixed place needs no more than the first step, whatever its size.
#[test]
fn the_first_step_decides_by_any_size_of_number() {
    for bits in [8, 16, 32, 64] {
        let fields = [Field::new("number", FieldType::unsigned(bits))];
        let decided = |number| {
            compiled("number == 7", &fields, |program| {
                program.first().decides(|_| Some(number))
            })
        };
        assert_eq!(decided(7), Ok(Decision::Accepted), "{bits}");
        assert_eq!(decided(8), Ok(Decision::Refused), "{bits}");
    }
}

#[test]
fn a_cpu_that_the_field_cannot_hold_is_refused() {
    let refused = |expression| {
        let names = FilterNames {
            fields: FIELDS.iter().copied(),
            contexts: &[],
            cpus: 300,
            hides_addresses: false,
        };
        let (mut steps, mut texts) = ([Step::NONE; 1], [0; 64]);
        let memory = ProgramMemory {
            steps: &mut steps,
            texts: &mut texts,
        };
        compile(expression, names, memory).err()
    };
    let reason = FilterReason::OutOfRange {
        is_signed: false,
        bits: 8,
    };
    assert_eq!(refused("low == CPUS{255}"), None);
    assert_eq!(refused("low == CPUS{256}"), Some(Error { at: 7, reason }));
}

#[test]
fn bit_fields_are_refused() {
    let bit_field = Integer::unsigned(8).bit_field(3);
    for ty in [
        FieldType::Integer(bit_field),
        FieldType::Enumeration(bit_field, Labels::new(b"", &[])),
        FieldType::Array(bit_field, 2),
        FieldType::Sequence(bit_field, "first"),
    ] {
        let fields = [
            Field::new("first", FieldType::unsigned(8)),
            Field::new("bits", ty),
            Field::new("last", FieldType::unsigned(8)),
        ];
        let refused = |expression| compiled(expression, &fields, |_| ()).err();
        let reason = FilterReason::BitField;
        assert_eq!(refused("first == 1"), None);
        assert_eq!(refused("bits == 1"), Some(Error { at: 0, reason }));
        assert_eq!(refused("last == 1"), Some(Error { at: 0, reason }));
    }
}

#[test]
fn what_is_too_long_is_refused() {
    let predicates = |count: usize, one: &str| vec![one; count].join("||");
    assert!(compiled(&predicates(64, "prio==1"), &FIELDS, |_| ()).is_ok());
    let error = compiled(&predicates(65, "prio==1"), &FIELDS, |_| ());
    let at = 64 * "prio==1||".len();
    let reason = FilterReason::LongProgram;
    assert_eq!(error, Err(Error { at, reason }));
    // A string needs a step to be passed.
    assert!(compiled(&predicates(32, "data=='a'"), &FIELDS, |_| ()).is_ok());
    let error = compiled(&predicates(33, "data=='a'"), &FIELDS, |_| ());
    let at = 32 * "data=='a'||".len();
    assert_eq!(error, Err(Error { at, reason }));

    let text = format!("filename=='{}'", "x".repeat(255));
    assert!(compiled(&predicates(16, &text), &FIELDS, |_| ()).is_ok());
    let error = compiled(&predicates(17, &text), &FIELDS, |_| ());
    let at = 16 * (text.len() + 2) + "filename==".len();
    let reason = FilterReason::LongTexts;
    assert_eq!(error, Err(Error { at, reason }));
}

/// The length of a sequence is found from the beginning of the record, and from the sequence's
/// place.
#[test]
fn a_sequence_must_be_near_its_length() {
    let fields = [
        Field::new("first", FieldType::unsigned(8)),
        Field::new("one", FieldType::String),
        Field::new("length", FieldType::unsigned(8)),
        Field::new("near", FieldType::Sequence(Integer::TEXT, "length")),
        Field::new("begin", FieldType::Sequence(Integer::TEXT, "first")),
        Field::new("far", FieldType::Sequence(Integer::TEXT, "length")),
        Field::new("behind", FieldType::unsigned(8)),
    ];
    let record = b"\x03ab\0\x02cdefg\x01";
    let wants = |program: Program<'_>| program.wants(record, &moment());
    for expression in ["length == 2", "near == 'cd'", "begin == 'efg'"] {
        assert_eq!(compiled(expression, &fields, wants), Ok(true));
    }
    for expression in ["far == 'xy'", "behind == 1"] {
        let (at, reason) = (0, FilterReason::Incomparable);
        let error = Err(Error { at, reason });
        assert_eq!(compiled(expression, &fields, wants), error);
    }
}

#[test]
fn hidden_addresses_cannot_be_compared() {
    let fields = [
        Field::new("flags", FieldType::hex(64)),
        Field::new("function", FieldType::address()),
        Field::new("stack", FieldType::Array(Integer::address(), 2)),
    ];
    let refusal = |expression, hides_addresses| {
        let names = FilterNames {
            fields: fields.iter().copied(),
            contexts: &[],
            cpus: CPUS,
            hides_addresses,
        };
        let (mut steps, mut texts) = ([Step::NONE; MAX_STEPS], [0; MAX_TEXTS]);
        let memory = ProgramMemory {
            steps: &mut steps,
            texts: &mut texts,
        };
        compile(expression, names, memory).err()
    };
    for (expression, at) in [
        ("function == 1", 0),
        ("flags == 1 || function & 1", 14),
        ("stack & 3", 0),
    ] {
        let reason = FilterReason::Hidden;
        assert_eq!(refusal(expression, true), Some(Error { at, reason }));
    }
    assert_eq!(refusal("flags == 1", true), None);
    assert_eq!(refusal("flags == 1 || function & 1", false), None);
}

/// Returns the numbers of a program's steps and bytes of text, in memory for this many.
fn sizes_in(
    expression: &str,
    step_count: usize,
    text_bytes: usize,
) -> Result<(usize, usize), FilterReason> {
    let contexts = CONTEXTS.map(|(name, id, ty)| FilterContext { name, id, ty });
    let (mut steps, mut texts) = (vec![Step::NONE; step_count], vec![0; text_bytes]);
    let memory = ProgramMemory {
        steps: &mut steps,
        texts: &mut texts,
    };
    let names = FilterNames {
        fields: FIELDS.iter().copied(),
        contexts: &contexts,
        cpus: CPUS,
        hides_addresses: false,
    };
    match compile(expression, names, memory) {
        Ok(program) => Ok((program.steps().len(), program.texts().len())),
        Err(error) => Err(error.reason),
    }
}

#[test]
fn a_program_has_the_room_that_is_given() {
    let sizes = |steps, texts| sizes_in("prio == 1 && comm == 'abc'", steps, texts);
    assert_eq!(sizes(9, 9), Ok((2, 3)));
    assert_eq!(sizes(2, 3), Ok((2, 3)));
    assert_eq!(sizes(1, 3), Err(FilterReason::LongProgram));
    assert_eq!(sizes(2, 2), Err(FilterReason::LongTexts));
    assert_eq!(sizes(0, 0), Err(FilterReason::LongProgram));
    // But never more than the maximum.
    let sizes = |expression: &str| sizes_in(expression, 100, 10_000);
    assert_eq!(sizes(&["prio==1"; 64].join("||")), Ok((64, 0)));
    assert_eq!(
        sizes(&["prio==1"; 65].join("||")),
        Err(FilterReason::LongProgram)
    );
    let text = format!("host=='{}'", "x".repeat(128));
    assert_eq!(sizes(&vec![&*text; 32].join("||")), Ok((32, 4096)));
    assert_eq!(
        sizes(&vec![&*text; 33].join("||")),
        Err(FilterReason::LongTexts)
    );
}

#[test]
fn the_first_step_decides_a_comparison_of_a_number() {
    use Decision::{Accepted, Refused, Undecided};
    let decided = |expression| {
        let record = [record(), vec![0; 8]].concat();
        let decides = |program: Program<'_>| program.first().decides(number_at(&record));
        compiled(expression, &FIELDS, decides).unwrap()
    };
    assert_eq!(decided("prio == -5"), Accepted);
    assert_eq!(decided("prio != -5"), Refused);
    assert_eq!(decided("!(level > 199)"), Refused);
    // The rest may decide otherwise.
    assert_eq!(decided("prio == -5 && level == 7"), Undecided);
    assert_eq!(decided("prio == 5 || level == 200"), Undecided);
    assert_eq!(decided("prio == -5 || level == 7"), Accepted);
    assert_eq!(decided("prio == 5 && level == 200"), Refused);
    assert_eq!(decided("low == 7"), Refused);
    // Not a number, or after a field of variable size.
    assert_eq!(decided("next_comm == \"none\""), Undecided);
    assert_eq!(decided("last == 7"), Undecided);
    assert_eq!(decided("tid == 7"), Undecided);
}
