// SPDX-License-Identifier: GPL-2.0

//! Lines of `dynamic_events` with types that this file writes byte by byte.

use super::*;
use std::fs;
use tempfile::TempDir;

/// A BTF in the format of the kernel's `Documentation/bpf/btf.rst`.
#[derive(Default)]
struct Btf {
    types: Vec<u32>,
    count: u32,
    strings: Vec<u8>,
}

impl Btf {
    fn string(&mut self, text: &str) -> u32 {
        if self.strings.is_empty() {
            self.strings.push(0);
        }
        if text.is_empty() {
            return 0;
        }
        let at = self.strings.len() as u32;
        self.strings.extend(text.bytes().chain([0]));
        at
    }

    /// Adds a type. Returns its id.
    fn add(&mut self, name: &str, info: u32, size_or_type: u32, rest: &[u32]) -> u32 {
        let name = self.string(name);
        self.types.extend([name, info, size_or_type]);
        self.types.extend(rest);
        self.count += 1;
        self.count
    }

    fn int(&mut self, name: &str, bytes: u32, is_signed: bool) -> u32 {
        let encoding = (u32::from(is_signed) << 24) | (bytes * 8);
        self.add(name, 1 << 24, bytes, &[encoding])
    }

    fn pointer(&mut self, to: u32) -> u32 {
        self.add("", 2 << 24, to, &[])
    }

    fn array(&mut self, of: u32, count: u32) -> u32 {
        self.add("", 3 << 24, 0, &[of, of, count])
    }

    /// Adds a structure. Each member has a name, a type, an offset in bits, and the bits of a bit field or 0.
    fn structure(&mut self, name: &str, bytes: u32, members: &[(&str, u32, u32, u32)]) -> u32 {
        let mut rest = Vec::new();
        for &(name, ty, bit, bits) in members {
            rest.extend([self.string(name), ty, (bits << 24) | bit]);
        }
        let info = (1 << 31) | (4 << 24) | members.len() as u32;
        self.add(name, info, bytes, &rest)
    }

    fn typedef(&mut self, name: &str, ty: u32) -> u32 {
        self.add(name, 8 << 24, ty, &[])
    }

    fn constant(&mut self, ty: u32) -> u32 {
        self.add("", 10 << 24, ty, &[])
    }

    fn function(&mut self, name: &str, result: u32, parameters: &[(&str, u32)]) {
        let mut rest = Vec::new();
        for &(name, ty) in parameters {
            rest.extend([self.string(name), ty]);
        }
        let proto = self.add("", (13 << 24) | parameters.len() as u32, result, &rest);
        self.add(name, 12 << 24, proto, &[]);
    }

    fn bytes(&self) -> Vec<u8> {
        let types: Vec<u8> = self
            .types
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        let words = [24, 0, types.len(), types.len(), self.strings.len()];
        bytes.extend(words.iter().flat_map(|word| (*word as u32).to_le_bytes()));
        bytes.extend(types);
        bytes.extend(&self.strings);
        bytes
    }
}

