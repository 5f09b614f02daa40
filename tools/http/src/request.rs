// SPDX-License-Identifier: GPL-2.0

//! Requests and their answers.

use std::borrow::Cow;
use std::io::{self, Read, Write};

/// Maximum size of a request's head, in bytes. The rest of a request is not read.
pub const HEAD: usize = 8 << 10;

/// Maximum number of header lines of a request.
const HEADERS: usize = 64;

/// Headers of each answer: no other site may use it, and no cache may keep it.
const SECURITY: &str = "Content-Security-Policy: frame-ancestors 'none'\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    Referrer-Policy: no-referrer\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Cache-Control: no-store\r\n";

/// A GET request.
#[derive(Debug)]
pub struct Request<'a> {
    /// The path, with the query.
    pub path: &'a str,
    headers: &'a [httparse::Header<'a>],
}

impl Request<'_> {
    /// The values of all header lines with this name.
    pub fn headers<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s [u8]> {
        let named = move |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
        self.headers.iter().filter(named).map(|header| header.value)
    }
}

/// An answer to a request.
#[derive(Debug)]
pub struct Answer<'a> {
    /// Number and name of the status.
    pub status: &'static str,
    /// Media type of the body, which is UTF-8.
    pub kind: &'static str,
    /// The body.
    pub body: Cow<'a, [u8]>,
}

impl<'a> Answer<'a> {
    /// A body that was asked for.
    pub fn ok(kind: &'static str, body: impl Into<Cow<'a, [u8]>>) -> Self {
        let (status, body) = ("200 OK", body.into());
        Self { status, kind, body }
    }

    /// An error without an explanation.
    pub fn error(status: &'static str) -> Self {
        Self::because(status, status)
    }

    /// An error, with its explanation.
    pub fn because(status: &'static str, why: &str) -> Self {
        Self {
            status,
            kind: "text/plain",
            body: format!("{why}\n").into_bytes().into(),
        }
    }

    /// Writes the answer.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let Self { status, kind, body } = self;
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n{SECURITY}\r\n"
        );
        to.write_all(head.as_bytes())?;
        to.write_all(body)?;
        to.flush()
    }
}

/// Reads a request, and returns its answer: that of `answer`, or an error. [`None`]: the client left before the request
/// was complete.
pub fn read<'a>(
    from: &mut impl Read,
    answer: impl Fn(&Request<'_>) -> Answer<'a>,
) -> io::Result<Option<Answer<'a>>> {
    let mut head = [0; HEAD];
    let mut filled = 0;
    while filled < HEAD {
        match from.read(&mut head[filled..]) {
            Ok(0) => return Ok(None),
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let headers = match request.parse(&head[..filled]) {
            Ok(httparse::Status::Partial) => continue,
            Ok(httparse::Status::Complete(_)) => &*request.headers,
            Err(_) => return Ok(Some(Answer::error("400 Bad Request"))),
        };
        return Ok(Some(match (request.method, request.path) {
            (Some("GET"), Some(path)) => answer(&Request { path, headers }),
            _ => Answer::error("405 Method Not Allowed"),
        }));
    }
    Ok(Some(Answer::error("431 Request Header Fields Too Large")))
}
