// SPDX-License-Identifier: GPL-2.0

//! The choice of a session, in advice about commands.

use rtrace_abi::names::DEFAULT_SESSION;

/// The option that makes a command of `rtrace` or `rtraced` work with this session, after a blank. Empty for the session
/// that commands work with by default.
pub fn session_option(session: &str) -> String {
    match session {
        DEFAULT_SESSION => String::new(),
        name => format!(" --session {name}"),
    }
}
