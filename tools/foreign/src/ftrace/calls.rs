// SPDX-License-Identifier: GPL-2.0

//! System calls: ftrace has one event for the entries of all calls, or one for each call. rtrace has
//! `syscall_entry_CALL` and `syscall_exit_CALL`.

use super::format::EventFormat;
use super::plan::{Plan, Step};
use ctf::{FieldLayout, Type};
use decode::Architecture;
use rtrace_abi::schema::Integer;

/// The meaning of an event for system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw {
    /// The entries of all calls: the call's number and six arguments.
    Entry { id: u32, arguments: u32 },
    /// The exits of all calls: the call's number and its result.
    Exit { id: u32, ret: u32 },
}

impl Raw {
    /// The meaning of an event. [`None`]: it is another one.
    pub fn of(event: &EventFormat) -> Option<Self> {
        let place = |name: &str, size: u32| {
            let field = event.fields.iter().find(|field| field.name == name);
            field
                .filter(|field| field.size == size)
                .map(|field| field.offset)
        };
        match (event.system.as_str(), event.name.as_str()) {
            ("raw_syscalls", "sys_enter") => Some(Self::Entry {
                id: place("id", 8)?,
                arguments: place("args", 48)?,
            }),
            ("raw_syscalls", "sys_exit") => Some(Self::Exit {
                id: place("id", 8)?,
                ret: place("ret", 8)?,
            }),
            _ => None,
        }
    }

    /// The name and plan of the event of a call.
    pub fn call(self, call: &str) -> (String, Plan) {
        let mut plan = Plan::default();
        match self {
            Self::Entry { arguments, .. } => {
                for (place, (name, kind)) in decode::arguments(call).iter().enumerate().take(6) {
                    let (integer, bytes) = argument(kind);
                    let at = arguments + 8 * place as u32;
                    plan.push(name, Type::Integer(integer), Step::Copy { at, bytes });
                }
                (format!("syscall_entry_{call}"), plan)
            }
            Self::Exit { ret, .. } => {
                let step = Step::Copy { at: ret, bytes: 8 };
                plan.push("ret", Type::Integer(Integer::signed(64)), step);
                (format!("syscall_exit_{call}"), plan)
            }
        }
    }

    /// The name and plan of the event of calls without a name.
    pub fn unknown(self) -> (String, Plan) {
        let mut plan = Plan::default();
        let (Self::Entry { id, .. } | Self::Exit { id, .. }) = self;
        let step = Step::Copy { at: id, bytes: 4 };
        plan.push("id", Type::Integer(Integer::signed(32)), step);
        match self {
            Self::Entry { arguments, .. } => {
                let step = Step::Copy {
                    at: arguments,
                    bytes: 48,
                };
                plan.push("args", Type::Array(Integer::hex(64), 6), step);
                ("syscall_entry_unknown".to_owned(), plan)
            }
            Self::Exit { ret, .. } => {
                let step = Step::Copy { at: ret, bytes: 8 };
                plan.push("ret", Type::Integer(Integer::signed(64)), step);
                ("syscall_exit_unknown".to_owned(), plan)
            }
        }
    }

    /// The place of the call's number.
    pub fn id(self) -> u32 {
        let (Self::Entry { id, .. } | Self::Exit { id, .. }) = self;
        id
    }
}

/// The calls of an architecture, by number.
pub fn numbers(architecture: Architecture) -> Vec<Option<&'static str>> {
    let mut all = Vec::new();
    for call in decode::calls() {
        if let Some(number) = decode::number(architecture, call) {
            let number = number as usize;
            if all.len() <= number {
                all.resize(number + 1, None);
            }
            all[number] = Some(call);
        }
    }
    all
}

/// The type of an argument of this kind in the module's table, and the bytes of its register.
fn argument(kind: &str) -> (Integer, u32) {
    match kind {
        "fd" | "int" | "pid" => (Integer::signed(32), 4),
        "uint" | "uid" => (Integer::unsigned(32), 4),
        "flags" => (Integer::hex(32), 4),
        "mode" => (Integer::unsigned(16), 2),
        "size" | "ulong" => (Integer::unsigned(64), 8),
        "off" | "long" => (Integer::signed(64), 8),
        // Pointers. ftrace does not record the data that they point to.
        _ => (Integer::hex(64), 8),
    }
}

/// The name and plan of an event of one call: `syscalls:sys_enter_CALL`. [`None`]: it is another event.
pub fn own(event: &EventFormat) -> Option<(String, Plan)> {
    if event.system != "syscalls" {
        return None;
    }
    let mut plan = Plan::default();
    if let Some(call) = event.name.strip_prefix("sys_exit_") {
        let ret = event.fields.iter().find(|field| field.name == "ret")?;
        let step = Step::Copy {
            at: ret.offset,
            bytes: 8,
        };
        plan.push("ret", Type::Integer(Integer::signed(64)), step);
        return Some((format!("syscall_exit_{call}"), plan));
    }
    let call = event.name.strip_prefix("sys_enter_")?;
    let kinds = decode::arguments(call);
    let arguments = event.fields.iter();
    for field in arguments.filter(|field| !field.name.starts_with("__")) {
        // Newer kernels also record the text that an argument points to.
        let text = format!("__{}_val", field.name);
        if let Some(text) = event.fields.iter().find(|field| field.name == text) {
            let before = plan.fields.len();
            plan.add(event, text);
            if let Some(layout) = plan
                .fields
                .get_mut(before..)
                .and_then(<[FieldLayout]>::last_mut)
            {
                layout.name.clone_from(&field.name);
            }
            continue;
        }
        let kind = kinds.iter().find(|(name, _)| *name == field.name);
        let (integer, bytes) = match kind {
            Some((_, kind)) => argument(kind),
            None => declared(&field.ty),
        };
        let bytes = bytes.min(field.size);
        let step = Step::Copy {
            at: field.offset,
            bytes,
        };
        let integer = Integer {
            bits: 8 * bytes as u8,
            ..integer
        };
        plan.push(&field.name, Type::Integer(integer), step);
    }
    Some((format!("syscall_entry_{call}"), plan))
}

/// The type of an argument that is declared so, and the bytes of its register.
fn declared(ty: &str) -> (Integer, u32) {
    match ty {
        ty if ty.ends_with('*') => (Integer::hex(64), 8),
        "int" | "pid_t" | "key_t" | "clockid_t" | "timer_t" | "mqd_t" | "s32" => {
            (Integer::signed(32), 4)
        }
        "unsigned int" | "unsigned" | "uid_t" | "gid_t" | "qid_t" | "u32" | "__u32" => {
            (Integer::unsigned(32), 4)
        }
        "umode_t" => (Integer::unsigned(16), 2),
        "long" | "off_t" | "loff_t" => (Integer::signed(64), 8),
        _ => (Integer::unsigned(64), 8),
    }
}
