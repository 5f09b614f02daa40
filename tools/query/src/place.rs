// SPDX-License-Identifier: GPL-2.0

//! Places in a query: of errors, and of integers that SQLite rounds.

use regex::Regex;

/// Pattern of the parts of a query that are no code: texts, quoted names and comments.
pub const QUOTED: &str = r#"'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/"#;

/// Returns the integers of a query that exceed the integers of SQLite.
pub fn rounded(sql: &str) -> Vec<u64> {
    let pattern = Regex::new(&format!(r"(?s){QUOTED}|[\w.]+")).expect("a valid pattern");
    let words = pattern.find_iter(sql).map(|word| word.as_str());
    let numbers = words.filter_map(|word| word.parse().ok());
    // SQLite has -2^63.
    numbers.filter(|number| *number > 1 << 63).collect()
}

/// Returns the line of a query at this place, with a mark below it.
pub fn show(sql: &str, offset: usize) -> String {
    let offset = (0..=offset.min(sql.len())).rev();
    let offset = { offset }.find(|offset| sql.is_char_boundary(*offset));
    let (before, after) = sql.split_at(offset.unwrap_or(0));
    let number = before.matches('\n').count() + 1;
    let begin = before.rsplit('\n').next().unwrap_or_default();
    let end = after.split('\n').next().unwrap_or_default();
    let column = begin.chars().count();
    // Tabs stay, so that the mark is below its character.
    let indent: String = begin
        .chars()
        .map(|c| if c == '\t' { c } else { ' ' })
        .collect();
    format!(
        " (line {number}, column {})\n    {begin}{end}\n    {indent}^",
        column + 1
    )
}

/// Returns the place of a name in a query.
pub fn find(sql: &str, name: &str) -> Option<usize> {
    if name.is_empty() {
        return None;
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut places = sql.match_indices(name).map(|(place, _)| place);
    places.find(|place| {
        let (before, after) = (&sql[..*place], &sql[place + name.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

/// Least similarity of a suggested name.
const SIMILAR: f64 = 0.6;

/// Returns the most similar of these names, if its similarity is at least [`SIMILAR`].
pub fn similar<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let likeness =
        |other: &str| strsim::normalized_damerau_levenshtein(&name, &other.to_lowercase());
    let likenesses = names.iter().map(|other| (likeness(other), *other));
    let best = likenesses.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(likeness, _)| *likeness >= SIMILAR)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_below_the_place() {
        let sql = "SELECT a\n\tFROM häuser x\nLIMIT 1";
        let place = find(sql, "x").unwrap();
        assert_eq!(
            show(sql, place),
            " (line 2, column 14)\n    \tFROM häuser x\n    \t            ^"
        );
        assert_eq!(show("", 7), " (line 1, column 1)\n    \n    ^");
        assert_eq!(find("SELECT ab FROM b", "b"), Some(15));
        assert_eq!(find("SELECT ab FROM b", ""), None);
    }

    #[test]
    fn integers_that_are_rounded() {
        let sql = "SELECT 18446744073709551615, 9223372036854775807, -9223372036854775808, 1.9223372036854775809, \
            '18446744073709551614' -- 18446744073709551613\n WHERE a=9223372036854775809";
        assert_eq!(rounded(sql), [u64::MAX, (1 << 63) + 1]);
    }

    #[test]
    fn similar_names() {
        let names = ["slices", "syscalls", "wakeups"];
        assert_eq!(similar("SYSCALS", &names), Some("syscalls"));
        assert_eq!(similar("processes", &names), None);
        assert_eq!(similar("", &names), None);
    }
}
