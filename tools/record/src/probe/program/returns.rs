// SPDX-License-Identifier: GPL-2.0

//! The return instructions of a function.
//!
//! A probe at the return address would replace that address on the stack. Exceptions, cancelled threads, `longjmp()`
//! and backtraces would find the replacement. Probes at return instructions leave the stack as it is. They need all
//! returns of the function, and no other instruction.

use super::code::{Code, Flow};
use super::functions::{Function, Functions};
use anyhow::{bail, Context};
use std::collections::BTreeMap;
use std::ops::Range;

/// The addresses of the return instructions that a function can reach, sorted. An error says why they are unknown.
pub fn returns(
    code: &Code<'_>,
    functions: &Functions,
    function: &Function,
) -> anyhow::Result<Vec<u64>> {
    if function.size == 0 {
        bail!("its symbol has no size");
    }
    let range = functions.range(function);
    if let Some(other) = functions.inside(&range) {
        bail!("`{}` begins inside it", other.name);
    }
    let mut walk = Walk {
        code,
        functions,
        function,
        parts: vec![range],
        ends: BTreeMap::new(),
        todo: vec![function.address],
        returns: Vec::new(),
    };
    while let Some(at) = walk.todo.pop() {
        walk.follow(at)?;
    }
    walk.returns.sort_unstable();
    if walk.returns.is_empty() {
        bail!("it has no return instruction");
    }
    Ok(walk.returns)
}

/// The search for the instructions of a function, from its beginning.
struct Walk<'a> {
    code: &'a Code<'a>,
    functions: &'a Functions,
    function: &'a Function,
    /// The function, and the parts that the compiler has put elsewhere.
    parts: Vec<Range<u64>>,
    /// The end of each instruction that was found, by its beginning.
    ends: BTreeMap<u64, u64>,
    /// Addresses to which the found instructions jump.
    todo: Vec<u64>,
    returns: Vec<u64>,
}

impl Walk<'_> {
    /// Follows the instructions from `at` to one after which the processor does not continue with the next one.
    fn follow(&mut self, mut at: u64) -> anyhow::Result<()> {
        let mut after_call = false;
        while !self.ends.contains_key(&at) {
            if !self.has(at) {
                // The call before the end of the function does not return.
                if after_call {
                    return Ok(());
                }
                bail!("its last instruction does not end it");
            }
            let found = self.code.instruction(at);
            let found =
                found.with_context(|| format!("no instruction is at {}", self.shown(at)))?;
            let before = self.ends.range(..at).next_back();
            let is_in_other = before.is_some_and(|(_, end)| *end > at);
            if is_in_other || self.ends.range(at..found.end).next().is_some() {
                bail!("its instructions overlap at {}", self.shown(at));
            }
            self.ends.insert(at, found.end);
            match found.flow {
                Flow::Next | Flow::Call => {}
                Flow::Branch(to) => self.jump(at, to)?,
                Flow::Jump(to) => return self.jump(at, to),
                Flow::Return => {
                    self.returns.push(at);
                    return Ok(());
                }
                Flow::Trap => return Ok(()),
                Flow::Computed => {
                    bail!(
                        "it jumps to an address that it computes, at {}",
                        self.shown(at)
                    );
                }
            }
            after_call = found.flow == Flow::Call;
            at = found.end;
        }
        Ok(())
    }

    fn jump(&mut self, from: u64, to: u64) -> anyhow::Result<()> {
        if to == self.function.address {
            bail!("it jumps to its own beginning, at {}", self.shown(from));
        }
        if !self.has(to) {
            let part = self.functions.cold_part(self.function, to);
            let part = part
                .with_context(|| format!("it jumps to another function, at {}", self.shown(from)));
            self.parts.push(part?);
        }
        self.todo.push(to);
        Ok(())
    }

    fn has(&self, address: u64) -> bool {
        self.parts.iter().any(|part| part.contains(&address))
    }

    fn shown(&self, address: u64) -> String {
        match address.checked_sub(self.function.address) {
            Some(inside) => format!("{}+{inside:#x}", self.function.name),
            None => format!("{address:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The function `f` is at this address, and another one after 0x100 bytes.
    const ADDRESS: u64 = 0x1000;

    /// The returns of `f`, as offsets in it. `f.cold` begins at 0x80.
    fn found(code: &[u8], cold: &[u8]) -> Result<Vec<u64>, String> {
        let mut bytes = vec![0x90; 0x100];
        bytes[..code.len()].copy_from_slice(code);
        bytes[0x80..][..cold.len()].copy_from_slice(cold);
        bytes.push(0xc3);
        let code_len = code.len() as u64;
        let functions = [
            ("f", ADDRESS, code_len),
            ("f.cold", ADDRESS + 0x80, cold.len() as u64),
            ("g", ADDRESS + 0x100, 1),
        ];
        let (code, functions) = (Code::of(ADDRESS, &bytes), Functions::of(&functions));
        let function = functions
            .find("f", &code)
            .map_err(|error| error.to_string())?;
        let returns = returns(&code, &functions, &function);
        let returns = returns.map_err(|error| format!("{error:#}"))?;
        Ok(returns.into_iter().map(|at| at - ADDRESS).collect())
    }

    #[test]
    fn all_returns_are_found() {
        // je +1; ret; nop; ret
        assert_eq!(found(&[0x74, 0x01, 0xc3, 0x90, 0xc3], &[]), Ok(vec![2, 4]));
        // A loop that does not begin at the beginning: nop; je -3; ret
        assert_eq!(found(&[0x90, 0x90, 0x74, 0xfd, 0xc3], &[]), Ok(vec![4]));
        // ret; and what no instruction leads to: no instruction, ret
        assert_eq!(found(&[0xc3, 0x06, 0xc3], &[]), Ok(vec![0]));
        // je +1; ret; call, which does not return
        assert_eq!(
            found(&[0x74, 0x01, 0xc3, 0xe8, 0, 0, 0, 0], &[]),
            Ok(vec![2])
        );
        // je +1; ret; ud2
        assert_eq!(found(&[0x74, 0x01, 0xc3, 0x0f, 0x0b], &[]), Ok(vec![2]));
        // jne to the cold part; ret. There: je back to the ret; ret
        let cold = [0x0f, 0x84, 0x80, 0xff, 0xff, 0xff, 0xc3];
        assert_eq!(
            found(&[0x0f, 0x85, 0x7a, 0, 0, 0, 0xc3], &cold),
            Ok(vec![6, 0x86])
        );
    }

    #[test]
    fn functions_with_unknown_returns_are_refused() {
        for (code, reason) in [
            // jmp to `g`
            (
                &[0xe9, 0xfb, 0, 0, 0][..],
                "it jumps to another function, at f+0x0",
            ),
            // jmp *%rax
            (
                &[0xff, 0xe0],
                "it jumps to an address that it computes, at f+0x0",
            ),
            // je to the beginning; ret
            (
                &[0x74, 0xfe, 0xc3],
                "it jumps to its own beginning, at f+0x0",
            ),
            // nop, and the end
            (&[0x90], "its last instruction does not end it"),
            // ud2
            (&[0x0f, 0x0b], "it has no return instruction"),
            // Not an instruction
            (&[0x90, 0x06, 0xc3], "no instruction is at f+0x1"),
            // je into the mov; mov $0xc3, %al; ret
            (&[0x74, 0x01, 0xb0, 0xc3, 0xc3], "its instructions overlap"),
            (&[], "its symbol has no size"),
        ] {
            let error = found(code, &[]).expect_err(reason);
            assert!(error.starts_with(reason), "{error}");
        }
    }
}
