// SPDX-License-Identifier: GPL-2.0

//! Text of unknown origin on a terminal.

/// Returns whether a terminal obeys the character instead of showing it: control characters, and characters that
/// change the direction of text.
pub fn commands_terminal(character: char) -> bool {
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns
}
