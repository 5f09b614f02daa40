// SPDX-License-Identifier: GPL-2.0

//! The maps of a session.

use crate::session::Session;
use store::maps::{self, MapTable};
use system::Result;

impl Session {
    /// Defines a map by a line of `set_map`.
    pub fn set_map(&self, line: &str) -> Result<()> {
        self.write("set_map", line)
    }

    /// Defines a map by a line of `set_map`. A map of the same name is deleted first.
    pub fn replace_map(&self, line: &str) -> Result<()> {
        let name = |line: &str| line.split_whitespace().next().map(str::to_owned);
        let known = self.read("set_map")?;
        if let Some(known) =
            name(line).filter(|new| known.lines().any(|l| name(l).as_ref() == Some(new)))
        {
            self.write("set_map", &format!("!{known}"))?;
        }
        self.set_map(line)
    }

    /// Whether a map has the user's call stack as a key.
    pub fn has_map_of_user_stacks(&self) -> Result<bool> {
        Ok(self.read("set_map")?.lines().any(maps::has_user_stack))
    }

    /// Removes the entries of all maps.
    pub fn clear_maps(&self) -> Result<()> {
        self.replace("maps", "")
    }

    /// The entries of all maps, as the kernel writes them. Empty: the session has no map.
    pub fn maps_text(&self) -> Result<String> {
        self.read("maps")
    }

    /// The entries of all maps.
    pub fn maps(&self) -> Result<Vec<MapTable>> {
        let text = self.maps_text()?;
        maps::parse(&text).map_err(|error| self.unreadable("maps", &error.to_string()))
    }
}
