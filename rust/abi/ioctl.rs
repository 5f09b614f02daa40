// SPDX-License-Identifier: GPL-2.0

//! Requests on a stream file (`sessions/<name>/channels/<channel>/cpuN`).
//!
//! A reader takes the oldest finished packet with [`GET_PACKET`], and moves its bytes out with
//! splice(2) or read(2). Or it takes the packet with [`GET_MAPPED`] and reads it in a mapping. Then
//! it frees the packet's memory with [`PUT_PACKET`].

/// The type byte ("magic") of all requests.
pub const MAGIC: u32 = 0xF7;

const NONE: u32 = 0;
const WRITE: u32 = 1;
const READ: u32 = 2;

/// Encodes a request number like `_IOC()` of include/uapi/asm-generic/ioctl.h.
const fn request(direction: u32, number: u32, size: usize) -> u32 {
    (direction << 30) | ((size as u32) << 16) | (MAGIC << 8) | number
}

/// Takes the oldest finished packet for exclusive reading and fills in a [`Packet`].
///
/// Errors:
/// - `EAGAIN`: no packet is finished at the moment (poll for one);
/// - `ENODATA`: the trace is over and every packet was read;
/// - `EBUSY`: this file already holds a packet;
/// - `EFAULT`.
pub const GET_PACKET: u32 = request(READ, 1, size_of::<Packet>());

/// Returns the packet taken by [`GET_PACKET`] to the writer.
///
/// The writer may overwrite its pages from now on, so spliced bytes must have reached their
/// destination. Errors: `EINVAL`: no packet is held.
pub const PUT_PACKET: u32 = request(NONE, 2, 0);

/// Closes the packet being written on this stream's CPU, if it holds a record. It can then be read.
pub const FLUSH: u32 = request(NONE, 3, 0);

/// Like [`GET_PACKET`], and returns the packet's offset in a mapping of the stream file: fills in a
/// [`MappedPacket`].
pub const GET_MAPPED: u32 = request(READ, 4, size_of::<MappedPacket>());

/// Returns how many bytes of the stream file can be mapped (mmap(2)), as a `u64`.
pub const MAP_SIZE: u32 = request(READ, 5, size_of::<u64>());

/// Allocates the memory that [`TAKE_ALL`] needs: as much as the buffer has.
///
/// Errors:
/// - `ENOMEM`: out of memory, or the buffer is in reserved memory, which has no room for more;
/// - `EOPNOTSUPP`: the buffer is in discard mode, where packets are not overwritten;
/// - `EBUSY`: this file maps the buffer, or has packets of a [`TAKE_ALL`].
pub const PREPARE: u32 = request(NONE, 6, 0);

/// Closes the packet being written, takes all packets at one moment, and returns their number, as a
/// `u64`. [`GET_PACKET`] then returns these packets. The writer continues in other memory, that of
/// [`PREPARE`].
///
/// Errors: those of [`PREPARE`], which this request does if it was not done. Also:
/// - `EBUSY`: this file holds a packet;
/// - `EAGAIN`: in each attempt the writer was in the middle of a record;
/// - `EFAULT`.
pub const TAKE_ALL: u32 = request(READ, 7, size_of::<u64>());

/// A request on the file `unwind`: loads the unwind table of a file, a [`LoadTable`]. It replaces the table
/// that the file had. If all tables have more than 64 MiB, the oldest go, and are wanted again.
///
/// Errors (`error_log` has the text):
/// - `EINVAL`: the table is wrong, or `fd` is not a regular file;
/// - `EFBIG`: it has more than 32 MiB;
/// - `EBADF`, `EFAULT`, `ENOMEM`.
pub const LOAD_TABLE: u32 = request(WRITE, 8, size_of::<LoadTable>());

/// Argument of [`LOAD_TABLE`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadTable {
    /// The open file that the table describes; -1: the vDSO.
    pub fd: i32,
    /// Number of bytes of the table.
    pub size: u32,
    /// Address of the table.
    pub table: u64,
}

/// A request on the file `program`: registers the event of a NUL-terminated text, in the form of a line without `+`.
/// Returns the event's index for records in binary form. If this file has registered the event already, that is the same
/// index.
///
/// Errors, for which read(2) has a text:
/// - `EINVAL`: the text is wrong;
/// - `E2BIG`: it has more than 512 bytes, or the event's fields of fixed size have more than 1024;
/// - `ENOSPC`: there are too many events;
/// - `EFAULT`, `EINTR`, `ENOMEM`.
pub const REGISTER: u32 = request(WRITE, 9, REGISTER_TEXT);

/// Maximum size of the argument of [`REGISTER`], its NUL included.
pub const REGISTER_TEXT: usize = 513;

