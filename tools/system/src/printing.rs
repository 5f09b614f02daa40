// SPDX-License-Identifier: GPL-2.0

//! Parts of messages.

use rtrace_abi::names::DEFAULT_SESSION;

/// Returns whether a terminal obeys the character instead of showing it: control characters, and characters that
/// change the direction of text.
pub fn commands_terminal(character: char) -> bool {
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns
}

/// The option that makes a command of `rtrace` or `rtraced` work with this session, after a blank. Empty for the session
/// that commands work with by default.
pub fn session_option(session: &str) -> String {
    match session {
        DEFAULT_SESSION => String::new(),
        name => format!(" --session {name}"),
    }
}
