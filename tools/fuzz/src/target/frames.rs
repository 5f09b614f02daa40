// SPDX-License-Identifier: GPL-2.0

//! Bytes on a connection between a sender, a receiver and a watcher.
//!
//! A message that was read, written again, gives the same bytes, or is read as the same message. The names of a
//! machine and of its streams become file names, so they must not lead to another directory.

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
            // The lines of a hello may be written in several ways.
            Message::Hello(hello) => names(hello),
            // Any word except 0 means yes.
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

/// A single component: the name of a file that is not hidden, or of an AUX area's file.
fn is_a_file(name: &str) {
    let name = name.strip_prefix(".aux_").unwrap_or(name);
    let mut parts = Path::new(name).components();
    assert!(matches!(parts.next(), Some(Component::Normal(_))));
    assert_eq!(parts.next(), None);
    assert!(!name.starts_with('.') && !name.contains(['/', '\0', '\n']));
}
