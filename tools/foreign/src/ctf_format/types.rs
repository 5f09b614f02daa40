// SPDX-License-Identifier: GPL-2.0

//! The types of TSDL.

use super::model::*;
use ctf::tree::{self, Node, Statement};
use std::collections::HashMap;
use system::Result;

/// The named types in the scopes around a statement.
#[derive(Debug)]
pub struct Types {
    order: Order,
    /// From the outermost scope on. `struct NAME`, `enum NAME` and `variant NAME` have these names.
    scopes: Vec<HashMap<String, Type>>,
    /// The number of parts of types that the description may still have.
    left: usize,
}

/// Maximum number of types within types.
const DEPTH: usize = 16;

/// Maximum number of parts of all types. A short text may name types of types, and so on.
pub const PARTS: usize = 1 << 20;

/// A number, with a base as in C.
pub fn number<T: TryFrom<i128>>(text: &str) -> Option<T> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.trim_end_matches(['u', 'U', 'l', 'L']);
    let value = match (
        digits
            .strip_prefix("0x")
            .or_else(|| digits.strip_prefix("0X")),
        digits,
    ) {
        (Some(hex), _) => i128::from_str_radix(hex, 16),
        (None, octal) if octal.len() > 1 && octal.starts_with('0') => {
            i128::from_str_radix(&octal[1..], 8)
        }
        (None, decimal) => decimal.parse(),
    };
    T::try_from(sign * value.ok()?).ok()
}

/// Whether a word is a true value.
pub fn is_true(word: &str) -> bool {
    matches!(word, "true" | "TRUE" | "1")
}

/// The nodes of a statement, from the first that was not read on.
struct Nodes<'a> {
    rest: &'a [Node<'a>],
    statement: &'a Statement<'a>,
}

impl<'a> Nodes<'a> {
    fn error(&self, what: impl Into<String>) -> system::Error {
        self.statement.error(what)
    }

    fn word(&mut self) -> Option<&'a str> {
        let (Node::Word(word), rest) = self.rest.split_first()? else {
            return None;
        };
        self.rest = rest;
        Some(word)
    }

    fn mark(&mut self, mark: char) -> bool {
        let is_it = self.rest.first() == Some(&Node::Mark(mark));
        if is_it {
            self.rest = &self.rest[1..];
        }
        is_it
    }

    fn block(&mut self) -> Option<&'a [Statement<'a>]> {
        let (Node::Block(block), rest) = self.rest.split_first()? else {
            return None;
        };
        self.rest = rest;
        Some(block)
    }

    /// The number in `align(N)`, if that is next.
    fn align(&mut self) -> Result<u32> {
        match self.rest {
            [Node::Word(word), Node::Mark('('), Node::Word(align), Node::Mark(')'), rest @ ..]
                if word == "align" =>
            {
                self.rest = rest;
                alignment(align).ok_or_else(|| self.error("an alignment that is no power of two"))
            }
            _ => Ok(1),
        }
    }
}

fn alignment(text: &str) -> Option<u32> {
    number(text).filter(|align: &u32| align.is_power_of_two() && *align <= 1 << 12)
}

impl Types {
    /// No types, for a trace with this order of bytes.
    pub fn new(order: Order) -> Self {
        Self {
            order,
            scopes: vec![HashMap::new()],
            left: PARTS,
        }
    }

