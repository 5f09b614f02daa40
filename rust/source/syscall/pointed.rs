// SPDX-License-Identifier: GPL-2.0

//! The data that an argument points to. It is recorded after all numbers of the call.

use crate::abi::schema::{FieldType, Integer, LabelPlace, Labels};
use crate::arch::calls::{EPOLL_DATA, STAT_MODE, STAT_RDEV, STAT_SIZE};
use crate::record::memory::CUT;
use crate::sys::user_data::{UserBytes, UserData, PIECE_MAX};

/// The kind of data.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Pointed {
    /// A NUL-terminated text.
    Text,
    /// A `struct sockaddr`; the next argument is its size.
    SocketAddress,
    /// This number of bytes: a structure without padding, whose fields are recorded in their order.
    Bytes(u8),
    /// A `struct epoll_event`.
    EpollEvent,
    /// As many structs `epoll_event` as the call returned.
    EpollEvents,
    /// Structs `pollfd`; the next argument is their number.
    PollSet,
    /// The `pollfd` structs with returned events; the next argument is the number of all structs.
    PollResults,
    /// A `struct sockaddr`; the next argument is the address of its size, an int.
    FilledAddress,
    /// An `fd_set`; the first argument is one more than the highest descriptor.
    DescriptorSet,
    /// Structs `iovec`; the next argument is their number.
    Vector,
    /// A `struct msghdr`: a socket address, and structs `iovec`.
    Message,
    /// As many bytes of a text as the call returned.
    FilledText,
    /// The addresses of a program's arguments. The last one is NULL.
    Arguments,
    /// The addresses of environment variables. The last one is NULL.
    Environment,
    /// A `struct stat`.
    Stat,
    /// A `struct statx`.
    Statx,
}

/// The names of the address families.
const FAMILIES: Labels<'static> = Labels::new(
    b"AF_UNSPEC AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET AF_VSOCK",
    &[
        family(0, (0, 9)),
        family(1, (10, 17)),
        family(2, (18, 25)),
        family(10, (26, 34)),
        family(16, (35, 45)),
        family(17, (46, 55)),
        family(40, (56, 64)),
    ],
);

const fn family(number: u64, name: (u32, u32)) -> LabelPlace {
    LabelPlace {
        first: number,
        last: number,
        name,
    }
}

/// The family of a socket address.
pub(super) const FAMILY: FieldType<'static> =
    FieldType::Enumeration(Integer::unsigned(16), FAMILIES);

const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// Bytes of the longest address that is recorded, a `struct sockaddr_un`.
const ADDRESS_MAX: usize = 110;
/// Bytes of a `struct epoll_event`. The events are at its beginning.
const EPOLL_EVENT: usize = EPOLL_DATA + 8;
/// Bytes of the record of an event and its data.
const EPOLL_RECORD: usize = 4 + 8;
/// Bytes of a `struct pollfd`.
const POLLFD: usize = 8;
/// Bytes of a `struct iovec`.
const IOVEC: usize = 16;
/// Bytes of a `struct msghdr`.
const MSGHDR: usize = 56;
/// Maximum count of recorded structs.
const ELEMENTS_MAX: usize = 16;
/// Bytes of that many structs of the largest kind, `struct iovec`.
const ELEMENTS_BYTES: usize = ELEMENTS_MAX * IOVEC;
/// Maximum count of recorded structs `iovec` of a message.
const MESSAGE_ELEMENTS_MAX: usize = 8;
/// The count of descriptors in an `fd_set` of the C library; the kernel accepts larger sets.
const SET_MAX: usize = 1024;
/// Maximum count of recorded descriptors of a set.
const MEMBERS_MAX: usize = 60;

