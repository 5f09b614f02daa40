// SPDX-License-Identifier: GPL-2.0

//! Names that users give: of sessions and channels. They become names of directories and files.

/// The longest name, in bytes.
pub const MAX: usize = 63;

/// Why a name is none; [`None`] if it is one: letters, digits, `_`, `-` and `.`, not beginning
/// with one of the last two, of at most [`MAX`] bytes.
pub fn refusal(name: &str) -> Option<&'static str> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    match name.as_bytes() {
        [] => Some("a name must not be empty"),
        [b'-' | b'.', ..] => Some("a name must not begin with '-' or '.'"),
        name if name.len() > MAX => Some("a name must have at most 63 bytes"),
        name if !name.iter().all(|&byte| is_allowed(byte)) => {
            Some("a name is made of letters, digits, '_', '-' and '.'")
        }
        _ => None,
    }
}