fn types() -> TempDir {
    let mut btf = Btf::default();
    let int = btf.int("int", 4, true);
    let long = btf.int("unsigned long", 8, false);
    let size = btf.typedef("size_t", long);
    let letter = btf.int("char", 1, true);
    let constant = btf.constant(letter);
    let text = btf.pointer(constant);
    let comm = btf.array(letter, 16);
    let numbers = btf.array(int, 4);
    let inode = btf.structure(
        "inode",
        32,
        &[("i_ino", long, 64, 0), ("i_name", comm, 128, 0)],
    );
    let inodes = btf.pointer(inode);
    let short = btf.int("unsigned short", 2, false);
    let u16 = btf.typedef("__u16", short);
    let be16 = btf.typedef("__be16", u16);
    let port = btf.typedef("port_t", be16);
    let port = btf.constant(port);
    let be32 = btf.typedef("__be32", int);
    let path = btf.structure(
        "path",
        16,
        &[("inode", inodes, 0, 0), ("name", text, 64, 0)],
    );
    let hidden = btf.structure("", 8, &[("low", int, 3, 2), ("wide", int, 30, 10)]);
    let members = [
        ("", hidden, 64, 0),
        ("f_path", path, 128, 0),
        ("f_numbers", numbers, 256, 0),
        ("f_inode", inodes, 512, 0),
        ("f_port", port, 576, 0),
        ("f_short", u16, 592, 0),
        ("f_address", be32, 608, 0),
    ];
    let file = btf.structure("file", 128, &members);
    let file = btf.pointer(file);
    let parameters = [("file", file), ("name", text), ("count", size)];
    btf.function("reads", int, &parameters);
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    btf.function("many", 0, &names.map(|name| (name, int)));
    btf.function("opens", file, &[]);
    let void = btf.pointer(0);
    let names = ["a", "b", "c", "d", "e", "f"].map(|name| (name, int));
    let parameters: Vec<_> = [("__data", void)].into_iter().chain(names).collect();
    btf.function("__probestub_six_tp", 0, &parameters);
    btf.function("__probestub_none_tp", 0, &[("__data", void)]);
    btf.function("__probestub_reads", 0, &[("__data", void), ("file", file)]);
    let dir = TempDir::new().expect("a directory");
    fs::write(dir.path().join("vmlinux"), btf.bytes()).expect("written");
    dir
}

fn line_of(spec: &str) -> Result<String, Refusal> {
    let dir = types();
    line(&Spec::parse(spec).expect(spec), "probe", dir.path())
}

#[test]
fn values_are_found() {
    for (spec, expected) in [
        ("reads", "p:probe/reads reads"),
        ("mine=m:reads.isra.0+4", "p:probe/mine m:reads.isra.0+4"),
        ("x.y", "p:probe/x_y x.y"),
        ("reads(count)", "p:probe/reads reads count=$arg3:u64"),
        ("reads(n=count:x32)", "p:probe/reads reads n=$arg3:x32"),
        ("reads(file)", "p:probe/reads reads file=$arg1:symbol"),
        ("reads(name)", "p:probe/reads reads name=+0($arg2):string"),
        (
            "reads(name:ustring)",
            "p:probe/reads reads name=+0($arg2):ustring",
        ),
        ("reads(name:x64)", "p:probe/reads reads name=$arg2:x64"),
        (
            "reads(file->f_inode)",
            "p:probe/reads reads f_inode=+64($arg1):symbol",
        ),
        (
            "reads(file->f_inode->i_ino)",
            "p:probe/reads reads i_ino=+8(+64($arg1)):u64",
        ),
        (
            "reads(file->f_inode->i_name)",
            "p:probe/reads reads i_name=+16(+64($arg1)):string",
        ),
        (
            "reads(file->f_path.inode->i_ino)",
            "p:probe/reads reads i_ino=+8(+16($arg1)):u64",
        ),
        (
            "reads(file->f_path.name)",
            "p:probe/reads reads name=+0(+24($arg1)):string",
        ),
        (
            "reads(file->low)",
            "p:probe/reads reads low=+8($arg1):b2@3/8",
        ),
        (
            "reads(file->wide)",
            "p:probe/reads reads wide=+8($arg1):b10@30/64",
        ),
        (
            "reads(file->f_numbers:s32)",
            "p:probe/reads reads f_numbers=+32($arg1):s32",
        ),
        // Network byte order, whatever the type is called.
        (
            "reads(file->f_port, file->f_short, file->f_address, p=file->f_port:x16)",
            "p:probe/reads reads f_port=+72($arg1):be16 f_short=+74($arg1):u16 f_address=+76($arg1):be32 p=+72($arg1):x16",
        ),
        (
            "reads($comm, a=%di:u8)",
            "p:probe/reads reads $comm a=%di:u8",
        ),
        (
            "reads(count) -> ret, n=ret:u8",
            "r:probe/reads__return reads count=$arg3:u64 ret=$retval:s32 n=$retval:u8 duration_ns=$duration",
        ),
        (
            "reads -> duration_ns=$duration:u32",
            "r:probe/reads__return reads duration_ns=$duration:u32",
        ),
        (
            "opens -> ret->f_inode->i_ino",
            "r:probe/opens__return opens i_ino=+8(+64($retval)):u64 duration_ns=$duration",
        ),
        ("many(f)", "p:probe/many many f=$arg6:s32"),
        (
            "tracepoint:reads(file->f_inode->i_ino, $comm)",
            "t:probe/reads reads i_ino=+8(+64($arg1)):u64 $comm",
        ),
        (
            "mine=tracepoint:six_tp(e)",
            "t:probe/mine six_tp e=$arg5:s32",
        ),
        ("tracepoint:unknown", "t:probe/unknown unknown"),
    ] {
        let line = line_of(spec);
        assert_eq!(line.as_deref().expect(spec), expected);
    }
}

