// SPDX-License-Identifier: GPL-2.0

//! Lines of `dynamic_events`.

use rtrace_input::dynamic::argument::PointerStep;
use rtrace_input::dynamic::{Argument, Base, Definition, Name, PlaceBase, ProbeLine, Type};

fn parsed(text: &str) -> ProbeLine<'_> {
    match Definition::parse(text) {
        Ok(Definition::Add(probe)) => probe,
        Ok(Definition::Remove(_)) => panic!("{text} adds nothing"),
        Err(error) => panic!("{}", error.shown(text)),
    }
}

fn arguments<'a>(probe: &ProbeLine<'a>) -> Vec<Argument<'a>> {
    let arguments = probe.arguments();
    arguments.map(|a| a.expect("an argument")).collect()
}

#[test]
fn places_and_names_are_parsed() {
    let probe = parsed("  p:mine/open\tdo_sys_openat2+0x10  $comm ");
    assert!(!probe.at_return && probe.max_active == 0);
    let name = Name {
        subsystem: Some("mine"),
        event: "open",
    };
    assert_eq!(probe.name, Some(name));
    assert_eq!(probe.place.base, PlaceBase::Symbol("do_sys_openat2"));
    assert_eq!((probe.place.offset, probe.place.at), (16, 14));
    assert_eq!(probe.text, "do_sys_openat2+0x10  $comm");

    let probe = parsed("r12 nf_tables:nft_do_chain.isra.0");
    assert!(probe.at_return && probe.max_active == 12 && probe.name.is_none());
    let symbol = PlaceBase::Symbol("nf_tables:nft_do_chain.isra.0");
    assert_eq!(probe.place.base, symbol);
    let probe = parsed("r /usr/bin/a:b:0x1139,0x1150,4432 $arg1 $retval");
    assert_eq!(probe.place.base, PlaceBase::File("/usr/bin/a:b"));
    let returns: Vec<_> = probe.place.returns().collect();
    assert_eq!(returns, [0x1150, 4432]);
    assert_eq!(arguments(&probe).len(), 2);
    assert_eq!(
        (probe.place.offset, probe.own_subsystem()),
        (0x1139, "uprobes")
    );
    let probe = parsed("t pelt_se_tp $arg5:u32 $comm");
    assert_eq!(probe.place.base, PlaceBase::Tracepoint("pelt_se_tp"));
    assert_eq!((probe.place.at, probe.own_subsystem()), (2, "tracepoints"));
    assert!(!probe.at_return && arguments(&probe).len() == 2);
    let probe = parsed("p:here 0xffffffff81000000");
    assert_eq!(probe.place.base, PlaceBase::Address(0xffff_ffff_8100_0000));
    assert_eq!(probe.name.map(|name| name.subsystem), Some(None));

    for text in ["-:mine/open", "-mine/open", " - :mine/open"] {
        let removed = Definition::parse(text);
        match text.starts_with(' ') {
            true => assert!(removed.is_err(), "{text}"),
            false => assert_eq!(removed, Ok(Definition::Remove(name)), "{text}"),
        }
    }
}

#[test]
fn arguments_are_parsed() {
    let probe = parsed(
        "r vfs_read fd=%di $arg3:u64 -8(+u0x10($stack2)):b4@3/8 $retval:s32 @0x10:symbol \
         \\-2:x8 text=$comm:string +0($arg2):ustring $stack $duration took=$duration:u32 \
         +12($arg1):be16 %si:be64 -8(%bx+%r9*4):s32",
    );
    let all = arguments(&probe);
    let bases: Vec<_> = all.iter().map(|argument| argument.base).collect();
    let expected = [
        Base::Register("di"),
        Base::Argument(3),
        Base::StackWord(2),
        Base::Result,
        Base::Memory(0x10),
        Base::Constant(u64::MAX - 1),
        Base::Comm,
        Base::Argument(2),
        Base::Stack,
        Base::Duration,
        Base::Duration,
        Base::Argument(1),
        Base::Register("si"),
        Base::Sum {
            base: "bx",
            index: "r9",
            scale: 4,
        },
    ];
    assert_eq!(bases, expected);
    let types: Vec<_> = all.iter().map(|argument| argument.ty).collect();
    let bit_field = Type::BitField {
        bits: 4,
        shift: 3,
        size: 8,
    };
    let expected = [
        None,
        Some(Type::Unsigned(64)),
        Some(bit_field),
        Some(Type::Signed(32)),
        Some(Type::Symbol),
        Some(Type::Hex(8)),
        Some(Type::Text { is_user: false }),
        Some(Type::Text { is_user: true }),
        None,
        Some(Type::Unsigned(64)),
        Some(Type::Unsigned(32)),
        Some(Type::BigEndian(16)),
        Some(Type::BigEndian(64)),
        Some(Type::Signed(32)),
    ];
    assert_eq!(types, expected);
    assert_eq!(
        (all[0].name, all[0].number, all[1].name),
        (Some("fd"), 1, None)
    );
    // The step next to the base comes first.
    let steps: Vec<_> = all[2].steps().collect();
    let step = |offset, is_user| PointerStep { offset, is_user };
    assert_eq!(steps, [step(16, true), step(-8, false)]);
    assert_eq!(all[8].number, 9);
}

