// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --serve`: the page of a trace, and the parts of it that the page asks for, by HTTP.
//!
//! The server listens on the loopback device. A request must name this address as its host, which a page of
//! another name cannot do even if that name resolves to this machine. The path begins with a random token,
//! which other users of the machine do not know. The server reads packets of the trace and no other file.

use super::detail::Details;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// Maximum number of simultaneous connections.
const CONNECTIONS: usize = 32;

/// Maximum size of a request, in bytes.
const REQUEST: usize = 8 << 10;

/// Maximum number of header lines of a request.
const HEADERS: usize = 64;

/// Time limit for each read of a request, and for each write of an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Headers of each answer: no other site may use the answer. The page itself lists the resources that it may
/// load (page.html).
const SECURITY: &str = "Content-Security-Policy: frame-ancestors 'none'\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    Referrer-Policy: no-referrer\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Cache-Control: no-store\r\n";

/// A server that waits for a page.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    port: u16,
    token: String,
}

/// A slot among the connections. Dropping it frees the slot.
struct Slot<'a>(&'a AtomicUsize);

impl<'a> Slot<'a> {
    /// Takes a slot. None if all are taken.
    fn take(count: &'a AtomicUsize) -> Option<Self> {
        let slot = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < CONNECTIONS).then_some(slot)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An answer to a request.
struct Answer<'a> {
    status: &'static str,
    kind: &'static str,
    body: std::borrow::Cow<'a, [u8]>,
}

impl Server {
    /// Listens on a free port.
    pub fn new() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let mut random = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        Ok(Self {
            port: listener.local_addr()?.port(),
            listener,
            token: random.map(|byte| format!("{byte:02x}")).concat(),
        })
    }

    /// Returns the address to open in a browser.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Answers requests until the process ends, or the listener fails.
    pub fn run(&self, page: &[u8], details: &Details<'_>) -> io::Result<()> {
        // Reading a part needs memory, so the server reads one part at a time.
        let details = Mutex::new(details);
        let count = AtomicUsize::new(0);
        thread::scope(|scope| {
            for connection in self.listener.incoming() {
                let connection = match connection {
                    Ok(connection) => connection,
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                    Err(error) => return Err(error),
                };
                let Some(slot) = Slot::take(&count) else {
                    continue;
                };
                let details = &details;
                scope.spawn(move || {
                    let _slot = slot;
                    // A closed connection is no error of the server.
                    let _ = self.serve(connection, page, details);
                });
            }
            Ok(())
        })
    }

    fn serve(
        &self,
        mut connection: TcpStream,
        page: &[u8],
        details: &Mutex<&Details<'_>>,
    ) -> io::Result<()> {
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;
        let mut request = Vec::new();
        let answer = loop {
            let mut piece = [0; 1024];
            let length = connection.read(&mut piece)?;
            request.extend_from_slice(&piece[..length]);
            if let Some(answer) = self.answer(&request, page, details) {
                break answer;
            }
            if length == 0 {
                return Ok(());
            }
            if request.len() > REQUEST {
                break Answer::error("431 Request Header Fields Too Large");
            }
        };
        write!(
            connection,
            "HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n{SECURITY}\r\n",
            answer.status,
            answer.kind,
            answer.body.len(),
        )?;
        connection.write_all(&answer.body)
    }

    /// Returns the answer to a request; none until the request is complete.
    fn answer<'a>(
        &self,
        bytes: &[u8],
        page: &'a [u8],
        details: &Mutex<&Details<'_>>,
    ) -> Option<Answer<'a>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(bytes) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return None,
            Err(_) => return Some(Answer::error("400 Bad Request")),
        }
        let mut hosts = request.headers.iter();
        let mut hosts = hosts
            .by_ref()
            .filter(|header| header.name.eq_ignore_ascii_case("host"));
        let host = hosts.next().map(|header| header.value);
        let is_host = |name: &str| host == Some(format!("{name}:{}", self.port).as_bytes());
        if hosts.next().is_some() || !(is_host("127.0.0.1") || is_host("localhost")) {
            return Some(Answer::error("403 Forbidden"));
        }
        let path = request.path.unwrap_or("").strip_prefix('/');
        let Some((token, rest)) = path.and_then(|path| path.split_once('/')) else {
            return Some(Answer::error("404 Not Found"));
        };
        if !is_same(token, &self.token) {
            return Some(Answer::error("404 Not Found"));
        }
        if request.method != Some("GET") {
            return Some(Answer::error("405 Method Not Allowed"));
        }
        if rest.is_empty() {
            return Some(Answer {
                status: "200 OK",
                kind: "text/html",
                body: page.into(),
            });
        }
        let Some((from, to)) = range(rest) else {
            return Some(Answer::error("404 Not Found"));
        };
        let details = details
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        Some(match details.read(from, to) {
            Ok(Some(part)) => Answer {
                status: "200 OK",
                kind: "application/json",
                body: part.into_bytes().into(),
            },
            Ok(None) => Answer::error("413 Content Too Large"),
            Err(error) => Answer {
                body: format!("{error:#}").into_bytes().into(),
                ..Answer::error("500 Internal Server Error")
            },
        })
    }
}

impl Answer<'_> {
    fn error(status: &'static str) -> Self {
        Self {
            status,
            kind: "text/plain",
            body: status.as_bytes().into(),
        }
    }
}

/// Whether two tokens are equal. The time of the comparison does not depend on the number of equal bytes.
fn is_same(a: &str, b: &str) -> bool {
    let bytes = a.bytes().zip(b.bytes());
    a.len() == b.len() && bytes.fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// Returns the two times of `part?from=A&to=B`.
fn range(path: &str) -> Option<(u64, u64)> {
    let (from, to) = path.strip_prefix("part?from=")?.split_once("&to=")?;
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    (from <= to).then_some((from, to))
}
