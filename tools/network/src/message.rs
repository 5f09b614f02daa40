// SPDX-License-Identifier: GPL-2.0

//! Messages of a connection: frames with a kind, a length and a body.
//!
//! Documentation/internals/network-protocol.md has their bytes and their order. For any bytes, the parser returns a
//! message or an error. It uses no more memory than the kind's limit, and no more than the number of received
//! bytes.

use crate::hello::{stream_name, Hello};
use consumer::State;
use ctf::StreamName;
use std::io::{self, Read};

/// Maximum size of a packet in bytes. Readers of a trace have the same limit.
const PACKET: u32 = 1 << 30;

/// Maximum size of a description. The one of all events of a kernel has some MiB.
const METADATA: u32 = 32 << 20;

/// Maximum size of all other texts.
const TEXT: u32 = 1 << 20;

/// Maximum size of an answer.
const ANSWER: u32 = 4 << 10;

/// Size of a frame's kind and length.
const HEAD: usize = 8;

/// A frame. For a packet only its head; the packet's bytes follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Request of the peer that connects. The first frame.
    Hello(Hello),
    /// A stream, and its number from now on. Numbers start at 0, and have no gaps.
    Stream {
        /// Its number.
        number: u32,
        /// Its name.
        name: StreamName,
    },
    /// Description of the trace. It is valid for all packets up to the next description.
    Metadata(String),
    /// A packet of a stream.
    Packet {
        /// The stream's number.
        number: u32,
        /// Number of bytes that follow.
        size: u32,
    },
    /// Text of the kernel's counters. Packets that they count as finished were sent, or will be.
    Stats(String),
    /// The end: no packet follows.
    End {
        /// Reason.
        state: State,
        /// Number of events that the kernel recorded and that were never sent.
        unwritten: u64,
    },
    /// The sender discards the trace: the receiver deletes it.
    Discard,
    /// The answer to a hello.
    Welcome {
        /// Name of the trace at the receiver.
        trace: String,
        /// Whether the receiver had a part of it before.
        resumed: bool,
    },
    /// The receiver has all packets of a stream below number `next`, except those that were never sent.
    Have {
        /// The stream's number.
        number: u32,
        /// Number of the last packet, plus 1.
        next: u64,
    },
    /// The receiver has written the whole trace to its disk, or has deleted it.
    Done,
    /// For a watcher: all events up to this clock value were sent.
    Complete {
        /// The clock.
        time: u64,
    },
    /// The peer accepts nothing more on this connection.
    Refused {
        /// Whether the reason is permanent, so that another attempt is useless.
        lasting: bool,
        /// Reason.
        reason: String,
    },
}

/// Kind of a frame: its first word.
#[derive(Clone, Copy)]
enum Kind {
    Hello = 1,
    Stream = 2,
    Metadata = 3,
    Packet = 4,
    Stats = 5,
    End = 6,
    Discard = 7,
    Welcome = 16,
    Have = 17,
    Done = 18,
    Refused = 19,
    Complete = 20,
}

impl Kind {
    const ALL: [Self; 12] = [
        Self::Hello,
        Self::Stream,
        Self::Metadata,
        Self::Packet,
        Self::Stats,
        Self::End,
        Self::Discard,
        Self::Welcome,
        Self::Have,
        Self::Done,
        Self::Refused,
        Self::Complete,
    ];

    /// Maximum size of the body.
    fn limit(self) -> u32 {
        match self {
            Self::Hello | Self::Stats => TEXT,
            Self::Metadata => METADATA,
            Self::Packet => 4 + PACKET,
            Self::Stream | Self::End | Self::Discard | Self::Have | Self::Done | Self::Complete => {
                128
            }
            Self::Welcome | Self::Refused => ANSWER,
        }
    }
}