#[test]
fn places_in_a_program_are_parsed() {
    let probe = parsed("p:a/b /bin/a:0x10(32) $comm n=%di:u8  :0x20 $comm n=\\-3:s32 :48(0x22)\t$comm n=+4(%bp):x16 ");
    let sites: Vec<_> = probe.sites().map(|s| s.expect("a place")).collect();
    let places = sites.iter().map(|site| {
        let place = site.place;
        assert_eq!(place.base, PlaceBase::File("/bin/a"));
        (place.at, place.offset, place.counter)
    });
    let places: Vec<_> = places.collect();
    assert_eq!(places, [(6, 16, 32), (38, 32, 0), (60, 48, 34)]);
    let last: Vec<_> = sites[2].arguments().map(|a| a.expect("one")).collect();
    assert_eq!((last[1].name, last[1].at), (Some("n"), 76));
    assert_eq!(last[1].base, Base::Register("bp"));
    // The field holds the values of all places.
    let types = probe.recorded_types();
    let recorded: Vec<_> = last.iter().map(|a| types.of(a)).collect();
    assert_eq!(recorded, [None, Some(Type::Signed(32))]);
    for (types, expected) in [
        (["u32", "u32"], Type::Unsigned(32)),
        (["x8", "u32"], Type::Unsigned(32)),
        (["x32", "u8"], Type::Hex(32)),
        (["s8", "s64"], Type::Signed(64)),
        (["s32", "u32"], Type::Signed(64)),
        (["u8", "s8"], Type::Signed(16)),
        (["u64", "s8"], Type::Signed(64)),
        (["ustring", "ustring"], Type::Text { is_user: true }),
    ] {
        let [one, other] = types;
        let line = format!("p /bin/a:1 %di:{one} :2 %si:{other}");
        let probe = parsed(&line);
        let recorded = probe.recorded_types().of(&arguments(&probe)[0]);
        assert_eq!(recorded, Some(expected), "{line}");
    }
    let many = format!("p /bin/a:1{}", " :2".repeat(255));
    assert_eq!(parsed(&many).sites().count(), 256);
}

