// SPDX-License-Identifier: GPL-2.0

//! Recipes of `rtrace count`: maps with the names that other tools made known.

use std::fs;
use std::path::Path;
use system::{Error, Result};

/// Name and text of each recipe.
const RECIPES: [(&str, &str); 8] = [
    ("cpudist", include_str!("cpudist.map")),
    ("fsyncs", include_str!("fsyncs.map")),
    ("hardirqs", include_str!("hardirqs.map")),
    ("offcputime", include_str!("offcputime.map")),
    ("runqlat", include_str!("runqlat.map")),
    ("softirqs", include_str!("softirqs.map")),
    ("syscount", include_str!("syscount.map")),
    ("syslat", include_str!("syslat.map")),
];

/// The text of a recipe: of the one with this name, or of a file.
pub fn text(name: &str) -> Result<String> {
    let known = RECIPES.iter().find(|(known, _)| *known == name);
    match known {
        Some((_, text)) => Ok((*text).to_owned()),
        None => fs::read_to_string(name).map_err(Error::read(Path::new(name))),
    }
}

/// The texts of all recipes.
pub fn all() -> String {
    let texts = RECIPES.map(|(_, text)| text);
    texts.join("\n")
}

/// The maps that a recipe defines.
pub fn maps(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtrace_input::map::MapLine;

    #[test]
    fn recipes_are_maps() {
        for (name, text) in RECIPES {
            let lines: Vec<_> = maps(text).collect();
            let [line] = lines.as_slice() else {
                panic!("{name}: {lines:?}");
            };
            let Ok(MapLine::Define(map)) = MapLine::parse(line) else {
                panic!("{name}: {line}");
            };
            assert_eq!(map.name, name);
            // It can be copied from `cat set_map`.
            assert_eq!(map.to_string(), *line);
            assert!(text.starts_with(&format!("# {name}: ")));
        }
    }
}
