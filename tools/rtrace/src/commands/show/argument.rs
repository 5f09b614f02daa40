// SPDX-License-Identifier: GPL-2.0

//! An argument of a system call as text, and the bytes that the call moves.

use super::told::{write_bytes, Moved};

/// An argument of a system call as text, with its place among the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Position among the arguments of the call.
    pub position: usize,
    /// Name and value.
    pub text: String,
    /// The buffers of which the text shows the lengths.
    pub buffers: Vec<Buffer>,
}

/// A buffer in the text of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Offset in the text, before the length.
    pub at: usize,
    /// The length.
    pub len: u64,
}

/// Shows bytes that a call moved: in the buffers of an argument, or instead of their address, unless that is 0.
pub fn show_moved(arguments: &mut [Argument], moved: &Moved) {
    let Some(position) = decode::position(&moved.call, moved.argument) else {
        return;
    };
    let mut arguments = arguments.iter_mut();
    if moved.is_in_buffers {
        // At the end of recvmsg(2), the message has no position.
        if let Some(argument) = arguments.find(|argument| !argument.buffers.is_empty()) {
            argument.show_in_buffers(&moved.bytes, moved.size);
        }
        return;
    }
    let argument = arguments.find(|argument| argument.position == position);
    if let Some(argument) = argument.filter(|argument| !argument.text.ends_with(": NULL")) {
        argument.text = format!("{}: ", moved.argument);
        write_bytes(&mut argument.text, &moved.bytes, moved.size);
    }
}

impl Argument {
    /// Adds the first of `size` bytes, which are in the buffers one after the other.
    fn show_in_buffers(&mut self, bytes: &[u8], size: u64) {
        let mut shown = String::new();
        let (mut from, mut bytes, mut left) = (0, bytes, size);
        for buffer in std::mem::take(&mut self.buffers) {
            shown.push_str(&self.text[from..buffer.at]);
            from = buffer.at;
            let size = buffer.len.min(left);
            left -= size;
            let known = usize::try_from(size).map_or(bytes.len(), |size| size.min(bytes.len()));
            let (here, others) = bytes.split_at(known);
            bytes = others;
            shown.push_str("iov_base=");
            write_bytes(&mut shown, here, size);
            shown.push_str(", ");
        }
        shown.push_str(&self.text[from..]);
        self.text = shown;
    }
}

/// Writes arguments in the order of the call. Arguments without a known position follow in the order of the record.
pub fn write_arguments(out: &mut String, mut arguments: Vec<Argument>) {
    arguments.sort_by_key(|argument| argument.position);
    out.push('(');
    for (place, argument) in arguments.iter().enumerate() {
        if place > 0 {
            out.push_str(", ");
        }
        out.push_str(&argument.text);
    }
    out.push(')');
}