/// Maximum size of a structure that is recorded as it is: a `struct clone_args` without its last fields.
const BYTES_MAX: usize = 64;
/// Maximum size of the list of a program's arguments, with its NUL. It takes two pieces.
pub(super) const ARGUMENTS_BYTES: usize = 2 * PIECE_MAX;
/// Bytes for the end of this list: `"..., ...]` and the NUL.
const ARGUMENTS_END: usize = 11;
/// Maximum count of environment variables that are counted.
const VARIABLES_MAX: u32 = 1024;
/// Bytes of a `struct stat` up to the last recorded field.
const STAT: usize = STAT_SIZE + 8;
/// Bytes of a `struct statx` up to the last recorded field.
const STATX: usize = 48;

/// The maximum of [`Pointed::least`] over all kinds.
pub(super) const LEAST_MAX: usize = BYTES_MAX;

const _: () = {
    // Family and port, two length fields, an IPv6 address, a path, and its NUL.
    let address = 2 + 2 + 4 + 4 + 16 + ADDRESS_MAX;
    assert!(address + 4 + MESSAGE_ELEMENTS_MAX * 8 < PIECE_MAX);
    assert!(4 + ELEMENTS_MAX * 8 <= PIECE_MAX);
    assert!(4 + MEMBERS_MAX * 4 <= PIECE_MAX);
    assert!(4 + 4 + ELEMENTS_MAX * EPOLL_RECORD <= PIECE_MAX);
};

impl Pointed {
    /// Minimum number of bytes of the recorded data.
    pub(super) const fn least(self) -> u8 {
        match self {
            Self::Text | Self::FilledText | Self::Arguments => 1,
            Self::Environment => 4,
            Self::Stat => 4 + 8 + 8,
            Self::Statx => 4 + 8 + 2 + 8,
            Self::SocketAddress | Self::FilledAddress => 2 + 2 + 4 + 4 + 1,
            Self::Bytes(count) => count,
            Self::EpollEvent => EPOLL_RECORD as u8,
            Self::EpollEvents | Self::PollSet | Self::PollResults => 4 + 4,
            Self::DescriptorSet | Self::Vector => 4,
            Self::Message => Self::SocketAddress.least() + 4,
        }
    }

    /// Copies the data from `address`; `extent` is the argument that gives its size or count. Unreadable data is
    /// recorded as 0 or as empty. May fault and sleep.
    pub(super) fn copy<const N: usize>(self, address: u64, extent: u64, to: &mut UserData<N>) {
        if address == 0 {
            // Most callers of recvfrom(2) and sendto(2) pass no address. A read at 0 would cost two page faults.
            return to.put_zeros::<LEAST_MAX>(self.least().into());
        }
        self.copy_from(address, extent, to);
    }

