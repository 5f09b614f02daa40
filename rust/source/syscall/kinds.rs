// SPDX-License-Identifier: GPL-2.0

//! Arguments that point to data, by kind.

use super::data::{DataPlace, Moved};
use super::describe::{ArgumentKind, PointedFields};
use super::pointed::{Pointed, FAMILY};
use super::Direction;
use crate::abi::schema::{Field, FieldType, Integer};

/// An address whose data the call reads.
pub(super) const fn given(pointed: Pointed, fields: &'static [Field<'static>]) -> ArgumentKind {
    ArgumentKind::Address {
        at: Direction::Entry,
        given: Some(PointedFields { pointed, fields }),
        filled: None,
        moved: None,
    }
}

/// An address that the call writes to, recorded at the exit.
pub(super) const fn filled_out(
    pointed: Pointed,
    fields: &'static [Field<'static>],
) -> ArgumentKind {
    filled(Direction::Exit, pointed, fields)
}

/// An address that the call writes to, recorded at `at`.
const fn filled(
    at: Direction,
    pointed: Pointed,
    fields: &'static [Field<'static>],
) -> ArgumentKind {
    ArgumentKind::Address {
        at,
        given: None,
        filled: Some(PointedFields { pointed, fields }),
        moved: None,
    }
}

/// An address that the call writes data of an unknown form to.
pub(super) const OUT: ArgumentKind = ArgumentKind::Address {
    at: Direction::Exit,
    given: None,
    filled: None,
    moved: None,
};

/// An address that the call reads bytes from.
pub(super) const GIVEN_DATA: ArgumentKind = data(Direction::Entry);
/// An address that the call writes bytes to.
pub(super) const FILLED_DATA: ArgumentKind = data(Direction::Exit);

const fn data(at: Direction) -> ArgumentKind {
    ArgumentKind::Address {
        at,
        given: None,
        filled: None,
        moved: Some(Moved {
            direction: at,
            bytes: DataPlace::Argument,
        }),
    }
}

/// An argument whose buffers the call moves in this direction.
const fn moving(kind: ArgumentKind, direction: Direction, bytes: DataPlace) -> ArgumentKind {
    match kind {
        ArgumentKind::Address {
            at, given, filled, ..
        } => ArgumentKind::Address {
            at,
            given,
            filled,
            moved: Some(Moved { direction, bytes }),
        },
        kind => kind,
    }
}

/// The arguments of a program.
pub(super) const ARGUMENTS: ArgumentKind =
    given(Pointed::Arguments, &[Field::new("args", FieldType::String)]);
/// The environment of a program.
pub(super) const ENVIRONMENT: ArgumentKind = given(
    Pointed::Environment,
    &[Field::new("env_count", FieldType::unsigned(32))],
);
/// How a child ended.
pub(super) const STATUS: ArgumentKind = filled_out(
    Pointed::Bytes(4),
    &[Field::new("status", FieldType::signed(32))],
);
/// The attributes of a file that are used most.
pub(super) const STAT: ArgumentKind = filled_out(
    Pointed::Stat,
    &[
        Field::new("st_mode", FieldType::unsigned(32)),
        Field::new("st_rdev", FieldType::hex(64)),
        Field::new("st_size", FieldType::signed(64)),
    ],
);
/// The same of statx(2).
pub(super) const STATX: ArgumentKind = filled_out(
    Pointed::Statx,
    &[
        Field::new("stx_mask", FieldType::hex(32)),
        Field::new("stx_attributes", FieldType::hex(64)),
        Field::new("stx_mode", FieldType::unsigned(16)),
        Field::new("stx_size", FieldType::unsigned(64)),
    ],
);

/// A socket address, with this name for its port, and the fields behind it.
macro_rules! socket_address {
    ($port:literal $(, $behind:expr)*) => {
        &[
            Field::new("family", FAMILY),
            Field::new($port, FieldType::unsigned(16)),
            V4_LEN,
            V4,
            V6_LEN,
            V6,
            PATH,
            $($behind),*
        ]
    };
}

const V4_LEN: Field<'static> = Field::new("_v4addr_length", FieldType::unsigned(32));
const V4: Field<'static> = Field::new("v4addr", sequence(Integer::unsigned(8), "_v4addr_length"));
const V6_LEN: Field<'static> = Field::new("_v6addr_length", FieldType::unsigned(32));
const V6: Field<'static> = Field::new("v6addr", sequence(Integer::hex(8), "_v6addr_length"));
const PATH: Field<'static> = Field::new("sun_path", FieldType::String);

