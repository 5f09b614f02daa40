// SPDX-License-Identifier: GPL-2.0

//! A request over HTTP: the bytes are the size of the pieces in which data arrives, and the data that a client sends.
//!
//! The answer does not depend on the pieces, and its length is the one in its head. No more than a head is read.

use http::{read, Answer, Request, HEAD};
use std::cell::Cell;
use std::io::{self, Read};

struct Client<'a> {
    data: &'a [u8],
    piece: usize,
}

impl Read for Client<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let most = bytes.len().min(self.piece);
        self.data.read(&mut bytes[..most])
    }
}

pub fn check(data: &[u8]) {
    if let Some((&piece, data)) = data.split_first() {
        let pieces = answer(data, usize::from(piece).max(1));
        assert_eq!(pieces, answer(data, HEAD));
    }
}

fn answer(data: &[u8], piece: usize) -> Option<Vec<u8>> {
    let mut client = Client { data, piece };
    let requests = Cell::new(0);
    let answer = |request: &Request<'_>| {
        requests.set(requests.get() + 1);
        let accepted: Vec<_> = request.headers("accept").collect();
        let body = [request.path.as_bytes(), &accepted.concat()].concat();
        Answer::ok("text/plain", body)
    };
    let answer = read(&mut client, answer).unwrap();
    assert!(data.len() - client.data.len() <= HEAD);
    let Some(answer) = answer else {
        assert!(client.data.is_empty() && requests.get() == 0);
        return None;
    };
    assert_eq!(requests.get(), u32::from(answer.status == "200 OK"));
    let mut bytes = Vec::new();
    answer.write(&mut bytes).unwrap();
    let head = &bytes[..bytes.len() - answer.body.len()];
    let head = std::str::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 ") && head.find("\r\n\r\n") == Some(head.len() - 4));
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", answer.body.len())));
    Some(bytes)
}
