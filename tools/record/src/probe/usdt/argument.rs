// SPDX-License-Identifier: GPL-2.0

//! The arguments of a probe, as the compiler has put them into its note: `SIZE@OPERAND`, in the language of the
//! assembler.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use terminal::printable;

/// An argument at a location of a probe.
#[derive(Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Argument {
    /// Type, as for `rtrace probe`: s32, u64, ...
    #[serde(rename = "type")]
    pub ty: String,
    /// Place, as the note has it.
    pub place: String,
    /// The value, as `dynamic_events` takes it. An error: the reason why it cannot be read.
    #[serde(skip)]
    pub value: Result<String, String>,
    /// Whether a pointer in memory cannot be followed.
    #[serde(skip)]
    is_short_pointer: bool,
}

/// The code around a location.
pub struct Context<'a> {
    pub is_arm64: bool,
    pub is_64_bit: bool,
    /// Address of the location.
    pub address: u64,
    /// Addresses of the file's symbols.
    pub symbols: &'a HashMap<&'a str, u64>,
}

impl Argument {
    /// The value as an address in memory.
    pub fn pointer(&self) -> Result<&str, String> {
        match &self.value {
            Ok(_) if self.is_short_pointer => Err(
                "rtrace follows pointers of 64 bits only, and this one of a 32-bit program is in memory"
                    .to_owned(),
            ),
            Ok(value) => Ok(value),
            Err(reason) => Err(reason.clone()),
        }
    }
}

/// Parses the arguments of a note.
pub fn parse(text: &str, at: &Context<'_>) -> Vec<Argument> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            // Operands of arm64 have white space.
            Some(last) if size(word).is_none() => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words.iter().map(|word| argument(word, at)).collect()
}

/// Splits `SIZE@OPERAND`.
fn size(word: &str) -> Option<(&str, &str)> {
    let (size, operand) = word.split_once('@')?;
    let digits = size.strip_prefix('-').unwrap_or(size);
    let digits = digits.strip_suffix('f').unwrap_or(digits);
    digits.parse::<u8>().is_ok().then_some((size, operand))
}

fn argument(word: &str, at: &Context<'_>) -> Argument {
    let (size, operand) = size(word).unwrap_or(("", word));
    let (digits, sign) = match size.strip_prefix('-') {
        Some(digits) => (digits, 's'),
        None => (size, 'u'),
    };
    let bits = match digits {
        "1" => Some(8),
        "2" => Some(16),
        "4" => Some(32),
        "8" => Some(64),
        _ => None,
    };
    let value = match bits {
        Some(_) if at.is_arm64 => arm64(operand),
        Some(_) => x86(operand, at),
        None if digits.ends_with('f') => {
            Err("it is a floating-point number, which probes cannot read".to_owned())
        }
        None => Err("it has no size of 1, 2, 4 or 8 bytes".to_owned()),
    };
    let is_in_memory = value
        .as_ref()
        .is_ok_and(|value| value.starts_with(['+', '-']));
    Argument {
        ty: match bits {
            Some(bits) => format!("{sign}{bits}"),
            None => printable(size),
        },
        place: printable(operand),
        value,
        is_short_pointer: is_in_memory && !at.is_64_bit,
    }
}

/// The value of an operand of x86: `$NUMBER`, `%REGISTER`, `OFFSET(%REGISTER)`, or `OFFSET(%REGISTER,%REGISTER,SCALE)`. An
/// offset can have a symbol.
fn x86(operand: &str, at: &Context<'_>) -> Result<String, String> {
    if let Some(number) = operand.strip_prefix('$') {
        return constant(number).ok_or_else(|| "it is an address that the linker chose".to_owned());
    }
    if operand.starts_with('%') && !operand.contains(':') {
        return Ok(format!("%{}", x86_register(operand)?));
    }
    let (offset, registers) = match operand.split_once('(') {
        Some((offset, registers)) => {
            let registers = registers.strip_suffix(')');
            (offset, Some(registers.ok_or("a parenthesis is missing")?))
        }
        None => (operand, None),
    };
    if offset.contains(':') {
        return Err("it is in the memory of its thread, which probes cannot find".to_owned());
    }
    let (number, symbol) = sum(offset).ok_or("it has an unknown form")?;
    let register = match registers {
        Some(registers) => match registers.split_once(',') {
            Some(sum) => Some(x86_sum(sum)?),
            None => Some(x86_register(registers)?.to_owned()),
        },
        None => None,
    };
    match (symbol, register.as_deref()) {
        (Some(symbol), None | Some("ip")) => {
            let address = at.symbols.get(symbol);
            let address = address
                .ok_or_else(|| format!("the file does not say where `{symbol}` is"))?
                .wrapping_add_signed(number);
            // The program may be loaded anywhere, but the distance from the probe to the symbol is known.
            let distance = address.wrapping_sub(at.address) as i64;
            Ok(memory(distance, "ip"))
        }
        (None, Some("ip")) | (Some(_), Some(_)) => Err("it has an unknown form".to_owned()),
        (None, Some(register)) => Ok(memory(number, register)),
        (None, None) => Err("it is at a fixed address".to_owned()),
    }
}