#[test]
fn functions_are_listed() {
    let dir = types();
    let is_listed = |name: &str| name != "many" && !name.starts_with("__");
    let all = crate::probe::types::functions(dir.path(), is_listed).expect("a list");
    assert_eq!(
        all,
        [
            "opens() -> struct file *",
            "reads(struct file *file, const char *name, size_t count) -> int"
        ]
    );
    let is_listed = |name: &str| name != "six_tp";
    let all = crate::probe::types::tracepoints(dir.path(), is_listed).expect("a list");
    assert_eq!(
        all,
        [
            "tracepoint:none_tp()",
            "tracepoint:reads(struct file *file)"
        ]
    );
}

#[test]
fn what_is_not_there_is_told() {
    for (spec, at, what) in [
        (
            "reads(cuont)",
            6,
            "the function has no parameter `cuont`: it has file, name, count",
        ),
        (
            "opens(x)",
            6,
            "the function has no parameter `x`: it has none",
        ),
        ("many(a, g)", 8, "`g` is argument 7"),
        (
            "tracepoint:six_tp(f)",
            18,
            "`f` is argument 6: only the first 5 are in registers",
        ),
        (
            "tracepoint:reads(__data)",
            17,
            "the tracepoint has no parameter `__data`: it has file",
        ),
        ("tracepoint:reads -> ret", 0, "a tracepoint has no result"),
        ("many -> ret", 8, "the function returns nothing"),
        ("reads -> result", 9, "the name of the result is `ret`"),
        (
            "reads(file.f_inode)",
            11,
            "the value before the member is a pointer",
        ),
        (
            "reads(file->f_path->name)",
            20,
            "the value before the member is not a pointer",
        ),
        (
            "reads(count->x)",
            13,
            "the value before the member has no members",
        ),
        (
            "reads(file->f_nothing)",
            12,
            "there is no member `f_nothing`",
        ),
        ("reads(file->f_path)", 6, "this is a structure"),
        ("reads(file->f_numbers)", 6, "this is an array"),
    ] {
        match line_of(spec) {
            Err(Refusal::Wrong(error)) => {
                assert!(error.reason.starts_with(what), "{spec}: {}", error.reason);
                assert_eq!(error.at, at, "{spec}");
            }
            other => panic!("{spec}: {other:?}"),
        }
    }
    let unknown = line_of("nowhere(x)");
    assert!(matches!(unknown, Err(Refusal::Types(_))), "{unknown:?}");
    // A specification that needs no types works without types.
    let spec = Spec::parse("nowhere(a=%di) -> $comm").expect("a specification");
    let none = TempDir::new().expect("a directory");
    let line = line(&spec, "probe", none.path()).expect("a line");
    assert_eq!(
        line,
        "r:probe/nowhere__return nowhere a=%di $comm duration_ns=$duration"
    );
}
