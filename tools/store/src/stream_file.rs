// SPDX-License-Identifier: GPL-2.0

//! A stream's file on disk, while it is being written.

use crate::folder::Folder;
use crate::options::OutputOptions;
use crate::writing::Writing;
use ctf::{PacketAt, PacketHeaders, StreamName};
use rustix::fs::{fallocate, fgetxattr, fsetxattr, fstatfs, FallocateFlags, XattrFlags};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use system::{regular_file, Error, Result};
use uuid::Uuid;

/// The extended attribute of a stream's file that notes a packet near its end, as `OFFSET SEQUENCE`. A resume reads
/// the headers from there on, not all. Copies of the file and file systems without attributes do without it.
const NOTE: &str = "user.rtrace.packet";

/// The number of packets between two notes.
const PACKETS: u64 = 256;

/// The maximum space that is reserved on disk beyond a file's last packet.
const RESERVED_MAX: u64 = 16 << 20;

/// The file system type of ext4 in `statfs`.
const EXT4: i64 = 0xEF53;

/// A noted packet.
struct Noted {
    offset: u64,
    sequence: u64,
}

fn noted(file: &File) -> Option<Noted> {
    let mut text = [0; 64];
    let length = fgetxattr(file, NOTE, &mut text).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    let (offset, sequence) = text.split_once(' ')?;
    Some(Noted {
        offset: offset.parse().ok()?,
        sequence: sequence.parse().ok()?,
    })
}

/// The number of the last complete packet of the trace `uuid` in the file `path`. [`None`]: the file has no packet,
/// or is missing.
pub fn last_packet(path: &Path, uuid: Uuid) -> Result<Option<u64>> {
    let file = match regular_file::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(Error::read(path))?,
    };
    let last = last_whole(path, &file, uuid)?;
    Ok(last.map(|packet| packet.header.packet_seq_num))
}

fn last_whole(path: &Path, file: &File, uuid: Uuid) -> Result<Option<PacketAt>> {
    let mut packets = PacketHeaders::new(path, file, Some(uuid))?;
    let mut last = None;
    if let Some(noted) = noted(file) {
        packets.go_to(noted.offset);
        // The file may have changed since the note.
        last = packets.next_whole().ok().flatten();
        last = last.filter(|packet| packet.header.packet_seq_num == noted.sequence);
        if last.is_none() {
            packets.go_to(0);
        }
    }
    while let Some(packet) = packets.next_whole()? {
        last = Some(packet);
    }
    Ok(last)
}

/// One stream's file, open for appending packets.
#[derive(Debug)]
pub struct StreamFile {
    name: StreamName,
    path: PathBuf,
    file: File,
    /// The end of the last complete packet.
    end: u64,
    /// The sequence number of that packet.
    last: Option<u64>,
    /// The begin of that packet.
    begin: u64,
    /// The number of packets since the last note.
    unnoted: u64,
    /// End of the space reserved on disk. None for direct writing, on a file system other than ext4, or without
    /// enough free space.
    reserved: Option<u64>,
}

impl StreamFile {
    /// Creates the file of a stream; if the trace is `resumed`, opens it at the end of its last complete packet. Every
    /// packet in it must belong to the trace `uuid`.
    pub fn open(
        folder: &Folder,
        name: &StreamName,
        uuid: Uuid,
        options: OutputOptions,
        resumed: bool,
    ) -> Result<Self> {
        let file_name = name.to_string();
        let file = match resumed {
            true => folder.open_or_create(&file_name, options.access)?,
            false => folder.create(&file_name, options.access)?,
        };
        let path = folder.path().join(file_name);
        let last = last_whole(&path, &file, uuid)?;
        // The headers were read before this, because they are not whole pages.
        options.writing.set(&file).map_err(Error::write(&path))?;
        // XFS reserves space itself. Btrfs does not compress reserved space. Direct writing gains nothing.
        let is_ext4 = fstatfs(&file).is_ok_and(|status| status.f_type == EXT4);
        let reserves = is_ext4 && options.writing == Writing::Cached;
        let mut stream = Self {
            name: name.clone(),
            path,
            file,
            end: last.map_or(0, |packet| packet.end()),
            last: last.map(|packet| packet.header.packet_seq_num),
            begin: last.map_or(0, |packet| packet.offset),
            unnoted: 0,
            reserved: reserves.then_some(0),
        };
        stream.note();
        stream.roll_back()?;
        Ok(stream)
    }

    /// The stream.
    pub fn name(&self) -> &StreamName {
        &self.name
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The place of the next packet.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether the file still has a name.
    pub fn is_linked(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() > 0)
    }

    /// Bytes of its complete packets.
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// The number of its last complete packet.
    pub fn last(&self) -> Option<u64> {
        self.last
    }

