// SPDX-License-Identifier: GPL-2.0

//! Words that select functions.

use rtrace_input::function::{Choice, Error, Functions, Reason};

fn parse(word: &str) -> Functions<'_> {
    let choice = Choice::parse(word).unwrap();
    assert!(!choice.removes);
    choice.functions
}

#[test]
fn patterns_modules_and_addresses() {
    assert_eq!(parse("vfs_*"), Functions::Named("vfs_*"));
    let (module, name) = ("ext4", "ext4_[rw]*");
    assert_eq!(
        parse("ext4_[rw]*:mod:ext4"),
        Functions::OfModule { module, name }
    );
    let name = "*";
    assert_eq!(parse(":mod:ext4"), Functions::OfModule { module, name });
    let address = 0xffff_ffff_8123_4560;
    assert_eq!(parse("0xffffffff81234560"), Functions::At(address));
}

#[test]
fn a_bang_takes_out() {
    let choice = Choice::parse("!do_*").unwrap();
    assert!(choice.removes);
    assert_eq!(choice.functions, Functions::Named("do_*"));
}

#[test]
fn what_is_wrong_is_said_where() {
    for (word, at, reason) in [
        ("", 0, Reason::NoName),
        ("!", 1, Reason::NoName),
        ("schedule:traceoff", 9, Reason::NotMod),
        ("vfs_read:mod:", 13, Reason::NoModule),
        (":mod:", 5, Reason::NoModule),
        ("0xvfs", 2, Reason::NoAddress),
        ("0x+1", 2, Reason::NoAddress),
        ("0x", 2, Reason::NoAddress),
        ("!0x12345678123456789", 3, Reason::NoAddress),
    ] {
        assert_eq!(Choice::parse(word), Err(Error { at, reason }), "{word}");
    }
}
