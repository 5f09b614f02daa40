// SPDX-License-Identifier: GPL-2.0

//! The kernel's functions and types, as its BTF (`/sys/kernel/btf`) describes them.

use super::spec::TRACEPOINT;
use anyhow::{bail, Context};
use btf_rs::{Backend, Btf, BtfType, FuncProto, Struct, Type};
use rustix::fs::{memfd_create, MemfdFlags};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Names of types whose highest byte comes first.
const BIG_ENDIAN: [&str; 3] = ["__be16", "__be32", "__be64"];

/// Prefix of a function that has the name of a tracepoint after it. Its parameters are the handler's own one, followed
/// by those of the tracepoint.
pub const STUB: &str = "__probestub_";

/// The functions of the kernel and its modules whose names `picks` accepts, with their prototypes: `MODULE:NAME(TYPE
/// PARAMETER, ...) -> TYPE`, in the order of names.
pub fn functions(folder: &Path, picks: impl Fn(&str) -> bool) -> anyhow::Result<Vec<String>> {
    let whole = folder.join("vmlinux");
    let kernel = Types(kernel(&whole)?);
    let mut found = kernel.functions(&picks, "")?;
    for file in modules(folder)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let types = Types(module(&file, &kernel.0)?);
        found.append(&mut types.functions(&picks, &format!("{name}:"))?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The kernel's tracepoints whose names `picks` accepts, in the form of [`functions`], after [`TRACEPOINT`].
pub fn tracepoints(folder: &Path, picks: impl Fn(&str) -> bool) -> anyhow::Result<Vec<String>> {
    let kernel = Types(kernel(&folder.join("vmlinux"))?);
    let mut found = Vec::new();
    for stub in kernel.functions(&|name| name.strip_prefix(STUB).is_some_and(&picks), "")? {
        // Remove the handler's own parameter.
        let shown = stub.replacen(STUB, TRACEPOINT, 1);
        let own = ["void *__data, ", "void *__data"];
        let own = own.into_iter().find(|own| shown.contains(own));
        found.push(shown.replacen(own.unwrap_or_default(), "", 1));
    }
    found.sort_unstable();
    Ok(found)
}

/// Opens the types of the kernel itself. Types of a mapped file are parsed when they are needed. A command needs few of
/// the many types, and parsing all of them takes most of the command's time. A kernel before 6.16 refuses to map its
/// file: then this maps a copy in memory.
fn kernel(file: &Path) -> anyhow::Result<Btf> {
    let map = |file: &Path| Btf::from_file_with_backend(file, Backend::Mmap);
    let types = map(file).or_else(|_| -> anyhow::Result<Btf> {
        let mut copy = File::from(memfd_create("btf", MemfdFlags::CLOEXEC)?);
        copy.write_all(&fs::read(file)?)?;
        let path = format!("/proc/self/fd/{}", copy.as_raw_fd());
        Ok(map(Path::new(&path))?)
    });
    types.with_context(|| format!("{}: the kernel's types cannot be read", file.display()))
}

fn module(file: &Path, kernel: &Btf) -> anyhow::Result<Btf> {
    let types = Btf::from_split_file(file, kernel);
    types.with_context(|| format!("{}: the types cannot be read", file.display()))
}

/// The files of all modules.
fn modules(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let file = entry?.path();
        if !file.ends_with("vmlinux") {
            files.push(file);
        }
    }
    Ok(files)
}

/// The types of the kernel, or the types of one module and of the kernel.
pub struct Types(Btf);

/// A function's parameters and result.
pub struct Prototype<'t> {
    types: &'t Types,
    proto: FuncProto,
}

/// Kind of a value.
pub enum ValueKind {
    /// A number of `bits` bits.
    Number {
        /// 8, 16, 32 or 64.
        bits: u8,
        /// Whether it is signed.
        is_signed: bool,
        /// Whether its bytes are in network byte order.
        is_big_endian: bool,
    },
    /// A pointer to a [`Pointee`].
    Pointer(Pointee),
    /// An array of characters, in the value itself.
    Text,
    /// A structure or union.
    Struct(Struct),
    /// Any other type, with its name.
    Other(&'static str),
    /// No value.
    Void,
}

/// Target of a pointer.
pub enum Pointee {
    /// A structure or union.
    Struct(Struct),
    /// Characters.
    Text,
    /// Another type, or an unknown one.
    Other,
}

/// A member of a structure.
pub struct FoundMember {
    /// Offset from the structure's beginning, in bits.
    pub bit: u32,
    /// Number of bits, if the member is a bit field.
    pub bit_field: Option<u32>,
    /// Type of the member.
    pub ty: Type,
}

impl Types {
    /// The types that describe `function`. A module before a colon names the module of the function. Otherwise, the
    /// function is of the kernel or of any module.
    pub fn of(folder: &Path, function: &str) -> anyhow::Result<Self> {
        let kernel = kernel(&folder.join("vmlinux"))?;
        let (module_name, name) = match function.split_once(':') {
            Some((module, name)) => (Some(module), name),
            None => (None, function),
        };
        let files = match module_name {
            Some(module) => vec![folder.join(module)],
            None if has_function(&kernel, name) => return Ok(Self(kernel)),
            None => modules(folder)?,
        };
        for file in &files {
            let types = module(file, &kernel)?;
            if has_function(&types, name) {
                return Ok(Self(types));
            }
        }
        bail!("the kernel's types have no function `{function}`")
    }

