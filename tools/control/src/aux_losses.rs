// SPDX-License-Identifier: GPL-2.0

//! The bytes that found no room in the AUX areas of a trace, as the kernel counts them.

use std::fmt;
use std::ops::AddAssign;

/// The losses of a channel, or of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuxLosses {
    /// The number of times that there was no room.
    pub refused: u64,
    /// The number of lost bytes, as far as the module told it.
    pub lost: u64,
}

impl AuxLosses {
    /// Parses the table of a channel: a line of names, and a row for each CPU.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let names = lines.next().unwrap_or_default().split_whitespace();
        let names: Vec<_> = names.collect();
        let mut sum = Self::default();
        for line in lines {
            let values: Vec<_> = line.split_whitespace().collect();
            let value = |name: &str| {
                let at = names.iter().position(|known| *known == name);
                let value = at.and_then(|at| values.get(at)?.parse().ok());
                value.ok_or_else(|| format!("row `{line}`: column `{name}` has no number"))
            };
            sum += Self {
                refused: value("refused")?,
                lost: value("lost")?,
            };
        }
        Ok(sum)
    }

    /// Whether there are losses.
    pub fn any(self) -> bool {
        self != Self::default()
    }
}

impl AddAssign for AuxLosses {
    fn add_assign(&mut self, other: Self) {
        self.refused = self.refused.saturating_add(other.refused);
        self.lost = self.lost.saturating_add(other.lost);
    }
}

/// Writes a line for people.
impl fmt::Display for AuxLosses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { refused, lost } = self;
        write!(
            f,
            "{lost} bytes for AUX areas were lost; there was no space {refused} times"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_added() {
        let names = "cpu chunks bytes read overwritten refused lost collisions\n";
        let table = format!("{names}0 5 100 100 0 2 30 0\n1 5 100 90 0 1 12 7\n");
        let sum = AuxLosses {
            refused: 3,
            lost: 42,
        };
        assert_eq!(AuxLosses::parse(&table), Ok(sum));
        assert!(sum.any() && !AuxLosses::parse(names).unwrap().any());
        for wrong in ["cpu refused\n0 1\n", "cpu refused lost\n0 1\n"] {
            let why = AuxLosses::parse(wrong).unwrap_err();
            assert!(why.contains("column `lost` has no number"), "{why}");
        }
    }
}