impl Message {
    /// Reads the next frame; of a packet only its head.
    ///
    /// An error of the kind [`io::ErrorKind::InvalidData`] says what is wrong with the frame.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let (kind, length) = head(from)?;
        if length > kind.limit() {
            return Err(invalid(format!("a frame of {length} bytes is too long")));
        }
        if let Kind::Packet = kind {
            let size = length.checked_sub(4);
            let size = size.ok_or_else(|| invalid("a packet without a stream"))?;
            let number = word(from)?;
            return Ok(Self::Packet { number, size });
        }
        let mut body = Vec::new();
        from.take(length.into()).read_to_end(&mut body)?;
        if body.len() < length as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Self::parse(kind, &body)
    }

    fn parse(kind: Kind, mut body: &[u8]) -> io::Result<Self> {
        let body = &mut body;
        let message = match kind {
            Kind::Hello => Self::Hello(Hello::parse(&text(body)?).map_err(invalid)?),
            Kind::Stream => Self::Stream {
                number: word(body)?,
                name: stream_name(&text(body)?).map_err(invalid)?,
            },
            Kind::Metadata => Self::Metadata(text(body)?),
            Kind::Packet => unreachable!("it has no body"),
            Kind::Stats => Self::Stats(text(body)?),
            Kind::End => Self::End {
                state: state(word(body)?)?,
                unwritten: long(body)?,
            },
            Kind::Welcome => Self::Welcome {
                resumed: word(body)? != 0,
                trace: text(body)?,
            },
            Kind::Have => Self::Have {
                number: word(body)?,
                next: long(body)?,
            },
            Kind::Discard => Self::Discard,
            Kind::Done => Self::Done,
            Kind::Complete => Self::Complete { time: long(body)? },
            Kind::Refused => Self::Refused {
                lasting: word(body)? != 0,
                reason: text(body)?,
            },
        };
        if body.is_empty() {
            Ok(message)
        } else {
            Err(invalid("a frame has bytes after its contents"))
        }
    }

    /// Bytes of the frame; of a packet only its head.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEAD];
        let mut put = |words: &[u8]| bytes.extend_from_slice(words);
        let mut behind = 0;
        let kind = match self {
            Self::Hello(hello) => {
                put(hello.to_string().as_bytes());
                Kind::Hello
            }
            Self::Stream { number, name } => {
                put(&number.to_le_bytes());
                put(name.to_string().as_bytes());
                Kind::Stream
            }
            Self::Metadata(text) => {
                put(text.as_bytes());
                Kind::Metadata
            }
            Self::Packet { number, size } => {
                put(&number.to_le_bytes());
                behind = *size;
                Kind::Packet
            }
            Self::Stats(text) => {
                put(text.as_bytes());
                Kind::Stats
            }
            Self::End { state, unwritten } => {
                put(&number_of(*state).to_le_bytes());
                put(&unwritten.to_le_bytes());
                Kind::End
            }
            Self::Welcome { trace, resumed } => {
                put(&u32::from(*resumed).to_le_bytes());
                put(trace.as_bytes());
                Kind::Welcome
            }
            Self::Have { number, next } => {
                put(&number.to_le_bytes());
                put(&next.to_le_bytes());
                Kind::Have
            }
            Self::Discard => Kind::Discard,
            Self::Done => Kind::Done,
            Self::Complete { time } => {
                put(&time.to_le_bytes());
                Kind::Complete
            }
            Self::Refused { lasting, reason } => {
                put(&u32::from(*lasting).to_le_bytes());
                put(cut(reason).as_bytes());
                Kind::Refused
            }
        };
        let length = (bytes.len() - HEAD) as u32 + behind;
        bytes[..4].copy_from_slice(&(kind as u32).to_le_bytes());
        bytes[4..HEAD].copy_from_slice(&length.to_le_bytes());
        bytes
    }
}

/// An error for bytes that cannot be parsed.
pub fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// Numbers of states. A trace that has ended is not in state `Writing`.
const STATES: [(u32, State); 3] = [(1, State::Over), (2, State::Stopped), (3, State::Failed)];

fn state(number: u32) -> io::Result<State> {
    let known = STATES.into_iter().find(|(known, _)| *known == number);
    known
        .map(|(_, state)| state)
        .ok_or_else(|| invalid(format!("{number} is not a state of a trace")))
}

fn number_of(state: State) -> u32 {
    let known = STATES.into_iter().find(|(_, known)| *known == state);
    known.map_or(3, |(number, _)| number)
}

/// Cuts a reason to the size of a frame.
fn cut(reason: &str) -> &str {
    let mut end = reason.len().min(ANSWER as usize - 4);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    &reason[..end]
}

/// Reads the kind and the length of a frame. The check of each byte detects other protocols that send fewer
/// bytes.
fn head(from: &mut impl Read) -> io::Result<(Kind, u32)> {
    let mut bytes = [0; HEAD];
    let mut read = 0;
    while read < HEAD {
        match from.read(&mut bytes[read..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => read += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        kind(bytes[0].into())?;
    }
    let mut words = &bytes[..];
    Ok((kind(word(&mut words)?)?, word(&mut words)?))
}

fn kind(number: u32) -> io::Result<Kind> {
    let known = Kind::ALL.into_iter().find(|kind| *kind as u32 == number);
    known.ok_or_else(|| invalid("the peer sent a message that rtrace's protocol does not have"))
}

fn word(from: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn long(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The rest of the body as text.
fn text(body: &mut &[u8]) -> io::Result<String> {
    let bytes = std::mem::take(body).to_vec();
    String::from_utf8(bytes).map_err(|_| invalid("a text that is not UTF-8"))
}