/// Parses a sum of numbers and at most one symbol, as the offset of an operand is.
fn sum(text: &str) -> Option<(i64, Option<&str>)> {
    let (mut number, mut symbol) = (0_i64, None);
    let mut rest = text;
    while !rest.is_empty() {
        let signed = rest.strip_prefix(['+', '-']);
        let is_negative = rest.starts_with('-');
        let part = signed.unwrap_or(rest);
        let end = part.find(['+', '-']).unwrap_or(part.len());
        let (part, left) = part.split_at(end);
        rest = left;
        match decimal_or_hex(part) {
            Some(value) if is_negative => number = number.checked_sub(value)?,
            Some(value) => number = number.checked_add(value)?,
            None if symbol.is_none() && !is_negative && !part.is_empty() => symbol = Some(part),
            None => return None,
        }
    }
    Some((number, symbol))
}

fn decimal_or_hex(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn constant(text: &str) -> Option<String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).is_ok(),
        None => digits.parse::<u64>().is_ok(),
    };
    is_number.then(|| format!("\\{text}"))
}

fn memory(offset: i64, register: &str) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    format!("{sign}{}(%{register})", offset.unsigned_abs())
}

/// The sum of two registers, of which the second one has a factor: `%BASE` and `%INDEX,SCALE`.
fn x86_sum((base, index): (&str, &str)) -> Result<String, String> {
    let (index, scale) = index.split_once(',').unwrap_or((index, "1"));
    if base.is_empty() {
        return Err("its address has an index and no base".to_owned());
    }
    let (base, index) = (x86_register(base)?, x86_register(index)?);
    match scale {
        "1" | "2" | "4" | "8" => Ok(format!("{base}+%{index}*{scale}")),
        _ => Err("it has an unknown form".to_owned()),
    }
}

/// The kernel's name of a register of x86 that is called `%NAME`.
fn x86_register(text: &str) -> Result<&str, String> {
    let unknown = || format!("probes cannot read the register `{text}`");
    let name = text.strip_prefix('%').ok_or_else(unknown)?;
    let letters = name.strip_prefix(['r', 'e']).unwrap_or(name);
    Ok(match letters {
        "ax" | "al" => "ax",
        "bx" | "bl" => "bx",
        "cx" | "cl" => "cx",
        "dx" | "dl" => "dx",
        "si" | "sil" => "si",
        "di" | "dil" => "di",
        "bp" | "bpl" => "bp",
        "sp" | "spl" => "sp",
        "ip" => "ip",
        _ => {
            // r8 to r15, with d, w or b for their lower parts.
            let whole = name.strip_suffix(['d', 'w', 'b']).unwrap_or(name);
            let number = whole
                .strip_prefix('r')
                .and_then(|number| number.parse().ok());
            let is_known = number.is_some_and(|number: u8| (8..16).contains(&number));
            is_known.then_some(whole).ok_or_else(unknown)?
        }
    })
}

