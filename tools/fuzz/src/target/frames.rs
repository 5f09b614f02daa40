// SPDX-License-Identifier: GPL-2.0

//! What comes on a connection between a sender, a receiver and who watches.
//!
//! What is read, written again, is the same bytes, or read as the same; a machine's name and its streams'
//! become names of files, so nothing in them leads to another directory.

use network::message::Message;
use network::Hello;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path};

pub fn check(data: &[u8]) {
    let mut rest = data;
    loop {
        let before = rest.len();
        let message = match Message::read(&mut rest) {
            Ok(message) => message,
            Err(error) => {
                let known = [ErrorKind::InvalidData, ErrorKind::UnexpectedEof];
                assert!(known.contains(&error.kind()), "{error:?}");
                return;
            }
        };
        let written = message.to_bytes();
        assert_eq!(Message::read(&mut &*written).ok().as_ref(), Some(&message));
        let taken = before - rest.len();
        match &message {
            // Its lines may be written in other ways.
            Message::Hello(hello) => names(hello),
            // A word stands for a yes.
            Message::Welcome { .. } | Message::Refused { .. } => {}
            _ => assert_eq!(written, data[data.len() - before..][..taken]),
        }
        match message {
            Message::Stream { name, .. } => is_a_file(&name.to_string()),
            Message::Packet { size, .. } => {
                let mut packet = Vec::new();
                let mut body = Read::take(&mut rest, size.into());
                let read = body.read_to_end(&mut packet);
                assert!(read.is_ok_and(|read| read <= size as usize));
            }
            _ => {}
        }
    }
}

fn names(hello: &Hello) {
    if let Hello::Send(sent) = hello {
        is_a_file(&sent.name());
        sent.streams
            .iter()
            .for_each(|name| is_a_file(&name.to_string()));
    }
}

/// One name, of a file that is not hidden, or of an AUX area's.
fn is_a_file(name: &str) {
    let name = name.strip_prefix(".aux_").unwrap_or(name);
    let mut parts = Path::new(name).components();
    assert!(matches!(parts.next(), Some(Component::Normal(_))));
    assert_eq!(parts.next(), None);
    assert!(!name.starts_with('.') && !name.contains(['/', '\0', '\n']));
}
