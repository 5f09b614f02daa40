// SPDX-License-Identifier: GPL-2.0

//! The file of a program or library: its build id and its functions.

use crate::walk::in_memory;
use symbols::MappedFile;

pub fn check(data: &[u8]) {
    let (_file, path) = in_memory(data);
    let build_id = symbols::build_id(&path);
    let Some(path) = path.to_str() else { return };
    let file = MappedFile {
        path: path.to_owned(),
        build_id,
    };
    let functions = symbols::functions(&file, None).unwrap_or_default();
    assert!(functions.is_sorted());
    for function in &functions {
        assert!(!function.name.contains(char::is_control));
    }
}
