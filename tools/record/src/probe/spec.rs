// SPDX-License-Identifier: GPL-2.0

//! Argument of `-k`: a function of the kernel or of a program, or a tracepoint, with the arguments to record and the
//! values of the result to record.
//!
//! ```text
//! [EVENT=]FUNCTION[+OFFSET][(ARGUMENT, ...)] [-> RESULT, ...]
//! ARGUMENT = [NAME=]PARAMETER[->MEMBER | .MEMBER]...[:TYPE]
//! RESULT   = [NAME=]ret[->MEMBER | .MEMBER]...[:TYPE]
//! ```
//!
//! FUNCTION is a function of the kernel, `/FILE:FUNCTION` of a program or library, `tracepoint:NAME`, or a probe in the
//! code of a program: `usdt:TARGET:[PROVIDER:]NAME`. In a file, `FUNCTION@VERSION` and `FUNCTION@0xADDRESS` choose one of
//! several functions of that name. A parameter can be replaced by an argument that `dynamic_events` takes: `%REGISTER`,
//! `$comm`, `+8(%di)`, ... `str(ARGUMENT)` is `ARGUMENT:ustring`.

use rtrace_input::caret;
use rtrace_input::rest::{is_of_name, Rest};

/// Prefix of a tracepoint's name.
pub const TRACEPOINT: &str = "tracepoint:";

/// Prefix of a probe in the code of a program.
pub const USDT: &str = "usdt:";

/// A function, and the values to record of its calls.
#[derive(Debug, PartialEq, Eq)]
pub struct Spec<'a> {
    /// The name of the event, if given.
    pub event: Option<&'a str>,
    /// The function. With `+OFFSET`, a place in it.
    pub place: &'a str,
    /// Position of `place` in the text.
    pub at: usize,
    /// The values to record at a call.
    pub arguments: Vec<Value<'a>>,
    /// Whether the arguments were given. For a probe in a program's code, the default is all of them.
    pub arguments_given: bool,
    /// The values to record at the return. [`None`] if the return is not recorded.
    pub results: Option<Vec<Value<'a>>>,
}

/// A probe in the code of a program.
#[derive(Debug, PartialEq, Eq)]
pub struct Usdt<'a> {
    /// A file, the name of a file that is executed, or a PID.
    pub target: &'a str,
    /// The program or library that the probe belongs to, if given.
    pub provider: Option<&'a str>,
    /// Name of the probe.
    pub name: &'a str,
}

/// A value to record.
#[derive(Debug, PartialEq, Eq)]
pub struct Value<'a> {
    /// Position of the value in the text.
    pub at: usize,
    /// The name of the value, if given.
    pub name: Option<&'a str>,
    /// Source of the value.
    pub from: From<'a>,
    /// The type to record, if given.
    pub ty: Option<&'a str>,
}

/// Source of a value.
#[derive(Debug, PartialEq, Eq)]
pub enum From<'a> {
    /// An argument as `dynamic_events` takes it.
    Raw(&'a str),
    /// A parameter or the result, and the members to follow from there.
    Path(&'a str, Vec<Member<'a>>),
}

/// A step from a structure to a member.
#[derive(Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Position of the member in the text.
    pub at: usize,
    /// Whether the part before the member is a pointer.
    pub by_pointer: bool,
    /// Name of the member.
    pub name: &'a str,
}

/// A fault in a specification, with its position.
pub type Error = caret::Error<String>;

/// Returns the error that `what` is wrong at `at`.
pub fn error<T>(at: usize, what: impl Into<String>) -> Result<T, Error> {
    let reason = what.into();
    Err(Error { at, reason })
}