    #[inline(never)]
    fn copy_from<const N: usize>(self, address: u64, extent: u64, to: &mut UserData<N>) {
        match self {
            Self::Text => to.put_text(address),
            Self::SocketAddress => socket_address(address, extent, to),
            Self::Bytes(count) => {
                let mut bytes = UserBytes::<BYTES_MAX>::new();
                match bytes.read(address, count.into()) {
                    Some(bytes) => to.put(bytes),
                    None => to.put_zeros::<LEAST_MAX>(count.into()),
                }
            }
            Self::EpollEvent if EPOLL_EVENT == EPOLL_RECORD => {
                copy_array::<EPOLL_RECORD, N>(address, to);
            }
            Self::EpollEvent => {
                copy_array::<4, N>(address, to);
                copy_array::<8, N>(address.wrapping_add(EPOLL_DATA as u64), to);
            }
            Self::EpollEvents => {
                let mut bytes = UserBytes::new();
                let events = elements::<EPOLL_EVENT>(&mut bytes, address, extent);
                put_column::<EPOLL_DATA, 8, N>(events.clone(), to);
                put_column::<0, 4, N>(events, to);
            }
            Self::PollSet | Self::PollResults => {
                let mut bytes = UserBytes::new();
                let set = elements::<POLLFD>(&mut bytes, address, extent);
                if let Self::PollSet = self {
                    put_column::<0, 4, N>(set.clone(), to);
                    put_column::<4, 2, N>(set, to);
                } else {
                    let set = set.filter(|pollfd| column::<6, 2>(pollfd) != [0, 0]);
                    put_column::<0, 4, N>(set.clone(), to);
                    put_column::<6, 2, N>(set, to);
                }
            }
            Self::FilledAddress => {
                let mut len = UserBytes::<4>::new();
                let len = column::<0, 4>(len.read(extent, 4).unwrap_or(&[]));
                socket_address(address, u32::from_ne_bytes(len).into(), to);
            }
            Self::DescriptorSet => descriptor_set(address, extent, to),
            Self::Vector => vector(address, extent, to),
            Self::Message => message(address, to),
            Self::FilledText => filled_text(address, extent, to),
            Self::Arguments => arguments(address, to),
            Self::Environment => to.put(&count_variables(address).to_ne_bytes()),
            Self::Stat => {
                let mut bytes = UserBytes::<STAT>::new();
                let stat = bytes.read(address, STAT).unwrap_or(&[]);
                to.put(&column::<STAT_MODE, 4>(stat));
                to.put(&column::<STAT_RDEV, 8>(stat));
                to.put(&column::<STAT_SIZE, 8>(stat));
            }
            Self::Statx => {
                let mut bytes = UserBytes::<STATX>::new();
                let statx = bytes.read(address, STATX).unwrap_or(&[]);
                to.put(&column::<0, 4>(statx));
                to.put(&column::<8, 8>(statx));
                to.put(&column::<28, 2>(statx));
                to.put(&column::<40, 8>(statx));
            }
        }
    }
}

fn copy_array<const BYTES: usize, const N: usize>(address: u64, to: &mut UserData<N>) {
    let mut bytes = UserBytes::<BYTES>::new();
    let bytes = bytes.read(address, BYTES).unwrap_or(&[]);
    to.put(&column::<0, BYTES>(bytes));
}

/// Records family, port, IPv4 address, IPv6 address, and path.
fn socket_address<const N: usize>(address: u64, len: u64, to: &mut UserData<N>) {
    let mut bytes = UserBytes::<ADDRESS_MAX>::new();
    // The kernel treats the length as an `int`.
    let len = usize::try_from(len as i32).unwrap_or(0).min(ADDRESS_MAX);
    // An address that cannot be read is recorded as one of AF_UNSPEC.
    let given = bytes.read(address, len).unwrap_or(&[]);
    let family = given
        .first_chunk()
        .map_or(0, |family| u16::from_ne_bytes(*family));
    let is_ip = matches!(family, AF_INET | AF_INET6);
    let port = given.get(2..4).filter(|_| is_ip);
    let port = port.and_then(|port| port.first_chunk());
    let v4 = given.get(4..8).filter(|_| family == AF_INET);
    let v6 = given.get(8..24).filter(|_| family == AF_INET6);
    let path = given.get(2..).filter(|_| family == AF_UNIX);
    to.put(&family.to_ne_bytes());
    to.put(
        &port
            .map_or(0, |port| u16::from_be_bytes(*port))
            .to_ne_bytes(),
    );
    for address in [v4, v6] {
        let address = address.unwrap_or(&[]);
        to.put(&(address.len() as u32).to_ne_bytes());
        to.put(address);
    }
    unix_path(path.unwrap_or(&[]), to);
}

/// A path ends with the first NUL. An abstract name begins with a NUL and may contain more; each becomes an
/// `@`, as in /proc/net/unix.
fn unix_path<const N: usize>(path: &[u8], to: &mut UserData<N>) {
    let is_abstract = path.first() == Some(&0) && path.len() > 1;
    for byte in path {
        match byte {
            0 if is_abstract => to.put(b"@"),
            0 => break,
            byte => to.put(&[*byte]),
        }
    }
    to.put(&[0]);
}

