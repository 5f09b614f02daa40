// SPDX-License-Identifier: GPL-2.0

//! The file of a program or library: its build id, its functions, and those that are inlined in them.

use crate::walk::in_memory;
use std::fs::File;
use symbols::MappedFile;

pub fn check(data: &[u8]) {
    let (_file, path) = in_memory(data);
    let id = symbols::build_id(&path);
    let Ok(opened) = File::open(&path) else {
        return;
    };
    let Some(path) = path.to_str() else { return };
    let file = MappedFile {
        path: path.to_owned(),
        id,
    };
    let mut program = symbols::program(opened, &file, None).unwrap_or_default();
    assert!(program.functions.is_sorted());
    let mut offsets = Vec::new();
    for function in &program.functions {
        assert!(!function.name.contains(char::is_control));
        offsets.push(function.offset);
    }
    for offset in offsets.into_iter().chain(0..64) {
        let inlined = program.inlined(offset);
        assert!(!inlined.iter().any(|name| name.contains(char::is_control)));
    }
}
