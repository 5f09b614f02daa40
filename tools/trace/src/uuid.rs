// SPDX-License-Identifier: GPL-2.0

//! A trace's identity.

use std::fmt;
use std::str::FromStr;

/// A UUID: 16 bytes in packets, text in the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Uuid(pub [u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl FromStr for Uuid {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits: Vec<u8> = text.bytes().filter(|&b| b != b'-').collect();
        if digits.len() != 32 || text.len() > 36 {
            return Err(());
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16).ok_or(())?;
            let low = char::from(pair[1]).to_digit(16).ok_or(())?;
            *byte = ((high << 4) | low) as u8;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_agree() {
        let text = "00112233-4455-6677-8899-aabbccddeeff";
        let uuid: Uuid = text.parse().unwrap();
        assert_eq!(uuid.0[15], 0xff);
        assert_eq!(uuid.to_string(), text);
    }

    #[test]
    fn rubbish_is_refused() {
        for text in ["", "00", "g0112233-4455-6677-8899-aabbccddeeff", "é"] {
            assert!(text.parse::<Uuid>().is_err(), "{text}");
        }
    }
}
