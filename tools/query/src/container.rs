// SPDX-License-Identifier: GPL-2.0

//! The function `container(path)`: the container that a cgroup with this path belongs to, or NULL.

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, Result};
use system::container::Container;

/// Adds the function.
pub fn add(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("container", 1, flags, |context| {
        let path = context.get::<Option<String>>(0)?;
        // Texts in tables have this for a backslash that would look like an escape.
        let path = path.map(|path| path.replace("\\x5c", "\\"));
        Ok(path.and_then(|path| Some(Container::of(&path)?.to_string())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_its_container() {
        let connection = Connection::open("").unwrap();
        add(&connection).unwrap();
        for (path, expected) in [
            ("'/machine.slice/machine-web.scope/x'", Some("web")),
            (
                r"'/machine.slice/machine-my\x5cx2dweb.scope'",
                Some("my-web"),
            ),
            ("'/system.slice'", None),
            ("NULL", None),
        ] {
            let sql = format!("SELECT container({path})");
            let found: Option<String> = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
            assert_eq!(found.as_deref(), expected, "{path}");
        }
    }
}
