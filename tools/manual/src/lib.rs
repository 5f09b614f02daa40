// SPDX-License-Identifier: GPL-2.0

//! Man pages and shell completions, made from a program's own definition of its arguments,
//! so that they cannot disagree with it.

#![forbid(unsafe_code)]

use clap::Command;
use clap_complete::env::Shells;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Pages that no definition of arguments contains, by section and file name.
const PAGES: [(&str, &str, &str); 3] = [
    (
        "man5",
        "rtrace.toml.5",
        include_str!("../pages/rtrace.toml.5"),
    ),
    (
        "man7",
        "rtrace-filter.7",
        include_str!("../pages/rtrace-filter.7"),
    ),
    (
        "man7",
        "rtrace-maps.7",
        include_str!("../pages/rtrace-maps.7"),
    ),
];

/// Name and place of the completion of each shell, below `completions/`. NAME is that of the program.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "NAME.bash"),
    ("zsh", "_NAME"),
    ("fish", "NAME.fish"),
];

/// Writes `man1/` (a page for the program and one per subcommand), the pages of formats, and `completions/` (bash, zsh,
/// fish) under `dir`. The shells then ask the program itself for completions.
pub fn write(command: Command, dir: &Path) -> io::Result<()> {
    let (man, completions) = (dir.join("man1"), dir.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    let name = command.get_name().to_owned();
    clap_mangen::generate_to(command, &man)?;
    for (section, page, text) in PAGES {
        fs::create_dir_all(dir.join(section))?;
        fs::write(dir.join(section).join(page), text)?;
    }
    let shells = Shells::builtins();
    for (shell, file) in COMPLETIONS {
        let completer = shells.completer(shell).ok_or(io::ErrorKind::Unsupported)?;
        let mut out = File::create(completions.join(file.replace("NAME", &name)))?;
        completer.write_registration("COMPLETE", &name, &name, &name, &mut out)?;
        if shell == "zsh" {
            // The first completion loads the file, and shall complete as well.
            writeln!(
                out,
                "[ \"$funcstack[1]\" = _{name} ] && _clap_dynamic_completer_{name} \"$@\""
            )?;
        }
    }
    Ok(())
}
