// SPDX-License-Identifier: GPL-2.0

//! The file of a program or library: its build id and its functions.

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
    let functions = symbols::functions(opened, &file, None).unwrap_or_default();
    assert!(functions.is_sorted());
    for function in &functions {
        assert!(!function.name.contains(char::is_control));
    }
}
