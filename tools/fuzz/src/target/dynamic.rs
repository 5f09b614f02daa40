// SPDX-License-Identifier: GPL-2.0

//! Lines of `dynamic_events`.
//!
//! A refusal names a place of the line. An accepted line consists of parts of the text, in their order. Put
//! together again, the parts give the same definition.

use rtrace_input::dynamic::{Definition, Name, PlaceBase};

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Definition::parse(text) {
        Err(error) => {
            assert!(text.is_char_boundary(error.at), "{error:?}");
            assert!(!error.shown(text).to_string().is_empty());
        }
        Ok(Definition::Remove(name)) => {
            let written = format!("-:{}", shown(name));
            assert_eq!(Definition::parse(&written), Ok(Definition::Remove(name)));
        }
        Ok(Definition::Add(probe)) => {
            let kind = match probe.place.is_tracepoint() {
                true => "t",
                false if probe.at_return => "r",
                false => "p",
            };
            let max = match probe.max_active {
                0 => String::new(),
                max => max.to_string(),
            };
            let name = probe.name.map(|name| format!(":{}", shown(name)));
            let written = format!("{kind}{max}{} {}", name.unwrap_or_default(), probe.text);
            let Ok(Definition::Add(again)) = Definition::parse(&written) else {
                panic!("{written:?} is no event");
            };
            assert_eq!((again.name, again.text), (probe.name, probe.text));
            assert_eq!(again.max_active, probe.max_active);
            assert_eq!(again.place.base, probe.place.base);
            assert!(again.place.returns().eq(probe.place.returns()));
            assert!(text[probe.place.at..].starts_with(probe.text));
            if let PlaceBase::Symbol(symbol)
            | PlaceBase::File(symbol)
            | PlaceBase::Tracepoint(symbol) = probe.place.base
            {
                assert!(!symbol.is_empty() && probe.text.starts_with(symbol));
            }
            let words: Vec<_> = probe.text.split_ascii_whitespace().skip(1).collect();
            let arguments: Vec<_> = probe.arguments().map(|a| a.expect("parsed")).collect();
            assert_eq!(arguments.len(), words.len());
            for ((argument, word), number) in arguments.iter().zip(words).zip(1..) {
                assert!(text[argument.at..].starts_with(word));
                assert_eq!(argument.number, number);
                let steps = word.matches('(').count();
                assert_eq!(argument.steps().count(), steps);
            }
        }
    }
}

fn shown(name: Name<'_>) -> String {
    let subsystem = name.subsystem.map(|name| format!("{name}/"));
    subsystem.unwrap_or_default() + name.event
}
