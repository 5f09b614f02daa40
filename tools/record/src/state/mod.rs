// SPDX-License-Identifier: GPL-2.0

//! The state of the system, recorded in a session's trace: `--state` and `rtrace state`.
//!
//! The kernel records threads, namespaces and open files, in order with its events. This module reads the rest from
//! /proc and /sys, and passes it to the kernel as lines.

mod cpus;
mod devices;
mod interrupts;
mod lines;
pub mod mounts;

use control::{BufferSize, Session};
use lines::Line;
use std::collections::HashSet;
use std::io;
use std::path::Path;
use terminal::say;

/// The channel of the state, which `--state` makes.
pub const CHANNEL: &str = "state";

/// The events of the state.
pub const EVENTS: &str = "statedump:*";

/// Size of each CPU's buffer in that channel: room for some thousand threads that are not read meanwhile.
pub const SIZE: BufferSize = BufferSize {
    subbuf_size: 256 << 10,
    subbuf_count: 4,
};

/// Maximum number of bytes to write at once. The kernel takes twice as many.
const AT_ONCE: usize = 32 << 10;

/// Finds the objects of a kind, below the folders /proc and /sys.
type Find = fn(&Path, &Path) -> io::Result<Vec<Line>>;

/// The events made here: name, objects, and the function that finds the objects.
const KINDS: [(&str, &str, Find); 7] = [
    (interrupts::EVENT, "interrupts", interrupts::find),
    (
        devices::INTERFACE,
        "network interfaces",
        devices::interfaces,
    ),
    (devices::BLOCK, "block devices", devices::block),
    (cpus::EVENT, "CPUs", cpus::find),
    (devices::MODULE, "modules", devices::modules),
    (mounts::MOUNT, "mounts", mounts::mounts),
    (mounts::CGROUP, "cgroups", mounts::cgroups),
];

/// Records the state in an active session. If a part cannot be read, reports this and leaves the part out.
pub fn record(session: &Session) -> anyhow::Result<()> {
    let mut enabled = HashSet::new();
    for channel in session.channels()? {
        enabled.extend(channel.enabled_events()?);
    }
    let is_enabled = |name: &str| enabled.contains(&format!("statedump:{name}"));
    session.record_state("lttng_statedump_start\nthreads\n")?;
    let mut text = String::new();
    for (event, what, find) in KINDS {
        if !is_enabled(event) {
            continue;
        }
        match find(Path::new("/proc"), Path::new("/sys")) {
            Ok(lines) => {
                for line in lines {
                    line.write(&mut text);
                    if text.len() > AT_ONCE {
                        session.record_state(&text)?;
                        text.clear();
                    }
                }
            }
            Err(error) => say(format_args!(
                "cannot record the {what} of the state: {error}"
            )),
        }
    }
    text.push_str("lttng_statedump_end\n");
    Ok(session.record_state(&text)?)
}