/// Returns the first of `count` structs at `address`; none if they cannot be read.
fn elements<const SIZE: usize>(
    bytes: &mut UserBytes<ELEMENTS_BYTES>,
    address: u64,
    count: u64,
) -> impl Iterator<Item = &[u8]> + Clone {
    let count = (count as u32 as usize).min(ELEMENTS_MAX);
    let given = bytes.read(address, count.wrapping_mul(SIZE));
    given.unwrap_or(&[]).chunks_exact(SIZE)
}

/// Records the descriptors below `count` that are in a set.
fn descriptor_set<const N: usize>(address: u64, count: u64, to: &mut UserData<N>) {
    let mut bytes = UserBytes::<{ SET_MAX / 8 }>::new();
    // The kernel treats the count as an `int`, and reads the set in words.
    let count = usize::try_from(count as i32).unwrap_or(0).min(SET_MAX);
    let words = bytes.read(address, count.div_ceil(64).wrapping_mul(8));
    let words = words.unwrap_or(&[]).chunks_exact(8);
    let words = (0..count).step_by(64).zip(words).map(|(first, word)| {
        let word = u64::from_ne_bytes(column::<0, 8>(word));
        let beyond = first.wrapping_add(64).saturating_sub(count);
        (first as u32, word & u64::MAX.wrapping_shr(beyond as u32))
    });
    let count = words.clone().fold(0, |count: u32, (_, word)| {
        count.wrapping_add(word.count_ones())
    });
    let mut left = count.min(MEMBERS_MAX as u32);
    to.put(&left.to_ne_bytes());
    for (first, mut word) in words {
        while word != 0 && left != 0 {
            to.put(&first.wrapping_add(word.trailing_zeros()).to_ne_bytes());
            word &= word.wrapping_sub(1);
            left = left.wrapping_sub(1);
        }
    }
}

/// Records the lengths of the buffers of `iovec` structs.
fn vector<const N: usize>(address: u64, count: u64, to: &mut UserData<N>) {
    let mut bytes = UserBytes::new();
    let vector = elements::<IOVEC>(&mut bytes, address, count);
    put_column::<8, 8, N>(vector, to);
}

/// Returns address and length of the first buffers of `count` structs `iovec`.
pub(super) fn buffers(
    bytes: &mut UserBytes<ELEMENTS_BYTES>,
    address: u64,
    count: u64,
) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
    elements::<IOVEC>(bytes, address, count).map(|buffer| {
        let word = |word| u64::from_ne_bytes(word);
        (word(column::<0, 8>(buffer)), word(column::<8, 8>(buffer)))
    })
}

/// Returns address and number of the structs `iovec` of a `struct msghdr`, as many as are recorded.
pub(super) fn vector_of_message(address: u64) -> (u64, u64) {
    let mut bytes = UserBytes::<MSGHDR>::new();
    vector_in(bytes.read(address, MSGHDR).unwrap_or(&[]))
}

/// The same, of a `struct msghdr` that was read.
fn vector_in(message: &[u8]) -> (u64, u64) {
    let (vector, count) = (column::<16, 8>(message), column::<24, 8>(message));
    let count = u64::from_ne_bytes(count).min(MESSAGE_ELEMENTS_MAX as u64);
    (u64::from_ne_bytes(vector), count)
}

/// Records the socket address and the lengths of the buffers.
fn message<const N: usize>(address: u64, to: &mut UserData<N>) {
    let mut bytes = UserBytes::<MSGHDR>::new();
    let bytes = bytes.read(address, MSGHDR).unwrap_or(&[]);
    let (name, name_len) = (column::<0, 8>(bytes), column::<8, 8>(bytes));
    socket_address(u64::from_ne_bytes(name), u64::from_ne_bytes(name_len), to);
    let (parts, count) = vector_in(bytes);
    vector(parts, count, to);
}