impl<'a> Spec<'a> {
    /// Parses a specification.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let mut rest = Rest::new(text);
        rest.skip_space();
        let mut at = rest.at;
        let mut place = take_place(&mut rest);
        let mut event = None;
        rest.skip_space();
        if rest.take("=") {
            if !is_name(place) {
                return error(at, "expected a name of letters, digits and '_'");
            }
            event = Some(place);
            rest.skip_space();
            at = rest.at;
            place = take_place(&mut rest);
        }
        if place.is_empty() {
            return error(at, "expected a function");
        }
        rest.skip_space();
        let mut arguments = Vec::new();
        let arguments_given = rest.take("(");
        if arguments_given {
            rest.skip_space();
            if !rest.take(")") {
                arguments = values(&mut rest)?;
                if !rest.take(")") {
                    return error(rest.at, "expected ',' or ')'");
                }
            }
        }
        rest.skip_space();
        let results = if rest.take("->") {
            Some(values(&mut rest)?)
        } else {
            None
        };
        if !rest.left().is_empty() {
            return error(rest.at, "expected '(', '->' or the end");
        }
        Ok(Self {
            event,
            place,
            at,
            arguments,
            arguments_given,
            results,
        })
    }

    /// The probe, if the place is one in the code of a program.
    pub fn usdt(&self) -> Option<Usdt<'a>> {
        let place = self.place.strip_prefix(USDT)?;
        let (target, name) = place.rsplit_once(':').unwrap_or(("", place));
        let (target, provider) = match target.rsplit_once(':') {
            Some((target, provider)) => (target, Some(provider)),
            None => (target, None),
        };
        Some(Usdt {
            target,
            provider,
            name,
        })
    }

    /// The file and the function, if the place is in a program.
    pub fn in_file(&self) -> Option<(&'a str, &'a str)> {
        self.place.starts_with('/').then(|| {
            let parts = self.place.rsplit_once(':');
            parts.unwrap_or((self.place, ""))
        })
    }

    /// The tracepoint, if the place is one.
    pub fn tracepoint(&self) -> Option<&'a str> {
        self.place.strip_prefix(TRACEPOINT)
    }

    /// Whether the place is a function of the kernel.
    pub fn is_in_kernel(&self) -> bool {
        self.in_file().is_none() && self.tracepoint().is_none() && self.usdt().is_none()
    }

    /// The function, without an offset.
    pub fn function(&self) -> &'a str {
        let function = self.place.split('+').next();
        function.unwrap_or(self.place)
    }
}

/// Parses a function, with its module, its file or an offset.
fn take_place<'a>(rest: &mut Rest<'a>) -> &'a str {
    if !rest.left().starts_with('/') && !rest.left().starts_with(USDT) {
        return rest.take_while(|c| is_of_name(c) || ".:+".contains(c));
    }
    let left = rest.left();
    let end = left.find(|c: char| c.is_whitespace() || c == '(');
    let end = end.unwrap_or(left.len());
    let end = left[..end].find("->").unwrap_or(end);
    rest.advance(end);
    &left[..end]
}

/// Parses values with commas between them, and the white space after them.
fn values<'a>(rest: &mut Rest<'a>) -> Result<Vec<Value<'a>>, Error> {
    let mut values = Vec::new();
    loop {
        values.push(value(rest)?);
        rest.skip_space();
        if !rest.take(",") {
            return Ok(values);
        }
    }
}

fn value<'a>(rest: &mut Rest<'a>) -> Result<Value<'a>, Error> {
    rest.skip_space();
    let at = rest.at;
    let before = *rest;
    let word = rest.take_while(is_of_name);
    rest.skip_space();
    let name = (!word.is_empty() && rest.take("=")).then_some(word);
    match name {
        Some(_) => rest.skip_space(),
        None => *rest = before,
    }
    if rest.take("str(") {
        rest.skip_space();
        let from = source(rest)?;
        rest.skip_space();
        if !rest.take(")") {
            return error(rest.at, "expected ')'");
        }
        let ty = Some("ustring");
        return Ok(Value { at, name, from, ty });
    }
    let from = source(rest)?;
    let ty = if rest.take(":") {
        Some(rest.take_while(|c| is_of_name(c) || "@/".contains(c)))
    } else {
        None
    };
    Ok(Value { at, name, from, ty })
}

fn source<'a>(rest: &mut Rest<'a>) -> Result<From<'a>, Error> {
    if rest.left().starts_with(['%', '$', '@', '\\', '+', '-']) {
        return Ok(From::Raw(raw(rest)));
    }
    let first = rest.take_while(is_of_name);
    path(rest, first)
}

fn path<'a>(rest: &mut Rest<'a>, first: &'a str) -> Result<From<'a>, Error> {
    if first.is_empty() {
        return error(rest.at, "expected a parameter");
    }
    let mut members = Vec::new();
    loop {
        let by_pointer = rest.take("->");
        if !by_pointer && !rest.take(".") {
            return Ok(From::Path(first, members));
        }
        let at = rest.at;
        let name = rest.take_while(is_of_name);
        if name.is_empty() {
            return error(at, "expected a member");
        }
        members.push(Member {
            at,
            by_pointer,
            name,
        });
    }
}

/// Parses up to a comma, a colon, white space, or a closing parenthesis that was opened earlier.
fn raw<'a>(rest: &mut Rest<'a>) -> &'a str {
    let mut depth = 0_usize;
    let left = rest.left();
    let end = left.find(|c: char| {
        match c {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            ')' | ',' | ':' => return true,
            _ => return c.is_whitespace(),
        }
        false
    });
    let raw = &left[..end.unwrap_or(left.len())];
    rest.advance(raw.len());
    raw
}

