// SPDX-License-Identifier: GPL-2.0

//! A small server of HTTP, for one text.

use super::text::older;
use crate::log::Log;
use network::ServerTls;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Maximum number of simultaneous connections.
const CONNECTIONS: usize = 16;

/// Maximum size of a request, in bytes.
const REQUEST: usize = 16 << 10;

/// Maximum number of header lines of a request.
const HEADERS: usize = 64;

/// Time limit for each read of a request, and for each write of an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// The types of the text.
const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const OLDER: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves until `stop` is readable. `text` makes the text of `/metrics`, in OpenMetrics. With `tls`, connections are encrypted, and
/// both sides show certificates.
pub fn run(
    listener: &TcpListener,
    tls: Option<&ServerTls>,
    stop: impl AsFd,
    text: &(impl Fn() -> Result<String, String> + Sync),
    log: &Log,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let count = AtomicUsize::new(0);
    thread::scope(|scope| loop {
        let mut fds = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(&stop, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !fds[1].revents().is_empty() {
            return Ok(());
        }
        let connection = match listener.accept() {
            Ok((connection, _)) => connection,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => {
                log.error(&format!("cannot accept connections: {error}"));
                thread::sleep(PAUSE);
                continue;
            }
        };
        if count.load(Ordering::Relaxed) == CONNECTIONS {
            // The connection is closed.
            continue;
        }
        count.fetch_add(1, Ordering::Relaxed);
        let count = &count;
        scope.spawn(move || {
            // A connection that the other side ends is no error of the server.
            let _ = attend(connection, tls, text);
            count.fetch_sub(1, Ordering::Relaxed);
        });
    })
}

fn attend(
    connection: TcpStream,
    tls: Option<&ServerTls>,
    text: &impl Fn() -> Result<String, String>,
) -> io::Result<()> {
    connection.set_nonblocking(false)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    match tls {
        None => serve(connection, text),
        Some(tls) => serve(tls.wrap(connection)?, text),
    }
}

/// Reads a request and answers it.
fn serve(
    mut connection: impl Read + Write,
    text: &impl Fn() -> Result<String, String>,
) -> io::Result<()> {
    let mut request = Vec::new();
    let (status, kind, body) = loop {
        let mut piece = [0; 4096];
        let length = connection.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        request.extend_from_slice(&piece[..length]);
        if request.len() > REQUEST {
            break error("431 Request Header Fields Too Large");
        }
        if let Some(answer) = answer(&request, text) {
            break answer;
        }
    };
    write!(
        connection,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    connection.write_all(body.as_bytes())?;
    connection.flush()
}

/// Status, type and body.
type Answer = (&'static str, &'static str, String);

fn error(status: &'static str) -> Answer {
    (status, "text/plain; charset=utf-8", format!("{status}\n"))
}

/// The answer to a request. [`None`]: the request is not complete.
fn answer(bytes: &[u8], text: &impl Fn() -> Result<String, String>) -> Option<Answer> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return None,
        Err(_) => return Some(error("400 Bad Request")),
    }
    // A reader that does not ask for OpenMetrics may know only the older format.
    let mut accepted = request.headers.iter();
    let is_open = accepted.any(|header| {
        let value = String::from_utf8_lossy(header.value);
        header.name.eq_ignore_ascii_case("accept") && value.contains("application/openmetrics-text")
    });
    let path = request.path.unwrap_or("");
    let path = path.split('?').next().unwrap_or(path);
    Some(match (request.method, path) {
        (Some("GET"), "/metrics") => match text() {
            Ok(text) if is_open => ("200 OK", OPEN, text),
            Ok(text) => ("200 OK", OLDER, older(&text)),
            Err(why) => {
                let (status, kind, _) = error("503 Service Unavailable");
                (status, kind, format!("{why}\n"))
            }
        },
        (Some("GET"), _) => error("404 Not Found"),
        _ => error("405 Method Not Allowed"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_answered() {
        let text = || Ok("a 1\n# EOF\n".to_owned());
        let status = |request: &str| answer(request.as_bytes(), &text).map(|(status, ..)| status);
        assert_eq!(status("GET /metrics HTTP/1.1\r\nHost: a\r\n"), None);
        for (request, expected) in [
            ("GET /metrics HTTP/1.1", "200 OK"),
            ("GET /metrics?x=y HTTP/1.1", "200 OK"),
            ("GET / HTTP/1.1", "404 Not Found"),
            ("POST /metrics HTTP/1.1", "405 Method Not Allowed"),
            ("GET", "400 Bad Request"),
        ] {
            assert_eq!(status(&format!("{request}\r\n\r\n")), Some(expected));
        }
        let kind = |headers: &str| {
            let request = format!("GET /metrics HTTP/1.1\r\n{headers}\r\n");
            let (_, kind, body) = answer(request.as_bytes(), &text).unwrap();
            (kind, body.ends_with("# EOF\n"))
        };
        let prometheus = "accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
        assert_eq!(kind(prometheus), (OPEN, true));
        assert_eq!(kind("Accept: */*\r\n"), (OLDER, false));
        let fails = || Err("gone".to_owned());
        let (status, _, body) = answer(b"GET /metrics HTTP/1.1\r\n\r\n", &fails).unwrap();
        assert_eq!(
            (status, body.as_str()),
            ("503 Service Unavailable", "gone\n")
        );
    }
}