/// The value of an operand of arm64: a number, a register, or `[REGISTER]` and `[REGISTER, OFFSET]`.
fn arm64(operand: &str) -> Result<String, String> {
    if let Some(number) = constant(operand.strip_prefix('#').unwrap_or(operand)) {
        return Ok(number);
    }
    let register = |name: &str| -> Result<String, String> {
        let number = name.strip_prefix(['x', 'w']);
        let number: Option<u8> = number.and_then(|number| number.parse().ok());
        match number {
            Some(number) if number < 31 => Ok(format!("x{number}")),
            _ if name == "sp" => Ok(name.to_owned()),
            _ => Err(format!("probes cannot read the register `{name}`")),
        }
    };
    let inside = operand
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let Some(inside) = inside else {
        return Ok(format!("%{}", register(operand)?));
    };
    let (base, offset) = inside.split_once(',').unwrap_or((inside, "0"));
    let offset = offset.trim();
    let offset = offset.strip_prefix('#').unwrap_or(offset);
    let negative = offset.strip_prefix('-');
    let number = decimal_or_hex(negative.unwrap_or(offset));
    let number = number.ok_or("its address is a sum of two registers, or has a symbol")?;
    let number = if negative.is_some() { -number } else { number };
    Ok(memory(number, &register(base.trim())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, is_arm64: bool) -> Vec<(String, Result<String, String>)> {
        let symbols = HashMap::from([("before", 0x800), ("after", 0x1010)]);
        let at = Context {
            is_arm64,
            is_64_bit: true,
            address: 0x1000,
            symbols: &symbols,
        };
        let arguments = parse(text, &at).into_iter();
        arguments.map(|one| (one.ty, one.value)).collect()
    }

    #[test]
    fn operands_of_x86_are_values() {
        for (text, ty, value) in [
            ("-4@%edi", "s32", "%di"),
            ("1@%sil", "u8", "%si"),
            ("2@%ax", "u16", "%ax"),
            ("8@%rbp", "u64", "%bp"),
            ("-1@%r10b", "s8", "%r10"),
            ("4@%r9d", "u32", "%r9"),
            ("8@%r15", "u64", "%r15"),
            ("8@-16(%rbp)", "u64", "-16(%bp)"),
            ("8@(%rbx)", "u64", "+0(%bx)"),
            ("-4@0x10(%rsp)", "s32", "+16(%sp)"),
            ("-4@$5", "s32", "\\5"),
            ("-4@$-1", "s32", "\\-1"),
            ("8@$18446744073709551615", "u64", "\\18446744073709551615"),
            ("8@(%rax,%rbx,8)", "u64", "+0(%ax+%bx*8)"),
            ("-4@-16(%rsp,%r9)", "s32", "-16(%sp+%r9*1)"),
            ("4@after(%rip)", "u32", "+16(%ip)"),
            ("4@4+after(%rip)", "u32", "+20(%ip)"),
            ("4@after-4(%rip)", "u32", "+12(%ip)"),
            ("-8@before(%rip)", "s64", "-2048(%ip)"),
            ("-8@before", "s64", "-2048(%ip)"),
        ] {
            assert_eq!(
                parsed(text, false),
                [(ty.to_owned(), Ok(value.to_owned()))],
                "{text}"
            );
        }
        for (text, reason) in [
            ("8f@%xmm0", "floating-point"),
            ("16@%rax", "no size"),
            ("%rax", "no size"),
            ("8@%ah", "`%ah`"),
            ("8@%r16", "`%r16`"),
            ("8@%xmm1", "`%xmm1`"),
            ("8@(,%rbx,8)", "no base"),
            ("8@(%rax,%xmm0,8)", "`%xmm0`"),
            ("8@(%rax,%rbx,3)", "unknown form"),
            ("8@after(%rax,%rbx,8)", "unknown form"),
            ("8@%fs:16", "memory of its thread"),
            ("8@%fs:(%rax)", "memory of its thread"),
            ("8@other(%rip)", "`other`"),
            ("8@$after", "linker"),
            ("8@16", "fixed address"),
            ("8@after(%rax)", "unknown form"),
        ] {
            let [(_, value)] = &parsed(text, false)[..] else {
                panic!("{text}");
            };
            let error = value.as_ref().expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
        let several = parsed("-4@%edi 8@-8(%rsp)\t1@$0", false);
        assert_eq!(several.len(), 3);
        assert_eq!(parsed("", false), []);
    }

    #[test]
    fn operands_of_arm64_are_values() {
        let several = parsed(
            "-4@[sp, 12] 8@x0 -4@w19 4@5 8@[x1] -8@[x29, -16] 1@sp 4@[x0, #8]",
            true,
        );
        let values: Vec<_> = several.iter().map(|(_, value)| value.as_deref()).collect();
        assert_eq!(
            values,
            [
                "+12(%sp)",
                "%x0",
                "%x19",
                "\\5",
                "+0(%x1)",
                "-16(%x29)",
                "%sp",
                "+8(%x0)"
            ]
            .map(Ok)
        );
        for (text, reason) in [
            ("8@[x0, x1]", "two registers"),
            ("8@[x0, :lo12:a]", "symbol"),
            ("8@x31", "`x31`"),
            ("8f@d0", "floating-point"),
        ] {
            let value = &parsed(text, true)[0].1;
            let error = value.as_ref().expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