fn is_name(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path<'a>(first: &'a str, members: &[(bool, &'a str, usize)]) -> From<'a> {
        let member = |&(by_pointer, name, at)| Member {
            at,
            by_pointer,
            name,
        };
        From::Path(first, members.iter().map(member).collect())
    }

    #[test]
    fn specifications_are_parsed() {
        let spec = Spec::parse("vfs_read").expect("a function");
        assert_eq!((spec.place, spec.at, spec.event), ("vfs_read", 0, None));
        assert_eq!((spec.arguments.len(), spec.results), (0, None));

        let spec = Spec::parse(" mine = vfs_read ( count:u32 , ino=file->f_inode.i_ino, +8(%di):string )  -> ret->a, n=ret")
            .expect("all there is");
        assert_eq!(
            (spec.event, spec.place, spec.at),
            (Some("mine"), "vfs_read", 8)
        );
        let shown: Vec<_> = spec.arguments.iter().map(|v| (v.name, v.ty)).collect();
        assert_eq!(
            shown,
            [
                (None, Some("u32")),
                (Some("ino"), None),
                (None, Some("string"))
            ]
        );
        assert_eq!(spec.arguments[0].from, path("count", &[]));
        let members = [(true, "f_inode", 41), (false, "i_ino", 49)];
        assert_eq!(spec.arguments[1].from, path("file", &members));
        assert_eq!(spec.arguments[2].from, From::Raw("+8(%di)"));
        let results = spec.results.expect("results");
        assert_eq!((results[0].name, results[1].name), (None, Some("n")));
        assert_eq!(results[1].from, path("ret", &[]));

        let spec = Spec::parse("/usr/bin/some-program:main.0+4(%di)->ret").expect("a program");
        assert_eq!(spec.in_file(), Some(("/usr/bin/some-program", "main.0+4")));
        assert!(spec.results.is_some());

        let spec = Spec::parse(
            "q = usdt:/post:gres:postgresql:query( str(arg1), n=str( $arg2 ), arg3:x8 )",
        )
        .expect("a probe");
        let usdt = spec.usdt().expect("a probe");
        assert_eq!(
            (usdt.target, usdt.provider),
            ("/post:gres", Some("postgresql"))
        );
        assert_eq!((usdt.name, spec.event), ("query", Some("q")));
        let shown: Vec<_> = spec.arguments.iter().map(|v| (v.name, v.ty)).collect();
        let text = Some("ustring");
        assert_eq!(shown, [(None, text), (Some("n"), text), (None, Some("x8"))]);
        assert_eq!(spec.arguments[1].from, From::Raw("$arg2"));
        for (text, expected, are_given) in [
            ("usdt:a:b", ("a", None, "b"), false),
            ("usdt:12:b()", ("12", None, "b"), true),
            ("usdt:b", ("", None, "b"), false),
        ] {
            let spec = Spec::parse(text).expect(text);
            let usdt = spec.usdt().expect(text);
            assert_eq!((usdt.target, usdt.provider, usdt.name), expected, "{text}");
            assert_eq!(spec.arguments_given, are_given, "{text}");
        }

        let spec = Spec::parse("nf_tables:nft_do_chain.isra.0+0x10($comm)->ret").expect("a place");
        assert_eq!(spec.place, "nf_tables:nft_do_chain.isra.0+0x10");
        assert_eq!(spec.function(), "nf_tables:nft_do_chain.isra.0");
        assert_eq!(spec.arguments[0].from, From::Raw("$comm"));
    }

    #[test]
    fn what_is_wrong_is_shown() {
        for (text, at, what) in [
            ("", 0, "expected a function"),
            ("1a=f", 0, "expected a name"),
            ("a=", 2, "expected a function"),
            ("f(", 2, "expected a parameter"),
            ("f(a", 3, "expected ',' or ')'"),
            ("f(a b)", 4, "expected ',' or ')'"),
            ("f(a,)", 4, "expected a parameter"),
            ("f(a->)", 5, "expected a member"),
            ("f(a.b.)", 6, "expected a member"),
            ("f() g", 4, "expected '(', '->' or the end"),
            ("f ->", 4, "expected a parameter"),
            ("f(x=)", 4, "expected a parameter"),
            ("f(str(x)", 8, "expected ',' or ')'"),
            ("f(str(x y))", 8, "expected ')'"),
            ("f(str(x)y)", 8, "expected ',' or ')'"),
            ("f(str())", 6, "expected a parameter"),
        ] {
            let error = Spec::parse(text).expect_err(text);
            assert!(error.reason.starts_with(what), "{text}: {}", error.reason);
            assert_eq!(error.at, at, "{text}");
        }
    }
}