/// A request on the file `program`: makes the memory that the program and the module share, without rings, and fills in a
/// [`RingLayout`] for mmap(2). Once per open file.
///
/// Errors: `EBUSY`: it was made; `ENOMEM`, `EFAULT`.
pub const SHARE: u32 = request(READ, 10, size_of::<RingLayout>());

/// Makes the ring with the index in the argument. It can then be mapped.
///
/// Errors:
/// - `ENODATA`: there is no shared memory; `EPERM`: it is that of another process;
/// - `EINVAL`: the index is not below [`RingLayout::count`]; `EEXIST`: there is this ring;
/// - `ENOSPC`: the file has as many rings as it may; `EDQUOT`: all rings of the user, or of all users, have as much memory as
///   they may; `ENOMEM`.
pub const ADD_RING: u32 = request(NONE, 11, 0);

/// Returns a number for the calling thread, for its records in rings.
///
/// Errors: `ENODATA`, `EPERM` as for [`ADD_RING`]; `ENOSPC`: 65,536 threads have one; `ENOMEM`.
pub const NUMBER_THREAD: u32 = request(NONE, 12, 0);

/// Has the module take the records of the ring with the index in the argument soon. The ring's limit then allows all of
/// the ring.
///
/// Errors: `ENODATA`: there is no shared memory; `EINVAL`: the index is wrong.
pub const WAKE: u32 = request(NONE, 13, 0);

/// Result of [`SHARE`]: the parts of the file for mmap(2), as offsets and sizes in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingLayout {
    /// A 32-bit word for each index of an event: bit 0: a channel takes it from rings; bit 1: it is recorded completely only
    /// by write(2). Read-only. A child after fork(2) has the mapping, too.
    pub words: u64,
    pub words_size: u64,
    /// The headers of the rings, 128 bytes each.
    pub headers: u64,
    pub headers_size: u64,
    /// Ring N is at `data + N * 2 * ring_size`. Its mapping has twice its size, and shows it twice.
    pub data: u64,
    pub ring_size: u64,
    /// Number of headers. 0: programs cannot read the clock, so there are no rings.
    pub count: u32,
    /// 1. Another number: words, headers or records have another form.
    pub version: u32,
}

impl RingLayout {
    /// The bytes of the argument.
    pub fn to_bytes(self) -> [u8; size_of::<Self>()] {
        let mut bytes = [0; size_of::<Self>()];
        let words = [
            self.words,
            self.words_size,
            self.headers,
            self.headers_size,
            self.data,
            self.ring_size,
        ];
        let (longs, rest) = bytes.split_at_mut(48);
        for (to, word) in longs.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        let (count, version) = rest.split_at_mut(4);
        count.copy_from_slice(&self.count.to_ne_bytes());
        version.copy_from_slice(&self.version.to_ne_bytes());
        bytes
    }
}

impl LoadTable {
    /// The argument in these bytes.
    pub fn from_bytes(bytes: [u8; size_of::<Self>()]) -> Self {
        let [f0, f1, f2, f3, s0, s1, s2, s3, table @ ..] = bytes;
        Self {
            fd: i32::from_ne_bytes([f0, f1, f2, f3]),
            size: u32::from_ne_bytes([s0, s1, s2, s3]),
            table: u64::from_ne_bytes(table),
        }
    }
}

/// Result of [`GET_PACKET`]: the packet taken.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Number of the packet in its stream, as in its header; gaps are overwritten packets.
    pub sequence: u64,
    /// Number of bytes to move out: the whole packet with its padding, a multiple of the page size.
    pub size: u64,
    /// Number of these bytes that contain headers and records.
    pub content: u64,
    /// Number of records.
    pub records: u64,
}

impl Packet {
    /// The bytes of the argument.
    pub fn to_bytes(self) -> [u8; size_of::<Self>()] {
        let mut bytes = [0; size_of::<Self>()];
        let words = [self.sequence, self.size, self.content, self.records];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// Result of [`GET_MAPPED`]: the packet taken.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MappedPacket {
    /// The packet.
    pub packet: Packet,
    /// Offset of the packet in the file, and so in a mapping of the whole file: a multiple of the
    /// page size.
    pub offset: u64,
}

impl MappedPacket {
    /// The bytes of the argument.
    pub fn to_bytes(self) -> [u8; size_of::<Self>()] {
        let mut bytes = [0; size_of::<Self>()];
        let (packet, offset) = bytes.split_at_mut(size_of::<Packet>());
        packet.copy_from_slice(&self.packet.to_bytes());
        offset.copy_from_slice(&self.offset.to_ne_bytes());
        bytes
    }
}
