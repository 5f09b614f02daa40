// SPDX-License-Identifier: GPL-2.0

//! Short texts with a meaning: numbers and switches as module and tools accept them, a buffer's size. An
//! accepted value, printed and parsed again, is the same.

use control::BufferSize;
use rtrace_input::number;
use std::fmt::{Debug, Display};
use std::str::FromStr;

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(size) = read_back::<BufferSize>(text) {
        assert!(size.subbuf_size.is_power_of_two() && size.subbuf_size >= 4096);
        assert!(size.subbuf_count.is_power_of_two() && size.subbuf_count >= 2);
        read_back::<BufferSize>(&size.doubled().to_string()).expect("a larger size");
    }
    if let Some(size) = number::size(text) {
        assert_eq!(number::size(&size.to_string()), Some(size));
    }
    if let Some(on) = number::switch(text) {
        assert_eq!(text.parse(), Ok(u8::from(on)));
    }
}

fn read_back<T: FromStr + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    let value: T = text.parse().ok()?;
    assert_eq!(value.to_string().parse().ok().as_ref(), Some(&value));
    Some(value)
}
