// SPDX-License-Identifier: GPL-2.0

//! Values of settings as a user writes them, on the command line or in a file.

use system::quantity;

/// A size of an AUX area, as the kernel takes it.
pub fn aux_size(text: &str) -> Result<u64, String> {
    match quantity::size(text)? {
        size if size == 0 || size.is_power_of_two() && size >= 4096 => Ok(size),
        _ => Err("expected 0 or a power of two of at least 4K".to_owned()),
    }
}

/// Parses one pattern of events or functions, the text between two commas. White space would end it in `set_event`.
pub fn pattern(word: &str) -> Result<String, String> {
    let is_set = word.trim_start_matches('!').starts_with('%');
    if word.is_empty() || word == "!" {
        Err("the pattern is empty".to_owned())
    } else if word.contains(char::is_whitespace) {
        Err("the pattern contains white space: separate patterns by commas".to_owned())
    } else if is_set && decode::chosen(word.trim_start_matches('!')).is_empty() {
        let sets = decode::SETS.map(|set| format!("%{set}")).join(", ");
        Err(format!("unknown set of system calls: the sets are {sets}"))
    } else {
        Ok(word.to_owned())
    }
}

/// Parses the number of samples per second.
pub fn frequency(word: &str) -> Result<u32, &'static str> {
    let frequency = word.parse().ok();
    frequency
        .filter(|frequency| (1..=100_000).contains(frequency))
        .ok_or("expected a number of samples per second from 1 to 100000; -T traces functions")
}

/// Parses one pattern of functions.
pub fn function(word: &str) -> Result<String, String> {
    if word.starts_with('!') {
        return Err(
            "-N already excludes these functions: write the pattern without `!`".to_owned(),
        );
    }
    pattern(word)
}

/// Parses one filter. The kernel takes an empty filter and `0` for "no filter", and would record all events.
pub fn filter(expression: &str) -> Result<String, &'static str> {
    match expression.trim() {
        "" => Err("the filter is empty; without --filter all events are recorded"),
        "0" => Err("a filter compares a field with a value; `0` would record all events"),
        _ => Ok(expression.to_owned()),
    }
}
