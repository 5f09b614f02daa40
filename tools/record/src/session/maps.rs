// SPDX-License-Identifier: GPL-2.0

//! Maps of a session, and the events that they need.

use crate::recipes::{with_subsystem, Recipe};
use crate::session::given::Given;
use crate::session::maker::Maker;
use control::Session;
use rtrace_input::map::MapLine;

/// Maps to define.
#[derive(Debug, Default)]
pub struct Maps {
    /// Lines of `set_map`.
    lines: Vec<Given<String>>,
    /// Specifications of the events that the maps need, as -k takes them.
    pub probes: Vec<String>,
}

impl Maps {
    /// Adds a map: a line of `set_map`, or the maps of a recipe, by its name or file. The error is a text for the user.
    pub fn add(&mut self, given: &Given<String>) -> Result<(), String> {
        let text = given.value.trim();
        let recipe = match text.contains(char::is_whitespace) {
            true => Recipe {
                maps: vec![text.to_owned()],
                ..Recipe::default()
            },
            false => Recipe::named(text).map_err(|error| given.wrong(error))?,
        };
        for line in recipe.maps {
            match MapLine::parse(&line) {
                Ok(MapLine::Define(_)) => {}
                Ok(MapLine::Delete(_)) => return Err(given.wrong("expected a map: NAME EVENT ...")),
                Err(error) => return Err(given.wrong(format_args!("\n{}", error.shown(&line)))),
            }
            self.lines.push(given.clone().map(|_| line));
        }
        self.probes.extend(recipe.probes);
        Ok(())
    }

    /// Adds other maps.
    pub fn extend(&mut self, other: Self) {
        self.lines.extend(other.lines);
        self.probes.extend(other.probes);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Defines the maps in the session. Maps of the same names are replaced.
    pub fn apply(&self, session: &Session) -> anyhow::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let subsystem = Maker::me()?.subsystem();
        for line in &self.lines {
            line.used(session.replace_map(&with_subsystem(&line.value, &subsystem)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_lines_or_recipes() {
        let mut maps = Maps::default();
        for text in ["runqlat", "vfsstat", " m a:b by comm "] {
            maps.add(&text.to_owned().into()).unwrap();
        }
        let lines: Vec<_> = maps.lines.iter().map(|line| &line.value).collect();
        assert!(lines[0].starts_with("runqlat sched:sched_switch "));
        assert_eq!(lines[1..], ["vfsstat probes:* by event", "m a:b by comm"]);
        assert!(maps.probes.contains(&"vfs_read".to_owned()));
        for wrong in ["/no/such/recipe", "m a:b by", "!m", "! m", ""] {
            assert!(maps.add(&wrong.to_owned().into()).is_err(), "{wrong}");
        }
        let error = maps.add(&Given::in_file("m a:b by".to_owned(), "f", 3));
        assert!(error.unwrap_err().starts_with("f:3: "));
    }
}
