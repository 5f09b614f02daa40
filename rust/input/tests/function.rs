// SPDX-License-Identifier: GPL-2.0

//! Words that select functions.

use rtrace_input::function::{Error, FunctionNames, FunctionReason, FunctionWord};

fn parse(word: &str) -> FunctionNames<'_> {
    let choice = FunctionWord::parse(word).unwrap();
    assert!(!choice.removes);
    choice.functions
}

#[test]
fn patterns_modules_and_addresses() {
    assert_eq!(parse("vfs_*"), FunctionNames::Named("vfs_*"));
    let (module, name) = ("ext4", "ext4_[rw]*");
    assert_eq!(
        parse("ext4_[rw]*:mod:ext4"),
        FunctionNames::OfModule { module, name }
    );
    let name = "*";
    assert_eq!(parse(":mod:ext4"), FunctionNames::OfModule { module, name });
    let address = 0xffff_ffff_8123_4560;
    assert_eq!(parse("0xffffffff81234560"), FunctionNames::At(address));
}

#[test]
fn a_bang_takes_out() {
    let choice = FunctionWord::parse("!do_*").unwrap();
    assert!(choice.removes);
    assert_eq!(choice.functions, FunctionNames::Named("do_*"));
}

#[test]
fn what_is_wrong_is_said_where() {
    for (word, at, reason) in [
        ("", 0, FunctionReason::NoName),
        ("!", 1, FunctionReason::NoName),
        ("schedule:traceoff", 9, FunctionReason::NotMod),
        ("vfs_read:mod:", 13, FunctionReason::NoModule),
        (":mod:", 5, FunctionReason::NoModule),
        ("0xvfs", 2, FunctionReason::NoAddress),
        ("0x+1", 2, FunctionReason::NoAddress),
        ("0x", 2, FunctionReason::NoAddress),
        ("!0x12345678123456789", 3, FunctionReason::NoAddress),
    ] {
        assert_eq!(
            FunctionWord::parse(word),
            Err(Error { at, reason }),
            "{word}"
        );
    }
}