    /// Reads the types `KEY := TYPE` of a block, in the order of the keys, with the types that the block defines.
    pub fn scope(&mut self, block: &[Statement<'_>], keys: &[&str]) -> Result<Vec<Option<Type>>> {
        self.scopes.push(HashMap::new());
        let mut found: Vec<Option<Type>> = keys.iter().map(|_| None).collect();
        for statement in block {
            match statement.nodes.as_slice() {
                [Node::Word(key), Node::Mark(':'), Node::Mark('='), rest @ ..] => {
                    let Some(place) = keys.iter().position(|k| k == key) else {
                        continue;
                    };
                    let mut nodes = Nodes { rest, statement };
                    let ty = self.specifier(&mut nodes, false, 0)?;
                    if !matches!(ty, Type::Structure(..)) {
                        return Err(statement.error(format!("`{key}` is no structure")));
                    }
                    found[place] = Some(ty);
                }
                [Node::Word(_), Node::Mark('='), ..] => {}
                _ => self.define(statement)?,
            }
        }
        self.scopes.pop();
        Ok(found)
    }

    /// Reads a statement that defines a type. Skips a statement of another kind.
    pub fn define(&mut self, statement: &Statement<'_>) -> Result<()> {
        let mut nodes = Nodes {
            rest: &statement.nodes,
            statement,
        };
        match statement.nodes.first() {
            Some(Node::Word(word)) if word == "typealias" => {
                nodes.word();
                let ty = self.specifier(&mut nodes, false, 0)?;
                if !(nodes.mark(':') && nodes.mark('=')) {
                    return Err(statement.error("a `typealias` without `:=`"));
                }
                let mut name = Vec::new();
                while let Some(word) = nodes.word() {
                    name.push(word);
                }
                self.name(name.join(" "), ty);
            }
            Some(Node::Word(word)) if word == "typedef" => {
                nodes.word();
                let (name, ty) = self.field(&mut nodes, 0)?;
                self.name(name, ty);
            }
            Some(Node::Word(word)) if matches!(word.as_ref(), "struct" | "enum" | "variant") => {
                self.specifier(&mut nodes, false, 0)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn name(&mut self, name: String, ty: Type) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, ty);
        }
    }

    fn find(&self, name: &str) -> Option<&Type> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// A type and a declared name: `TYPE NAME[LENGTH]...`.
    fn field(&mut self, nodes: &mut Nodes<'_>, depth: usize) -> Result<(String, Type)> {
        let ty = self.specifier(nodes, true, depth)?;
        let Some(name) = nodes.word() else {
            return Err(nodes.error("a field without name"));
        };
        let mut lengths = Vec::new();
        while nodes.mark('[') {
            match nodes.word() {
                Some(length) if nodes.mark(']') => lengths.push(length),
                _ => return Err(nodes.error(format!("field `{name}`: no valid length"))),
            }
        }
        if !nodes.rest.is_empty() {
            return Err(nodes.error(format!("field `{name}`: an unknown form")));
        }
        let ty = lengths.iter().rev().fold(ty, |element, length| {
            let element = Box::new(element);
            match number(length) {
                Some(length) => Type::Array(element, length, 1),
                None => Type::Sequence(element, reference(length), 1),
            }
        });
        Ok((name.to_owned(), ty))
    }

    /// A type. `is_declared`: a name follows it.
    fn specifier(
        &mut self,
        nodes: &mut Nodes<'_>,
        is_declared: bool,
        depth: usize,
    ) -> Result<Type> {
        if depth > DEPTH {
            return Err(nodes.error("types within types, too deep"));
        }
        while matches!(nodes.rest.first(), Some(Node::Word(word)) if word == "const") {
            nodes.word();
        }
        let before = nodes.rest;
        match nodes.word() {
            Some("integer") if matches!(nodes.rest.first(), Some(Node::Block(_))) => {
                let block = nodes.block().unwrap_or_default();
                self.integer(nodes, block).map(Type::Integer)
            }
            Some("floating_point") => {
                let block = nodes.block().unwrap_or_default();
                self.float(nodes, block)
            }
            Some("string") => {
                nodes.block();
                Ok(Type::String)
            }
            Some("struct") => {
                let name = nodes.word();
                let Some(block) = nodes.block() else {
                    return self.tagged(nodes, "struct", name);
                };
                self.scopes.push(HashMap::new());
                let fields = self.fields(block, depth + 1);
                self.scopes.pop();
                let ty = Type::Structure(fields?, nodes.align()?);
                if let Some(name) = name {
                    self.name(format!("struct {name}"), ty.clone());
                }
                Ok(ty)
            }
            Some("variant") => {
                let name = match nodes.rest.first() {
                    Some(Node::Mark('<')) => None,
                    _ => nodes.word(),
                };
                let mut tag = None;
                if nodes.mark('<') {
                    tag = nodes.word();
                    if tag.is_none() || !nodes.mark('>') {
                        return Err(nodes.error("a variant without valid tag"));
                    }
                }
                let mut ty = match nodes.block() {
                    None => self.tagged(nodes, "variant", name)?,
                    Some(block) => {
                        self.scopes.push(HashMap::new());
                        let fields = self.fields(block, depth + 1);
                        self.scopes.pop();
                        let choices = fields?.into_iter().map(|field| Choice {
                            name: field.name,
                            ty: field.ty,
                            values: Vec::new(),
                        });
                        Type::Variant(Reference::new(Vec::new()), choices.collect())
                    }
                };
                if let Some(name) = name {
                    self.name(format!("variant {name}"), ty.clone());
                }
                if let (Type::Variant(to, _), Some(tag)) = (&mut ty, tag) {
                    *to = reference(tag);
                }
                Ok(ty)
            }
            Some("enum") => {
                let name = match nodes.rest.first() {
                    Some(Node::Word(_)) => nodes.word(),
                    _ => None,
                };
                let container = match nodes.mark(':') {
                    true => Some(self.specifier(nodes, false, depth + 1)?),
                    false => None,
                };
                let Some(block) = nodes.block() else {
                    return self.tagged(nodes, "enum", name);
                };
                let container = container.or_else(|| self.find("int").cloned());
                let Some(Type::Integer(container)) = container else {
                    return Err(nodes.error("an enumeration of no integer type"));
                };
                let labels = labels(nodes, block)?;
                let ty = Type::Enumeration(container, labels);
                if let Some(name) = name {
                    self.name(format!("enum {name}"), ty.clone());
                }
                Ok(ty)
            }
            Some(_) => {
                // The longest known name of one or several words. If a field follows, its name is the last word.
                let words = before
                    .iter()
                    .take_while(|node| matches!(node, Node::Word(_)));
                let count = words.count();
                let most = if is_declared {
                    count.saturating_sub(1)
                } else {
                    count
                };
                for length in (1..=most).rev() {
                    let name: Vec<_> = before[..length].iter().filter_map(as_word).collect();
                    if let Some(parts) = self.find(&name.join(" ")).map(Type::parts) {
                        nodes.rest = &before[length..];
                        self.spend(parts, nodes)?;
                        let ty = self.find(&name.join(" ")).cloned();
                        return ty.ok_or_else(|| nodes.error("a type is missing"));
                    }
                }
                let name: Vec<_> = before[..most].iter().filter_map(as_word).collect();
                Err(nodes.error(format!("an unknown type `{}`", name.join(" "))))
            }
            None => Err(nodes.error("a type is missing")),
        }
    }

    /// The type called `struct NAME`, `enum NAME` or `variant NAME`.
    fn tagged(&mut self, nodes: &Nodes<'_>, kind: &str, name: Option<&str>) -> Result<Type> {
        let full = format!("{kind} {}", name.unwrap_or_default());
        let parts = self.find(&full).map(Type::parts);
        let parts = parts.ok_or_else(|| nodes.error(format!("an unknown type `{full}`")))?;
        self.spend(parts, nodes)?;
        let found = self.find(&full).cloned();
        found.ok_or_else(|| nodes.error("a type is missing"))
    }

    /// Counts parts of types.
    fn spend(&mut self, parts: usize, nodes: &Nodes<'_>) -> Result<()> {
        let left = self.left.checked_sub(parts);
        self.left = left.ok_or_else(|| nodes.error(format!("types of more than {PARTS} parts")))?;
        Ok(())
    }

    fn fields(&mut self, block: &[Statement<'_>], depth: usize) -> Result<Vec<Field>> {
        let mut fields = Vec::new();
        for statement in block {
            let mut nodes = Nodes {
                rest: &statement.nodes,
                statement,
            };
            let first = statement.nodes.first().and_then(as_word);
            if matches!(first, None | Some("typealias" | "typedef")) {
                self.define(statement)?;
                continue;
            }
            let (name, ty) = self.field(&mut nodes, depth)?;
            fields.push(Field {
                name,
                ty,
                role: None,
            });
        }
        Ok(fields)
    }

    fn order(&self, nodes: &Nodes<'_>, block: &[Statement<'_>]) -> Result<Order> {
        match tree::value(block, "byte_order") {
            None | Some("native") => Ok(self.order),
            Some("le") => Ok(Order::Little),
            Some("be" | "network") => Ok(Order::Big),
            Some(other) => Err(nodes.error(format!("an unknown byte_order `{other}`"))),
        }
    }

    fn integer(&self, nodes: &Nodes<'_>, block: &[Statement<'_>]) -> Result<Integer> {
        let value = |key| tree::value(block, key);
        let bits = value("size")
            .and_then(number)
            .filter(|bits| (1..=64).contains(bits));
        let bits: u8 = bits.ok_or_else(|| nodes.error("an integer of no size from 1 to 64"))?;
        let align = match value("align") {
            Some(align) => alignment(align),
            None => Some(if bits % 8 == 0 { 8 } else { 1 }),
        };
        let base = match value("base") {
            None | Some("decimal" | "dec" | "d" | "i" | "u" | "10") => Base::Decimal,
            Some("hexadecimal" | "hex" | "x" | "X" | "p" | "16") => Base::Hexadecimal,
            Some("octal" | "oct" | "o" | "8") => Base::Octal,
            Some("binary" | "b" | "2") => Base::Binary,
            Some(other) => return Err(nodes.error(format!("an unknown base `{other}`"))),
        };
        Ok(Integer {
            bits,
            align: align.ok_or_else(|| nodes.error("an alignment that is no power of two"))?,
            is_signed: value("signed").is_some_and(is_true),
            order: self.order(nodes, block)?,
            base,
            is_text: matches!(
                value("encoding"),
                Some("UTF8" | "UTF-8" | "utf8" | "ASCII" | "ascii")
            ),
            clock: value("map")
                .and_then(|map| map.strip_prefix("clock.")?.strip_suffix(".value"))
                .map(str::to_owned),
            save: None,
        })
    }

