// SPDX-License-Identifier: GPL-2.0

//! A receiver's connection: the bytes are all data that a sender or a watcher sends.
//!
//! For any bytes, the receiver writes only into directories of the form HOST-UUID. Each stream there consists
//! of complete packets of that trace, except for one that the connection cut off.

use ctf::PacketHeaders;
use network::{Receiver, Security};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use store::OutputOptions;
use tempfile::TempDir;
use uuid::Uuid;

/// Maximum size of the data: the buffer of an unread socket has room for it.
const MOST: usize = 64 << 10;

/// The receiver, and its directory.
struct Place {
    dir: TempDir,
    receiver: Receiver,
}

fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        // In memory, because each input is written and read back.
        let dir = TempDir::new_in("/dev/shm")
            .or_else(|_| TempDir::new())
            .unwrap();
        let traces = dir.path().join("traces");
        fs::create_dir(&traces).unwrap();
        let address = dir.path().join("socket").display().to_string();
        let (options, quiet) = (OutputOptions::default(), Arc::new(|_: &str| {}));
        // Larger than all inputs of a second need: the directory is measured once a second.
        let quota = Some(1 << 30);
        let receiver = Receiver::bind(&address, Security::Local, traces, options, quota, quiet);
        Place {
            dir,
            receiver: receiver.unwrap(),
        }
    })
}

pub fn check(data: &[u8]) {
    let Place { dir, receiver } = place();
    let (mut near, far) = UnixStream::pair().unwrap();
    near.write_all(&data[..data.len().min(MOST)]).unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let served = receiver.attend(far);
    let mut answers = Vec::new();
    near.read_to_end(&mut answers).unwrap();
    // The receiver reports each error; the end of the data is one. A watcher may leave at any time without an
    // error.
    assert!(served.is_ok() || !answers.is_empty());
    for entry in fs::read_dir(dir.path().join("traces")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let (host, uuid) = name.split_at(name.len() - 36);
        assert!(host.len() > 1 && host.ends_with('-'), "{name}");
        streams(&entry.path(), uuid.parse().unwrap());
        fs::remove_dir_all(entry.path()).unwrap();
    }
}

/// Reads the headers of all packets of a trace.
fn streams(trace: &Path, uuid: Uuid) {
    for entry in fs::read_dir(trace).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with('.') || name == "metadata" {
            continue;
        }
        let file = File::open(&path).unwrap();
        let mut packets = PacketHeaders::new(&path, &file, Some(uuid)).unwrap();
        while packets.next_whole().unwrap().is_some() {}
        assert_eq!(packets.partial(), 0, "{name}");
    }
}
