// SPDX-License-Identifier: GPL-2.0

//! What is said on a connection: frames of a kind, a length and a body.
//!
//! Documentation/network-protocol.md has the bytes, and in which order they come. Whatever the bytes are, reading
//! them gives a message or an error, and takes no more memory than the kind's limit, and no more of that than
//! has come.

use crate::hello::Hello;
use consumer::State;
use ctf::StreamName;
use rtrace_input::name;
use std::io::{self, Read};

/// The version of the protocol.
pub const VERSION: u32 = 1;

/// The largest packet, in bytes: what readers of a trace believe.
const PACKET: u32 = 1 << 30;

/// The largest description. One of all events of a kernel has some MiB.
const METADATA: u32 = 32 << 20;

/// The longest of all other texts.
const TEXT: u32 = 1 << 20;

/// The longest answer.
const ANSWER: u32 = 4 << 10;

/// Bytes of a frame's kind and length.
const HEAD: usize = 8;

/// A frame. Of a packet only its head: the packet's bytes come behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Who speaks, and what about. The first one.
    Hello(Hello),
    /// A stream, and the number by which it is called from now on: from 0, in their order.
    Stream {
        /// Its number.
        number: u32,
        /// Its name.
        name: StreamName,
    },
    /// The trace's description. It covers all packets up to the next one.
    Metadata(String),
    /// A packet of a stream.
    Packet {
        /// The stream's number.
        number: u32,
        /// Bytes that come behind.
        size: u32,
    },
    /// The text of the kernel's counters. What they count as finished packets is sent, or will be.
    Stats(String),
    /// No packet comes any more.
    End {
        /// Why.
        state: State,
        /// Events that the kernel recorded, and that will never come.
        unwritten: u64,
    },
    /// Nobody wants the trace: nothing is to be left of it.
    Discard,
    /// The answer to a hello.
    Welcome {
        /// What the receiver calls the trace.
        trace: String,
        /// Whether it held a part of it before.
        resumed: bool,
    },
    /// Of this stream the receiver has all packets whose numbers are below `next`, as far as there are such.
    Have {
        /// The stream's number.
        number: u32,
        /// Above the number of the last packet.
        next: u64,
    },
    /// The trace is on the receiver's disk, to its end; or nothing of it is.
    Done,
    /// To who watches: all that happened up to this clock value has come.
    Complete {
        /// The clock.
        time: u64,
    },
    /// Nothing more is taken on this connection.
    Refused {
        /// Whether it is of no use to try again.
        lasting: bool,
        /// Why.
        reason: String,
    },
}

/// What a frame begins with.
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

    /// The longest body.
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
    /// Takes the next frame; of a packet its head.
    ///
    /// An error of the kind [`io::ErrorKind::InvalidData`] says what is wrong with it.
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
            Err(invalid("a frame with more in it than it should have"))
        }
    }

    /// The frame's bytes; of a packet its head.
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

/// An error of bytes that say nothing that is understood here.
pub fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// The name of a stream, whose channel has a name as the kernel takes it.
pub fn stream_name(text: &str) -> Result<StreamName, String> {
    let name: Option<StreamName> = text.parse().ok();
    let name = name.filter(|name| name::refusal(name.area().unwrap_or(&name.channel)).is_none());
    // One way to write it, for it becomes the name of a file.
    let name = name.filter(|name| name.to_string() == text);
    name.ok_or_else(|| format!("`{}` is no stream", text.escape_debug()))
}

/// The numbers of states. A trace that ends is not being written any more.
const STATES: [(u32, State); 3] = [(1, State::Over), (2, State::Stopped), (3, State::Failed)];

fn state(number: u32) -> io::Result<State> {
    let known = STATES.into_iter().find(|(known, _)| *known == number);
    known
        .map(|(_, state)| state)
        .ok_or_else(|| invalid(format!("{number} is no state of a trace")))
}

fn number_of(state: State) -> u32 {
    let known = STATES.into_iter().find(|(_, known)| *known == state);
    known.map_or(3, |(number, _)| number)
}

/// What of a reason finds room in a frame.
fn cut(reason: &str) -> &str {
    let mut end = reason.len().min(ANSWER as usize - 4);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    &reason[..end]
}

/// The kind and the length of a frame. Who speaks something else may do so in fewer bytes.
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
    known.ok_or_else(|| invalid("this is no frame of rtrace's"))
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

/// All that is left.
fn text(body: &mut &[u8]) -> io::Result<String> {
    let bytes = std::mem::take(body).to_vec();
    String::from_utf8(bytes).map_err(|_| invalid("a text that is not UTF-8"))
}
