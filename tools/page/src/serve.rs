// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --serve`: the page of a trace, and the parts of it that the page asks for, by HTTP.
//!
//! The server listens on the loopback device. A request must name this address as its host, which a page of
//! another name cannot do even if that name resolves to this machine. The path begins with a random token,
//! which other users of the machine do not know. The server reads packets of the trace and no other file.

use super::detail::Details;
use http::{Answer, Request};
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// A server that waits for a page.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    port: u16,
    token: String,
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
        let answer = |request: &Request<'_>| self.answer(request, page, &details);
        let notice = |text: &str| terminal::say(text);
        http::serve(&http::LIMITS, &self.listener, None, Ok, answer, notice)
    }

    fn answer<'a>(
        &self,
        request: &Request<'_>,
        page: &'a [u8],
        details: &Mutex<&Details<'_>>,
    ) -> Answer<'a> {
        let hosts: Vec<_> = request.headers("host").collect();
        let is_host = |name: &str| hosts == [format!("{name}:{}", self.port).as_bytes()];
        if !(is_host("127.0.0.1") || is_host("localhost")) {
            return Answer::error("403 Forbidden");
        }
        let path = request.path.strip_prefix('/');
        let rest = match path.and_then(|path| path.split_once('/')) {
            Some((token, rest)) if is_same(token, &self.token) => rest,
            _ => return Answer::error("404 Not Found"),
        };
        if rest.is_empty() {
            return Answer::ok("text/html", page);
        }
        let Some((from, to)) = range(rest) else {
            return Answer::error("404 Not Found");
        };
        let details = details.lock().unwrap_or_else(PoisonError::into_inner);
        match details.read(from, to) {
            Ok(Some(part)) => Answer::ok("application/json", part.into_bytes()),
            Ok(None) => Answer::error("413 Content Too Large"),
            Err(error) => Answer::because("500 Internal Server Error", &format!("{error:#}")),
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
