// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Names of rtrace for those of the crate `tracing`.

use std::path::Path;
use tracing_core::Metadata;

/// Maximum sizes in bytes. The name of an event leaves room for `_begin`.
const PROVIDER_MAX: usize = 58;
const EVENT_MAX: usize = 57;
const FIELD_MAX: usize = 31;

/// `PROVIDER:NAME` of a callsite. The provider is the target, with `.` for `::`. The name is that of the callsite; an event
/// without one gets the name of its file and its line: `main_17`.
pub(crate) fn of(metadata: &Metadata<'_>) -> String {
    let parts = metadata.target().split("::");
    let parts = parts.flat_map(|part| part.split('.')).map(identifier);
    let provider = parts.collect::<Vec<_>>().join(".");
    let place = metadata.file().zip(metadata.line());
    let name = match place {
        Some((file, line)) if metadata.name().starts_with("event ") => {
            let file = Path::new(file).file_stem().unwrap_or_default();
            format!("{}_{line}", file.to_string_lossy())
        }
        _ => metadata.name().to_owned(),
    };
    let provider = cut(&provider, PROVIDER_MAX).trim_end_matches('.');
    format!("{provider}:{}", cut(&identifier(&name), EVENT_MAX))
}

/// The name of a field, which differs from those in `taken`.
pub(crate) fn of_field(name: &str, taken: &[String]) -> String {
    let name = identifier(name);
    // rtrace's own names begin with `_`.
    let name = match name.strip_prefix('_') {
        Some(rest) => format!("f{rest}"),
        None => name,
    };
    let mut number = 1;
    let mut unique = cut(&name, FIELD_MAX).to_owned();
    while taken.contains(&unique) {
        number += 1;
        let end = format!("_{number}");
        unique = format!("{}{end}", cut(&name, FIELD_MAX - end.len()));
    }
    unique
}

/// A C identifier that resembles the name.
fn identifier(name: &str) -> String {
    let letters = name.chars().map(|letter| match letter {
        letter if letter.is_ascii_alphanumeric() => letter,
        _ => '_',
    });
    let letters: String = letters.collect();
    match letters.chars().next() {
        Some(first) if !first.is_ascii_digit() => letters,
        _ => format!("_{letters}"),
    }
}

/// The first `max` bytes of an ASCII text.
fn cut(text: &str, max: usize) -> &str {
    text.get(..max).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_names_of_their_own() {
        let mut taken = Vec::new();
        for (name, expected) in [
            ("size", "size"),
            ("http.method", "http_method"),
            ("http_method", "http_method_2"),
            ("http-method", "http_method_3"),
            ("_private", "fprivate"),
            ("0", "f0"),
            ("", "f"),
            ("größe", "gr__e"),
            (
                "a_name_that_has_more_than_thirty_one_bytes",
                "a_name_that_has_more_than_thirt",
            ),
            (
                "a_name_that_has_more_than_thirty_one_bytes.",
                "a_name_that_has_more_than_thi_2",
            ),
        ] {
            let made = of_field(name, &taken);
            assert_eq!(made, expected, "{name}");
            taken.push(made);
        }
    }
}