/// The address that a socket connects to, with LTTng's field names.
pub(super) const PEER: ArgumentKind = given(Pointed::SocketAddress, socket_address!("dport"));
/// The address that a socket gets.
pub(super) const OWN: ArgumentKind = given(Pointed::SocketAddress, socket_address!("port"));
/// Address of the peer that connected, with LTTng's field names.
pub(super) const CONNECTED: ArgumentKind = filled(
    Direction::Entry,
    Pointed::FilledAddress,
    socket_address!("sport"),
);
/// The sender's address.
pub(super) const SENDER: ArgumentKind = filled(
    Direction::Exit,
    Pointed::FilledAddress,
    socket_address!("sport"),
);
/// The socket's address.
pub(super) const NAME: ArgumentKind = filled(
    Direction::Exit,
    Pointed::FilledAddress,
    socket_address!("port"),
);

/// The lengths of buffers.
const LENGTHS_LEN: Field<'static> = Field::new("_iov_len_length", FieldType::unsigned(32));
const LENGTHS: Field<'static> = Field::new(
    "iov_len",
    sequence(Integer::unsigned(64), "_iov_len_length"),
);

/// Buffers.
pub(super) const VECTOR: ArgumentKind = given(Pointed::Vector, &[LENGTHS_LEN, LENGTHS]);
/// Buffers that the call reads.
pub(super) const GIVEN_VECTOR: ArgumentKind = moving(VECTOR, Direction::Entry, DataPlace::Vector);
/// Buffers that the call fills.
pub(super) const FILLED_VECTOR: ArgumentKind = moving(VECTOR, Direction::Exit, DataPlace::Vector);
/// Message to send: its buffers and its destination address.
pub(super) const MESSAGE: ArgumentKind = moving(
    given(
        Pointed::Message,
        socket_address!("dport", LENGTHS_LEN, LENGTHS),
    ),
    Direction::Entry,
    DataPlace::Message,
);
/// A received message: its buffers and its sender.
pub(super) const RECEIVED: ArgumentKind = moving(
    filled(
        Direction::Entry,
        Pointed::Message,
        socket_address!("sport", LENGTHS_LEN, LENGTHS),
    ),
    Direction::Exit,
    DataPlace::Message,
);

/// Events that an epoll instance shall report for a descriptor, with the data to report.
pub(super) const EPOLL: ArgumentKind = given(
    Pointed::EpollEvent,
    &[
        Field::new("events", FieldType::hex(32)),
        Field::new("data", FieldType::hex(64)),
    ],
);
/// Events that an epoll instance reports.
pub(super) const EPOLLED: ArgumentKind = filled(
    Direction::Exit,
    Pointed::EpollEvents,
    &[
        Field::new("_data_length", FieldType::unsigned(32)),
        Field::new("data", sequence(Integer::hex(64), "_data_length")),
        Field::new("_revents_length", FieldType::unsigned(32)),
        Field::new("revents", sequence(Integer::hex(32), "_revents_length")),
    ],
);

/// Descriptors to wait for, with the requested events; at the exit, with the returned events.
pub(super) const POLL_SET: ArgumentKind = ArgumentKind::Address {
    at: Direction::Entry,
    given: Some(PointedFields {
        pointed: Pointed::PollSet,
        fields: &[
            Field::new("_fds_length", FieldType::unsigned(32)),
            Field::new("fds", sequence(Integer::signed(32), "_fds_length")),
            Field::new("_events_length", FieldType::unsigned(32)),
            Field::new("events", sequence(Integer::hex(16), "_events_length")),
        ],
    }),
    filled: Some(PointedFields {
        pointed: Pointed::PollResults,
        fields: &[
            Field::new("_fds_length", FieldType::unsigned(32)),
            Field::new("fds", sequence(Integer::signed(32), "_fds_length")),
            Field::new("_revents_length", FieldType::unsigned(32)),
            Field::new("revents", sequence(Integer::hex(16), "_revents_length")),
        ],
    }),
    moved: None,
};

/// Descriptors to wait for; at the exit, the ready ones.
const fn descriptor_set(fields: &'static [Field<'static>]) -> ArgumentKind {
    let target = Some(PointedFields {
        pointed: Pointed::DescriptorSet,
        fields,
    });
    ArgumentKind::Address {
        at: Direction::Entry,
        given: target,
        filled: target,
        moved: None,
    }
}

/// Descriptors for reading, with LTTng's field name.
pub(super) const READ_SET: ArgumentKind = descriptor_set(&[
    Field::new("_readfds_length", FieldType::unsigned(32)),
    Field::new("readfds", sequence(Integer::signed(32), "_readfds_length")),
]);
/// Descriptors for writing.
pub(super) const WRITE_SET: ArgumentKind = descriptor_set(&[
    Field::new("_writefds_length", FieldType::unsigned(32)),
    Field::new(
        "writefds",
        sequence(Integer::signed(32), "_writefds_length"),
    ),
]);
/// Descriptors with an exceptional condition.
pub(super) const EXCEPT_SET: ArgumentKind = descriptor_set(&[
    Field::new("_exceptfds_length", FieldType::unsigned(32)),
    Field::new(
        "exceptfds",
        sequence(Integer::signed(32), "_exceptfds_length"),
    ),
]);

const fn sequence(of: Integer, length: &'static str) -> FieldType<'static> {
    FieldType::Sequence(of, length)
}
