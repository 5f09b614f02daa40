// SPDX-License-Identifier: GPL-2.0

//! Man pages and shell completions, made from a program's own definition of its arguments,
//! so that they cannot disagree with it.

#![forbid(unsafe_code)]

use clap::Command;
use clap_complete::{generate_to, Shell};
use std::fs;
use std::io;
use std::path::Path;

/// Writes `man1/` (a page for the program and one per subcommand) and `completions/` (bash,
/// zsh, fish) under `dir`.
pub fn write(command: Command, dir: &Path) -> io::Result<()> {
    let (man, completions) = (dir.join("man1"), dir.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    let name = command.get_name().to_owned();
    clap_mangen::generate_to(command.clone(), &man)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command.clone(), &name, &completions)?;
    }
    Ok(())
}
