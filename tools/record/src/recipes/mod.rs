// SPDX-License-Identifier: GPL-2.0

//! Recipes: maps with the names that other tools made known, for `rtrace count` and for recordings.

use rtrace_input::map::MapLine;
use std::fs;
use std::path::Path;
use system::{Error, Result};

/// Name and text of each recipe.
const RECIPES: [(&str, &str); 21] = [
    ("argdist", include_str!("argdist.map")),
    ("biolatency", include_str!("biolatency.map")),
    ("biosize", include_str!("biosize.map")),
    ("cpudist", include_str!("cpudist.map")),
    ("ext4dist", include_str!("ext4dist.map")),
    ("fsyncs", include_str!("fsyncs.map")),
    ("funccount", include_str!("funccount.map")),
    ("funclatency", include_str!("funclatency.map")),
    ("hardirqs", include_str!("hardirqs.map")),
    ("offcpustack", include_str!("offcpustack.map")),
    ("offcputime", include_str!("offcputime.map")),
    ("profile", include_str!("profile.map")),
    ("runqlat", include_str!("runqlat.map")),
    ("runqlen", include_str!("runqlen.map")),
    ("softirqs", include_str!("softirqs.map")),
    ("stackcount", include_str!("stackcount.map")),
    ("syscount", include_str!("syscount.map")),
    ("syslat", include_str!("syslat.map")),
    ("tcpconnlat", include_str!("tcpconnlat.map")),
    ("vfsstat", include_str!("vfsstat.map")),
    ("wakeuptime", include_str!("wakeuptime.map")),
];

/// The subsystem, in a recipe, of the events that its own lines define.
const OWN: &str = "probes:";

/// A recipe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    /// Specifications of the events that it defines, as `rtrace record -k` takes them.
    pub probes: Vec<String>,
    /// Lines of `set_map`. In their lists of events, [`OWN`] is the subsystem of the defined events.
    pub maps: Vec<String>,
}

impl Recipe {
    /// The recipe with this name, or in this file.
    pub fn named(name: &str) -> Result<Self> {
        let known = RECIPES.iter().find(|(known, _)| *known == name);
        Ok(match known {
            Some((_, text)) => Self::parse(text),
            None => Self::parse(&fs::read_to_string(name).map_err(Error::read(Path::new(name)))?),
        })
    }

    /// Parses a text: lines of `set_map`, lines `-k SPEC`, and comments, which begin with `#`.
    fn parse(text: &str) -> Self {
        let mut recipe = Self::default();
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.strip_prefix("-k ") {
                Some(spec) => recipe.probes.push(spec.trim().to_owned()),
                None => recipe.maps.push(line.to_owned()),
            }
        }
        recipe
    }
}

/// A line of `set_map` whose own events have this subsystem.
pub fn with_subsystem(line: &str, subsystem: &str) -> String {
    let Ok(MapLine::Define(map)) = MapLine::parse(line) else {
        return line.to_owned();
    };
    let mut changed = line.to_owned();
    // The begins come later in the line, so their places stay.
    for list in [map.begins, Some(map.events)].into_iter().flatten() {
        let items = list.items().map(|item| match item.text.strip_prefix(OWN) {
            Some(name) => format!("{subsystem}:{name}"),
            None => item.text.to_owned(),
        });
        let items: Vec<_> = items.collect();
        changed.replace_range(list.at..list.at + list.text.len(), &items.join(","));
    }
    changed
}

/// The names of all recipes.
pub fn names() -> impl Iterator<Item = &'static str> {
    RECIPES.into_iter().map(|(name, _)| name)
}

/// The texts of all recipes.
pub fn all() -> String {
    let texts = RECIPES.map(|(_, text)| text);
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_maps() {
        for (name, text) in RECIPES {
            let recipe = Recipe::named(name).unwrap();
            let [line] = recipe.maps.as_slice() else {
                panic!("{name}: {recipe:?}");
            };
            let Ok(MapLine::Define(map)) = MapLine::parse(line) else {
                panic!("{name}: {line}");
            };
            assert_eq!(map.name, name);
            assert_eq!(line.contains(OWN), !recipe.probes.is_empty(), "{name}");
            // It can be copied from `cat set_map`.
            assert_eq!(map.to_string(), *line);
            assert!(text.starts_with(&format!("# {name}: ")));
        }
        let names: Vec<_> = RECIPES.iter().map(|(name, _)| name).collect();
        assert!(names.is_sorted());
    }

    #[test]
    fn own_events_get_a_subsystem() {
        let recipe = Recipe::parse(
            "# c\n-k f(a)\n -k  g -> ret\n\nm probes:f,a:b from probes:* if c == \"probes:f\"\n",
        );
        assert_eq!(recipe.probes, ["f(a)", "g -> ret"]);
        assert_eq!(
            with_subsystem(&recipe.maps[0], "record_7"),
            "m record_7:f,a:b from record_7:* if c == \"probes:f\""
        );
        assert_eq!(with_subsystem("m a:b", "record_7"), "m a:b");
    }
}