    fn float(&self, nodes: &Nodes<'_>, block: &[Statement<'_>]) -> Result<Type> {
        let part = |key| tree::value(block, key).and_then(number);
        let bits = match (part("exp_dig"), part("mant_dig")) {
            (Some(8), Some(24)) => 32,
            (Some(11), Some(53)) => 64,
            _ => return Err(nodes.error("a floating-point number that has neither 32 nor 64 bits")),
        };
        let align = tree::value(block, "align").map_or(Some(1), alignment);
        Ok(Type::Float {
            bits,
            align: align.ok_or_else(|| nodes.error("an alignment that is no power of two"))?,
            order: self.order(nodes, block)?,
        })
    }
}

fn as_word<'a>(node: &'a Node<'_>) -> Option<&'a str> {
    match node {
        Node::Word(word) => Some(word),
        _ => None,
    }
}

fn reference(path: &str) -> Reference {
    Reference::new(path.split('.').map(str::to_owned).collect())
}

/// The labels `NAME`, `NAME = VALUE` or `NAME = FIRST ... LAST`, between commas.
fn labels(nodes: &Nodes<'_>, block: &[Statement<'_>]) -> Result<Vec<Label>> {
    let mut labels: Vec<Label> = Vec::new();
    let all = block
        .iter()
        .flat_map(|statement| statement.nodes.split(|node| *node == Node::Mark(',')));
    for label in all.filter(|label| !label.is_empty()) {
        let bits = |text: &str| number::<i128>(text).map(|value| value as u64);
        let next = || labels.last().map_or(0, |label| label.last.wrapping_add(1));
        let parsed = match label {
            [Node::Word(name) | Node::Text(name)] => Some((name, next(), next())),
            [Node::Word(name) | Node::Text(name), Node::Mark('='), Node::Word(value)] => {
                bits(value).map(|value| (name, value, value))
            }
            [Node::Word(name) | Node::Text(name), Node::Mark('='), Node::Word(first), Node::Word(dots), Node::Word(last)]
                if dots == "..." =>
            {
                bits(first)
                    .zip(bits(last))
                    .map(|(first, last)| (name, first, last))
            }
            _ => None,
        };
        let Some((name, first, last)) = parsed else {
            return Err(nodes.error("an enumeration with a label of an unknown form"));
        };
        labels.push(Label {
            name: name.to_string(),
            first,
            last,
        });
    }
    Ok(labels)
}