/// Records a text of `len` bytes, which need not end with a NUL.
fn filled_text<const N: usize>(address: u64, len: u64, to: &mut UserData<N>) {
    const MAX: usize = PIECE_MAX - 1;
    let mut bytes = UserBytes::<MAX>::new();
    let is_cut = len > MAX as u64;
    let len = if is_cut { MAX } else { len as usize };
    let text = bytes.read(address, len).unwrap_or(&[]);
    let mut parts = text.split(|byte| *byte == 0);
    let text = parts.next().unwrap_or(&[]);
    match text.get(..MAX - CUT.len()).filter(|_| is_cut) {
        Some(begin) => {
            to.put(begin);
            to.put(&CUT);
        }
        None => to.put(text),
    }
    to.put(&[0]);
}

/// Records the arguments of a program as one text, a list of quoted texts: `["ls", "-l"]`. In them a backslash stands
/// before each quote and each backslash. `...` stands for what is left out. An empty text: the list cannot be read.
fn arguments<const N: usize>(address: u64, to: &mut UserData<N>) {
    let mut left = ARGUMENTS_BYTES - ARGUMENTS_END;
    let mut at = address;
    while let Some(argument) = word(at) {
        if argument == 0 {
            to.put(if at == address { b"[]" } else { b"]" });
            break;
        }
        to.put(if at == address { b"[" } else { b", " });
        if left == 0 {
            to.put(b"...]");
            break;
        }
        to.put(b"\"");
        let is_whole = quoted(argument, &mut left, to);
        to.put(if is_whole { b"\"" } else { b"\"..." });
        // The quotes, the comma and the space.
        left = left.saturating_sub(4);
        at = at.wrapping_add(8);
    }
    to.put(&[0]);
}

/// Records a text with backslashes, `left` bytes at most. Returns whether it is complete.
fn quoted<const N: usize>(address: u64, left: &mut usize, to: &mut UserData<N>) -> bool {
    /// Bytes that are read at a time.
    const CHUNK: usize = 128;
    let mut at = address;
    let mut bytes = UserBytes::<CHUNK>::new();
    while let Some(text) = bytes.read_begin_of_text(at) {
        for byte in text {
            let escape: &[u8] = match byte {
                b'"' | b'\\' => b"\\",
                _ => b"",
            };
            let Some(rest) = left.checked_sub(escape.len().wrapping_add(1)) else {
                *left = 0;
                return false;
            };
            *left = rest;
            to.put(escape);
            to.put(&[*byte]);
        }
        if text.len() < CHUNK {
            return true;
        }
        at = at.wrapping_add(CHUNK as u64);
    }
    false
}

/// Counts environment variables, [`VARIABLES_MAX`] at most.
fn count_variables(address: u64) -> u32 {
    let mut count = 0_u32;
    let mut at = address;
    while count < VARIABLES_MAX && word(at).is_some_and(|variable| variable != 0) {
        count = count.wrapping_add(1);
        at = at.wrapping_add(8);
    }
    count
}

/// Reads a word of 64 bits.
fn word(address: u64) -> Option<u64> {
    let mut bytes = UserBytes::<8>::new();
    let bytes = bytes.read(address, 8)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

/// Records the number of structs, then `LEN` bytes of each struct from offset `AT` on.
fn put_column<'a, const AT: usize, const LEN: usize, const N: usize>(
    elements: impl Iterator<Item = &'a [u8]> + Clone,
    to: &mut UserData<N>,
) {
    // (The iterator's own count() divides by a number that the compiler cannot prove to be nonzero.)
    let counted = elements.clone();
    let count = counted.fold(0_u32, |count, _| count.wrapping_add(1));
    to.put(&count.to_ne_bytes());
    for element in elements {
        to.put(&column::<AT, LEN>(element));
    }
}

/// Returns `LEN` bytes from offset `AT` on; zeros if there are fewer.
#[inline(always)]
fn column<const AT: usize, const LEN: usize>(bytes: &[u8]) -> [u8; LEN] {
    let column = bytes.get(AT..).and_then(|bytes| bytes.first_chunk());
    *column.unwrap_or(&[0; LEN])
}