    /// The prototype of the function with this name.
    pub fn prototype(&self, function: &str) -> anyhow::Result<Prototype<'_>> {
        let name = function.rsplit(':').next().unwrap_or(function);
        for ty in self.0.resolve_types_by_name(name)? {
            if let Type::Func(function) = ty {
                if let Type::FuncProto(proto) = self.0.resolve_chained_type(&function)? {
                    return Ok(Prototype { types: self, proto });
                }
            }
        }
        bail!("the kernel's types have no function `{function}`")
    }

    /// The functions that `picks` accepts, each after a prefix. With the types of a module, only the module's own
    /// functions.
    fn functions(&self, picks: &dyn Fn(&str) -> bool, prefix: &str) -> anyhow::Result<Vec<String>> {
        let section = self.0.split().unwrap_or(self.0.base());
        let (first, last) = section.type_id_range();
        let mut found = Vec::new();
        for id in first..=last {
            let Type::Func(function) = self.0.resolve_type_by_id(id)? else {
                continue;
            };
            let name = self.0.resolve_name(&function)?;
            if !picks(&name) {
                continue;
            }
            if let Type::FuncProto(proto) = self.0.resolve_chained_type(&function)? {
                let types = self;
                let shown = Prototype { types, proto }.shown()?;
                found.push(format!("{prefix}{name}{shown}"));
            }
        }
        Ok(found)
    }

    /// A type as C writes it.
    fn shown(&self, ty: &Type) -> anyhow::Result<String> {
        let named = |kind: &str, ty: &dyn BtfType| -> anyhow::Result<String> {
            let name = match ty.get_name_offset() {
                None | Some(0) => "...".to_owned(),
                Some(_) => self.0.resolve_name(ty)?,
            };
            Ok(format!("{kind}{name}"))
        };
        let of = |ty: &dyn BtfType| -> anyhow::Result<String> {
            match ty.get_type_id() {
                None | Some(0) => Ok("void".to_owned()),
                Some(id) => self.shown(&self.0.resolve_type_by_id(id)?),
            }
        };
        Ok(match ty {
            Type::Void => "void".to_owned(),
            Type::Struct(ty) => named("struct ", ty)?,
            Type::Union(ty) => named("union ", ty)?,
            Type::Enum(ty) => named("enum ", ty)?,
            Type::Enum64(ty) => named("enum ", ty)?,
            Type::Fwd(ty) => named(if ty.is_union() { "union " } else { "struct " }, ty)?,
            Type::Int(ty) => named("", ty)?,
            Type::Typedef(ty) => named("", ty)?,
            Type::Const(ty) => format!("const {}", of(ty)?),
            Type::Volatile(ty) => format!("volatile {}", of(ty)?),
            Type::Restrict(ty) => of(ty)?,
            Type::TypeTag(ty) => of(ty)?,
            Type::Array(ty) => format!("{}[{}]", of(ty)?, ty.len()),
            Type::Ptr(ty) => {
                let to = of(ty)?;
                let blank = if to.ends_with('*') { "" } else { " " };
                format!("{to}{blank}*")
            }
            Type::FuncProto(_) => "function".to_owned(),
            other => other.name().to_owned(),
        })
    }

    /// Kind of a type, after all type names and qualifiers are resolved.
    pub fn kind(&self, ty: &Type) -> anyhow::Result<ValueKind> {
        let is_big_endian = self.is_big_endian(ty)?;
        let number = |bytes: usize, is_signed| match bytes {
            1 | 2 | 4 | 8 => ValueKind::Number {
                bits: bytes as u8 * 8,
                is_signed,
                is_big_endian,
            },
            _ => ValueKind::Other("a number of unusual size"),
        };
        Ok(match self.bare(ty)? {
            None => ValueKind::Void,
            Some(Type::Int(int)) => number(int.size(), int.is_signed()),
            Some(Type::Enum(values)) => number(values.size(), values.is_signed()),
            Some(Type::Enum64(values)) => number(values.size(), values.is_signed()),
            Some(Type::Ptr(pointer)) => ValueKind::Pointer(match self.target(&pointer)? {
                Some(Type::Struct(to) | Type::Union(to)) => Pointee::Struct(to),
                Some(Type::Int(to)) if to.size() == 1 && !to.is_bool() => Pointee::Text,
                _ => Pointee::Other,
            }),
            Some(Type::Array(array)) => match self.target(&array)? {
                Some(Type::Int(element)) if element.size() == 1 => ValueKind::Text,
                _ => ValueKind::Other("an array"),
            },
            Some(Type::Struct(ty) | Type::Union(ty)) => ValueKind::Struct(ty),
            Some(other) => ValueKind::Other(other.name()),
        })
    }

