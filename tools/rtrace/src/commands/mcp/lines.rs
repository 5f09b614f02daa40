// SPDX-License-Identifier: GPL-2.0

//! Lines of bytes that arrive in pieces.

/// Largest number of bytes of a request.
const MOST: usize = 1 << 20;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// A line of too many bytes, which are not kept.
    TooLong,
}

/// The begin of a line whose end has not arrived.
#[derive(Debug, Default)]
pub struct Lines {
    begin: Vec<u8>,
    is_too_long: bool,
}

impl Lines {
    /// Adds bytes. Returns the lines that end in them; without bytes, which stand for the end of the input, the line that
    /// has no end.
    pub fn add(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n");
            self.is_too_long |= self.begin.len() + piece.len() > MOST;
            match self.is_too_long {
                true => self.begin.clear(),
                false => self.begin.extend(text.unwrap_or(piece)),
            }
            if text.is_some() {
                lines.push(self.end());
            }
        }
        if bytes.is_empty() && (self.is_too_long || !self.begin.is_empty()) {
            lines.push(self.end());
        }
        lines
    }

    fn end(&mut self) -> Line {
        let line = std::mem::take(&mut self.begin);
        match std::mem::take(&mut self.is_too_long) {
            true => Line::TooLong,
            false => Line::Whole(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_lines() {
        let mut lines = Lines::default();
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(lines.add(b"a"), []);
        assert_eq!(
            lines.add(b"b\n\nc\nd"),
            [whole("ab"), whole(""), whole("c")]
        );
        let long = vec![b'x'; MOST];
        assert_eq!(lines.add(&long), []);
        assert_eq!(lines.add(&long), []);
        assert!(lines.begin.is_empty());
        assert_eq!(lines.add(b"\ne"), [Line::TooLong]);
        assert_eq!(lines.add(b""), [whole("e")]);
        assert_eq!(lines.add(b""), []);
    }
}
