// SPDX-License-Identifier: GPL-2.0

//! Writes the first inputs of every target into the folder given, which is `corpus/` when a
//! format has changed.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = env::args_os().nth(1).expect("usage: seeds DIR");
    for seed in fuzz::seeds() {
        let folder = Path::new(&folder).join(seed.target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(seed.name), seed.bytes)?;
    }
    Ok(())
}