    /// The member `name` of a structure, or of an unnamed structure in it.
    pub fn member(&self, of: &Struct, name: &str) -> anyhow::Result<Option<FoundMember>> {
        for member in &of.members {
            let ty = self.0.resolve_chained_type(member)?;
            let bit = member.bit_offset();
            if self.0.resolve_name(member)? == name {
                return Ok(Some(FoundMember {
                    bit,
                    bit_field: member.bitfield_size().filter(|bits| *bits != 0),
                    ty,
                }));
            }
            if member.get_name_offset() == Some(0) {
                if let Type::Struct(inner) | Type::Union(inner) = &ty {
                    if let Some(found) = self.member(inner, name)? {
                        return Ok(Some(FoundMember {
                            bit: found.bit + bit,
                            ..found
                        }));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Whether one of the names of a type is the kernel's for network byte order: `__be16`, `__be32` or `__be64`.
    fn is_big_endian(&self, ty: &Type) -> anyhow::Result<bool> {
        let mut ty = ty.clone();
        loop {
            let next = match &ty {
                Type::Typedef(name) if BIG_ENDIAN.contains(&&*self.0.resolve_name(name)?) => {
                    return Ok(true)
                }
                Type::Typedef(named) => named.get_type_id(),
                Type::Const(qualified) => qualified.get_type_id(),
                Type::Volatile(qualified) => qualified.get_type_id(),
                _ => None,
            };
            match next {
                None | Some(0) => return Ok(false),
                Some(id) => ty = self.0.resolve_type_by_id(id)?,
            }
        }
    }

    /// The type without names and qualifiers. [`None`] is `void`.
    fn bare(&self, ty: &Type) -> anyhow::Result<Option<Type>> {
        let next = match ty {
            Type::Void => return Ok(None),
            Type::Typedef(ty) => self.target(ty)?,
            Type::Const(ty) => self.target(ty)?,
            Type::Volatile(ty) => self.target(ty)?,
            Type::Restrict(ty) => self.target(ty)?,
            Type::TypeTag(ty) => self.target(ty)?,
            other => Some(other.clone()),
        };
        Ok(next)
    }

    fn target(&self, ty: &dyn BtfType) -> anyhow::Result<Option<Type>> {
        match ty.get_type_id() {
            None | Some(0) => Ok(None),
            Some(id) => self.bare(&self.0.resolve_type_by_id(id)?),
        }
    }
}

impl Prototype<'_> {
    /// The position, counted from 1, and the type of a parameter.
    pub fn parameter(&self, name: &str) -> anyhow::Result<Option<(usize, Type)>> {
        for (place, parameter) in self.proto.parameters.iter().enumerate() {
            if !parameter.is_variadic() && self.types.0.resolve_name(parameter)? == name {
                let ty = self.types.0.resolve_chained_type(parameter)?;
                return Ok(Some((place + 1, ty)));
            }
        }
        Ok(None)
    }

    /// The names of all parameters.
    pub fn parameters(&self) -> anyhow::Result<Vec<String>> {
        let parameters = self.proto.parameters.iter();
        let named = parameters.filter(|parameter| !parameter.is_variadic());
        named
            .map(|parameter| Ok(self.types.0.resolve_name(parameter)?))
            .collect()
    }

    /// `(TYPE PARAMETER, ...) -> TYPE`.
    fn shown(&self) -> anyhow::Result<String> {
        let mut parameters = Vec::new();
        for parameter in &self.proto.parameters {
            if parameter.is_variadic() {
                parameters.push("...".to_owned());
                continue;
            }
            let ty = self
                .types
                .shown(&self.types.0.resolve_chained_type(parameter)?)?;
            let name = self.types.0.resolve_name(parameter)?;
            let blank = if ty.ends_with('*') { "" } else { " " };
            parameters.push(format!("{ty}{blank}{name}"));
        }
        let result = match self.result()? {
            Type::Void => String::new(),
            ty => format!(" -> {}", self.types.shown(&ty)?),
        };
        Ok(format!("({}){result}", parameters.join(", ")))
    }

    /// The type of the result.
    pub fn result(&self) -> anyhow::Result<Type> {
        match self.proto.return_type_id() {
            0 => Ok(Type::Void),
            id => Ok(self.types.0.resolve_type_by_id(id)?),
        }
    }
}

fn has_function(types: &Btf, name: &str) -> bool {
    let found = types.resolve_types_by_name(name).unwrap_or_default();
    found.iter().any(|ty| matches!(ty, Type::Func(_)))
}
