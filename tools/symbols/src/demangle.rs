// SPDX-License-Identifier: GPL-2.0

//! The readable form of names in Rust and in C++.

use std::fmt::{self, Write};

/// The maximum length of a name, in bytes.
pub const NAME_MAX: usize = 4096;

/// The readable form of a name in Rust and in C++. A function in C++ loses its arguments. A name whose readable form
/// would be too long stays unchanged: each part of it may stand for many.
pub fn demangled(name: &str) -> String {
    let mut short = Short(String::new());
    let written = if let Ok(name) = rustc_demangle::try_demangle(name) {
        write!(short, "{name:#}").is_ok()
    } else if name.starts_with("_Z") {
        let options = cpp_demangle::DemangleOptions::new();
        let options = options.no_params().no_return_type();
        let symbol = cpp_demangle::Symbol::new(name);
        symbol.is_ok_and(|symbol| symbol.structured_demangle(&mut short, &options).is_ok())
    } else {
        false
    };
    if written {
        short.0
    } else {
        name.to_owned()
    }
}

/// A text of at most [`NAME_MAX`] bytes.
struct Short(String);

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > NAME_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        for (mangled, name) in [
            ("main", "main"),
            ("_ZN3foo3bar17h0123456789abcdefE", "foo::bar"),
            ("_RNvCs4fqI2P2rA04_3foo3bar", "foo::bar"),
            ("_ZN3foo3barEi", "foo::bar"),
            ("_Z", "_Z"),
        ] {
            assert_eq!(demangled(mangled), name);
        }
    }

    #[test]
    fn a_name_that_doubles_in_every_part_stays_as_it_is() {
        let mut name = "_Z1fI1AIiiE".to_owned();
        for part in "123456789ABCDEFGHI".chars() {
            name += &format!("S0_IS{part}_S{part}_E");
        }
        name += "Evv";
        assert_eq!(demangled(&name), name);
        assert_eq!(
            demangled("_Z1fI1AIiiES0_IS1_S1_EEvv"),
            "f<A<int, int>, A<A<int, int>, A<int, int> > >"
        );
    }
}