    /// Reserves disk space for the next packet and later ones: as much as the file has, up to 16 MiB. For ext4 this
    /// takes fewer instructions than reserving each block when it is written.
    pub fn reserve(&mut self, size: u64) {
        let is_beyond = |reserved: &mut u64| self.end + size > *reserved;
        if self.reserved.as_mut().is_some_and(is_beyond) {
            let size = self.end.min(RESERVED_MAX).max(size);
            let reserved = fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.end, size);
            // If the disk is full, the write itself fails.
            self.reserved = reserved.is_ok().then(|| self.end + size);
        }
    }

    /// Accounts for a packet that was written completely.
    pub fn wrote(&mut self, sequence: u64, size: u64) {
        self.begin = self.end;
        self.end += size;
        self.last = Some(sequence);
        self.unnoted += 1;
        if self.unnoted >= PACKETS {
            self.note();
        }
    }

    /// Notes the last packet.
    fn note(&mut self) {
        self.unnoted = 0;
        if let Some(last) = self.last {
            let text = format!("{} {last}", self.begin);
            // Without a note only a resume takes longer.
            let _ = fsetxattr(&self.file, NOTE, text.as_bytes(), XattrFlags::empty());
        }
    }

    /// Cuts the file back to its last complete packet.
    pub fn roll_back(&mut self) -> Result<()> {
        self.trim()
            .and_then(|()| self.file.seek(SeekFrom::Start(self.end)))
            .map(drop)
            .map_err(Error::write(&self.path))
    }

    /// Frees the space beyond the last complete packet.
    fn trim(&mut self) -> io::Result<()> {
        self.reserved = self.reserved.map(|_| self.end);
        self.file.set_len(self.end)
    }

    /// Syncs the file to the disk.
    pub fn sync(&mut self) -> Result<()> {
        self.note();
        let trimmed = self.trim();
        let synced = self.file.sync_all();
        trimmed.and(synced).map_err(Error::write(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtrace_abi::header::Layout;
    use rtrace_abi::packet::PacketHeader;
    use std::fs;
    use std::io::Write;
    use synthetic::{PacketBuilder, UUID};

    /// Opens the only stream in the directory of `path`.
    fn open(path: &Path) -> StreamFile {
        let (uuid, options) = (Uuid::from_bytes(UUID), OutputOptions::default());
        let folder = Folder::open(path.parent().unwrap(), options.access).unwrap();
        let name = ctf::name_of(path).unwrap();
        StreamFile::open(&folder, &name, uuid, options, true).unwrap()
    }

    /// Writes packets of equal length to a file with notes of their ends. [`None`]: the file system has no
    /// attributes.
    fn written(path: &Path, packets: u64) -> Option<Vec<u8>> {
        let mut stream = open(path);
        let mut all = Vec::new();
        for sequence in 0..packets {
            let bytes =
                PacketBuilder::new(Layout::Compact, 0, sequence, sequence).close(sequence, 8);
            stream.file().write_all(&bytes).unwrap();
            stream.wrote(sequence, bytes.len() as u64);
            all.extend(bytes);
        }
        stream.sync().unwrap();
        noted(stream.file()).map(|_| all)
    }

    /// The number of calls of read(2) by this thread.
    fn reads() -> u64 {
        let text = fs::read_to_string("/proc/thread-self/io").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("syscr: "));
        line.unwrap().parse().unwrap()
    }

    #[test]
    fn a_resume_does_not_read_every_header() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("channel0_cpu0");
        let packets = 5 * PACKETS;
        let Some(bytes) = written(&path, packets) else {
            return;
        };
        let uuid = Uuid::from_bytes(UUID);
        let before = reads();
        let stream = open(&path);
        assert!(reads() - before < PACKETS, "{} reads", reads() - before);
        assert_eq!(stream.last(), Some(packets - 1));
        assert_eq!(stream.bytes(), bytes.len() as u64);
        assert_eq!(last_packet(&path, uuid).unwrap(), Some(packets - 1));
    }

    #[test]
    fn reserved_space_is_freed_by_the_end_and_by_a_resume() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("channel0_cpu0");
        let blocks = || fs::metadata(&path).unwrap().blocks() * 512;
        const SIZE: u64 = 1 << 20;
        let mut stream = open(&path);
        for sequence in 0..10 {
            stream.reserve(SIZE);
            if stream.reserved.is_none() {
                return; // Not ext4.
            }
            let packet = PacketBuilder::new(Layout::Compact, 0, sequence, sequence);
            let packet = packet.close(sequence, SIZE as usize);
            stream.file().write_all(&packet).unwrap();
            stream.wrote(sequence, SIZE);
        }
        assert_eq!(fs::metadata(&path).unwrap().len(), 10 * SIZE);
        assert!(blocks() > 11 * SIZE, "{} bytes", blocks());
        // The process ends before the trace does.
        drop(stream);
        let mut stream = open(&path);
        assert!(blocks() < 11 * SIZE, "{} bytes", blocks());
        stream.reserve(SIZE);
        assert!(blocks() > 11 * SIZE, "{} bytes", blocks());
        stream.sync().unwrap();
        assert!(blocks() < 11 * SIZE, "{} bytes", blocks());
        assert_eq!(fs::metadata(&path).unwrap().len(), 10 * SIZE);
    }

    #[test]
    fn a_note_that_is_not_true_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("channel0_cpu0");
        let Some(bytes) = written(&path, 10) else {
            return;
        };
        let uuid = Uuid::from_bytes(UUID);
        let file = File::options().write(true).open(&path).unwrap();
        // The file ends after three packets and a half.
        file.set_len(bytes.len() as u64 * 7 / 20).unwrap();
        assert_eq!(last_packet(&path, uuid).unwrap(), Some(2));
        let notes = [
            format!("{} 0", PacketHeader::SIZE),
            format!("0 {}", u64::MAX),
            format!("{} 1", u64::MAX),
            "rubbish".to_owned(),
        ];
        for note in notes {
            fsetxattr(&file, NOTE, note.as_bytes(), XattrFlags::empty()).unwrap();
            assert_eq!(last_packet(&path, uuid).unwrap(), Some(2), "{note}");
        }
    }
}
