// SPDX-License-Identifier: GPL-2.0

//! Names that users give to sessions and channels. They become names of directories and files.

/// Maximum size of a name in bytes.
pub const MAX: usize = 63;

/// Returns why a name is invalid; [`None`] if it is valid. A valid name has at most [`MAX`] bytes:
/// letters, digits, `_`, `-` and `.`. It does not begin with `-` or `.`.
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
