// SPDX-License-Identifier: GPL-2.0

//! The data that an argument points to. It is recorded after all numbers of the call.

use crate::abi::schema::{FieldType, Integer, LabelPlace, Labels};
use crate::arch::calls::EPOLL_DATA;
use crate::sys::user_data::{UserBytes, UserData, PIECE_MAX};

/// The kind of data.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Pointed {
    /// A NUL-terminated text.
    Text,
    /// A `struct sockaddr`; the next argument is its size.
    SocketAddress,
    /// This number of 64-bit integers: a `struct timespec` has 2, a `struct itimerspec` 4.
    Words(u8),
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

/// The maximum of [`Pointed::least`] over all kinds.
pub(super) const LEAST_MAX: usize = 32;

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
            Self::Text => 1,
            Self::SocketAddress | Self::FilledAddress => 2 + 2 + 4 + 4 + 1,
            Self::Words(count) => count.wrapping_mul(8),
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
            Self::Words(count) => {
                for place in 0..u64::from(count) {
                    copy_array::<8, N>(address.wrapping_add(place.wrapping_mul(8)), to);
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

/// Records the socket address and the lengths of the buffers.
fn message<const N: usize>(address: u64, to: &mut UserData<N>) {
    let mut bytes = UserBytes::<MSGHDR>::new();
    let bytes = bytes.read(address, MSGHDR).unwrap_or(&[]);
    let (name, name_len) = (column::<0, 8>(bytes), column::<8, 8>(bytes));
    socket_address(u64::from_ne_bytes(name), u64::from_ne_bytes(name_len), to);
    let (parts, count) = (column::<16, 8>(bytes), column::<24, 8>(bytes));
    let count = u64::from_ne_bytes(count).min(MESSAGE_ELEMENTS_MAX as u64);
    vector(u64::from_ne_bytes(parts), count, to);
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
