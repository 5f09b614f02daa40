// SPDX-License-Identifier: GPL-2.0

//! The queries of `samples/queries`, by name.

use std::fmt::{self, Display, Formatter};

/// A sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Name of the sample.
    pub name: &'static str,
    /// SQL of the sample. Its first comments have the question, and the events that it needs.
    pub sql: &'static str,
}

macro_rules! samples {
    ($($name:literal),* $(,)?) => {
        [$(Sample {
            name: $name,
            sql: include_str!(concat!("../../../samples/queries/", $name, ".sql")),
        }),*]
    };
}

/// All samples.
pub const SAMPLES: [Sample; 10] = samples![
    "cpu-time",
    "errors",
    "functions",
    "interrupt-storm",
    "off-cpu",
    "run-queue",
    "slow-opens",
    "slower-calls",
    "switches",
    "worst-wakeups",
];

/// Returns the sample with this name.
pub fn named(name: &str) -> Option<Sample> {
    SAMPLES.into_iter().find(|sample| sample.name == name)
}

/// Shows the name and the question.
impl Display for Sample {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let comments = self.sql.lines().map_while(|line| line.strip_prefix("-- "));
        let comments = comments.filter(|line| !line.starts_with("SPDX"));
        let what: Vec<_> = comments
            .take_while(|line| !line.starts_with("Of: "))
            .collect();
        write!(f, "{:<16} {}", self.name, what.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;

    #[test]
    fn every_file_is_a_sample() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/queries");
        let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
        let files: BTreeSet<_> = files
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        let names: BTreeSet<_> = SAMPLES.map(|sample| sample.name.to_owned()).into();
        assert_eq!(names, files);
        let text = named("errors").unwrap().to_string();
        assert_eq!(
            text,
            "errors           System calls that failed, by error, and on how many machines."
        );
    }
}
