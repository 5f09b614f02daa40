// SPDX-License-Identifier: GPL-2.0

//! A trace's identity as text.

/// The text form of a UUID (RFC 9562): 36 characters, lower case.
pub struct UuidText([u8; 36]);

impl UuidText {
    /// Formats these bytes.
    pub fn new(uuid: &[u8; 16]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; 36];
        let mut places = text
            .iter_mut()
            .enumerate()
            .filter(|(at, _)| !matches!(at, 8 | 13 | 18 | 23))
            .map(|(_, place)| place);
        for byte in uuid {
            for nibble in [byte >> 4, byte & 15] {
                if let (Some(place), Some(&digit)) =
                    (places.next(), DIGITS.get(usize::from(nibble)))
                {
                    *place = digit;
                }
            }
        }
        Self(text)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text() {
        let mut uuid = [0; 16];
        for (at, byte) in uuid.iter_mut().enumerate() {
            *byte = at as u8 * 17;
        }
        let text = UuidText::new(&uuid);
        assert_eq!(text.as_str(), "00112233-4455-6677-8899-aabbccddeeff");
    }
}