#[test]
fn what_is_wrong_is_shown() {
    let sites = format!("p /bin/a:1{}", " :2".repeat(256));
    let many = format!("p f{}", " %di".repeat(33));
    let returns = format!("r /bin/a:1{}", ",2".repeat(65));
    let deep = format!("p f {}%di{}", "+0(".repeat(9), ")".repeat(9));
    let long = format!("p:{} f", "x".repeat(64));
    for (text, at, reason) in [
        ("", 0, "expected 'p'"),
        ("q f", 0, "expected 'p'"),
        ("px f", 1, "expected 'p'"),
        ("p", 1, "expected a function"),
        ("p ", 2, "expected a function"),
        ("p3 f", 1, "expected the maximum number"),
        ("r0 f", 1, "expected the maximum number"),
        ("r4097 f", 1, "expected the maximum number"),
        ("p: f", 2, "expected [SUBSYSTEM/]EVENT"),
        ("p:a/ f", 2, "expected [SUBSYSTEM/]EVENT"),
        ("p:a/1 f", 2, "expected [SUBSYSTEM/]EVENT"),
        ("p:a-b f", 3, "expected 'p'"),
        (&long, 2, "expected [SUBSYSTEM/]EVENT"),
        ("-", 1, "expected [SUBSYSTEM/]EVENT"),
        ("-:a b", 4, "expected the end"),
        ("p 12", 2, "expected a function"),
        ("p 0x", 2, "expected a function"),
        ("p /bin/a", 2, "expected /FILE:OFFSET"),
        ("p /bin/a:", 2, "expected /FILE:OFFSET"),
        ("p /bin/a:main", 2, "expected /FILE:OFFSET"),
        ("p /bin/a:1+1", 2, "expected /FILE:OFFSET"),
        ("r /bin/a:1 $arg1", 2, "expected /FILE:OFFSET,RETURN"),
        ("r /bin/a:1,", 2, "expected /FILE:OFFSET"),
        ("r /bin/a:1,x", 2, "expected /FILE:OFFSET"),
        ("r /bin/a:1,2,", 2, "expected /FILE:OFFSET"),
        ("p /bin/a:1,2", 2, "return instructions are for"),
        (&returns, 2, "more than 64 return"),
        ("p /bin/a:1(", 2, "expected /FILE:OFFSET"),
        ("p /bin/a:1(2", 2, "expected /FILE:OFFSET"),
        ("p /bin/a:1(2)3", 2, "expected /FILE:OFFSET"),
        ("p /bin/a:1()", 2, "expected /FILE:OFFSET"),
        ("r /bin/a:1(2),3", 2, "only 'p' in a program has a counter"),
        ("p /bin/a:1 :", 11, "expected /FILE:OFFSET"),
        ("p /bin/a:1 :x", 11, "expected /FILE:OFFSET"),
        ("p /bin/a:1 :2,3", 11, "expected /FILE:OFFSET"),
        ("r /bin/a:1,2 :3", 13, "only 'p' in a program has several"),
        ("p f :3", 4, "only 'p' in a program has several"),
        ("t f :3", 4, "only 'p' in a program has several"),
        ("p /bin/a:1 %di :2", 15, "the arguments have other"),
        ("p /bin/a:1 :2 %di", 14, "the arguments have other"),
        ("p /bin/a:1 a=%di :2 b=%di", 20, "the arguments have other"),
        (
            "p /bin/a:1 %di:u8 :2 %di:string",
            21,
            "the arguments have other",
        ),
        ("p /bin/a:1 %di:u8 :2 %di", 21, "the arguments have other"),
        ("p /bin/a:1 $comm :2 %di", 20, "the arguments have other"),
        ("p /bin/a:1 %di :2 x", 18, "expected %REGISTER"),
        (&sites, 10 + 3 * 255 + 1, "more than 256 places"),
        ("p f+", 4, "expected an offset"),
        ("p f+4294967296", 4, "expected an offset"),
        ("p f%di", 2, "expected a function"),
        ("t", 1, "expected a tracepoint"),
        ("t3 a", 1, "expected the maximum number"),
        ("t a+4", 2, "expected a tracepoint"),
        ("t a:b", 2, "expected a tracepoint"),
        ("t a $arg6", 4, "at a tracepoint only $arg1"),
        ("t a %di", 4, "at a tracepoint only $arg1"),
        ("t a $retval", 4, "at a tracepoint only $arg1"),
        ("t a +8($stack)", 4, "at a tracepoint only $arg1"),
        ("t a $stack2", 4, "at a tracepoint only $arg1"),
        ("r f+1", 2, "a function's return"),
        ("p f %di+", 7, "expected u8"),
        ("p f %di+%si", 4, "expected %REGISTER"),
        ("p f %di+%si*3", 4, "expected %REGISTER"),
        ("p f %di+%si*", 4, "expected %REGISTER"),
        ("t a %di+%si*8", 4, "at a tracepoint only $arg1"),
        ("p f x", 4, "expected %REGISTER"),
        ("p f =%di", 4, "expected a name"),
        ("p f 1a=%di", 4, "expected a name"),
        ("p f $arg0", 4, "arguments 1 to 6"),
        ("p f $arg7", 4, "arguments 1 to 6"),
        ("p f $stackx", 4, "expected %REGISTER"),
        ("p f $retval", 4, "$retval is known"),
        ("p f $duration", 4, "$duration is known"),
        ("t a $duration", 4, "at a tracepoint only $arg1"),
        ("r f +0($duration)", 17, "$duration is a number"),
        ("r f $duration:string", 13, "$duration is a number"),
        ("r f $duration:b4@0/8", 13, "$duration is a number"),
        ("p f+1 $arg1", 6, "$argN is known"),
        ("p 0x10 $arg1", 7, "$argN is known"),
        ("p f +(%di)", 5, "expected a number"),
        ("p f +9223372036854775808(%di)", 24, "expected a number"),
        ("p f +1%di", 6, "expected a parenthesis"),
        ("p f +1(%di", 10, "expected a parenthesis"),
        ("p f +1(%di))", 11, "expected u8"),
        ("p f %di:u7", 8, "expected u8"),
        ("p f %di:u128", 8, "expected u8"),
        ("p f %di:be8", 8, "expected u8"),
        ("p f %di:be24", 8, "expected u8"),
        ("r f $duration:be16", 13, "$duration is a number"),
        ("p f %di:b9@0/8", 8, "expected u8"),
        ("p f %di:b4@5/8", 8, "expected u8"),
        ("p f %di:b0@0/8", 8, "expected u8"),
        ("p f %di:strings", 8, "expected u8"),
        ("p f $comm:u8", 9, "$comm is a string"),
        ("p f +0($comm)", 13, "$comm is a string"),
        ("p f %ax y=@", 10, "expected %REGISTER"),
        (&many, 3 + 1 + 4 * 32, "more than 32"),
        (&deep, 4 + 3 * 8, "more than 8"),
    ] {
        let error = Definition::parse(text).expect_err(text);
        let said = error.reason.to_string();
        assert!(said.starts_with(reason), "{text}: {said}");
        assert_eq!(error.at, at, "{text}");
    }
}
