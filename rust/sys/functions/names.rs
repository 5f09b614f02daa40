// SPDX-License-Identifier: GPL-2.0

//! From names to the functions that can be traced, and back. A function is known by its address: the
//! place where ftrace calls.

use crate::sys::bindings;
use core::fmt;
use kernel::error::to_result;
use kernel::prelude::*;

/// The functions of which a name matches a shell pattern, in any order: one that has several names is
/// found by each, and may be there twice. `ENOENT`: there is none. May sleep, and takes long.
///
/// The kernel exports nothing that finds them but the registration of an fprobe. So there is one for
/// a moment, which is off.
pub(crate) fn matching(pattern: &CStr) -> Result<KVVec<usize>> {
    found(|probe| {
        // SAFETY: The caller's probe, and a NUL-terminated pattern.
        to_result(unsafe {
            bindings::register_fprobe(probe, pattern.as_ptr().cast(), core::ptr::null())
        })
    })
}

/// All functions that can be traced, in any order; each has the name by which ftrace knows it. `EOPNOTSUPP`: the kernel
/// does not tell. May sleep.
pub(crate) fn all() -> Result<KVVec<usize>> {
    /// Takes one.
    ///
    /// # Safety
    ///
    /// `functions` must point to what [`all`] got.
    unsafe extern "C" fn see(function: c_ulong, functions: *mut c_void) -> c_int {
        // SAFETY: By the contract.
        let functions = unsafe { &mut *functions.cast::<KVVec<usize>>() };
        match functions.push(function, GFP_KERNEL) {
            Ok(()) => 0,
            Err(_) => ENOMEM.to_errno(),
        }
    }
    let mut functions = KVVec::new();
    // SAFETY: `see` gets `functions`, and is not called after this returns.
    to_result(unsafe { bindings::rtrace_each_function(Some(see), (&raw mut functions).cast()) })?;
    functions.retain(|function| is_foreign(*function));
    Ok(functions)
}

/// The functions that begin at these addresses. `ENOENT`: at one of them there is none. As
/// [`matching`].
pub(crate) fn at(addresses: &[usize]) -> Result<KVVec<usize>> {
    let count = c_int::try_from(addresses.len())?;
    found(|probe| {
        let addresses = addresses.as_ptr().cast_mut();
        // SAFETY: The caller's probe, and so many addresses, which are only read.
        to_result(unsafe { bindings::register_fprobe_ips(probe, addresses, count) })
    })
}

/// What `register` finds with a probe that it registers.
fn found(register: impl FnOnce(*mut bindings::fprobe) -> Result) -> Result<KVVec<usize>> {
    let mut probe = bindings::fprobe {
        flags: bindings::FPROBE_FL_DISABLED,
        ..Default::default()
    };
    let probe = &raw mut probe;
    register(probe)?;
    let mut functions = KVVec::new();
    // SAFETY: It is registered: then it has a list with so many items, until it is unregistered.
    let listed = unsafe {
        let list = (*probe).hlist_array;
        let count = usize::try_from((*list).size).unwrap_or(0);
        let first = (&raw const (*list).array).cast::<bindings::fprobe_hlist_node>();
        (0..count).try_for_each(|index| functions.push((*first.add(index)).addr, GFP_KERNEL))
    };
    // SAFETY: Registered above. Then nobody uses it.
    unsafe { bindings::unregister_fprobe(probe) };
    listed?;
    functions.retain(|function| is_foreign(*function));
    Ok(functions)
}

/// Whether it is no function of this module. Those are never traced: they may be what records.
fn is_foreign(function: usize) -> bool {
    // SAFETY: Looks at where this module is.
    unsafe { !bindings::rtrace_is_own_code(function) }
}

/// The functions of a loaded module, in any order. `ENOENT`: there is no such module, or it has none.
/// May sleep.
pub(crate) fn of_module(name: &CStr) -> Result<KVVec<usize>> {
    let count = module_functions(name, &mut [])?;
    let mut functions = KVVec::from_elem(0, count, GFP_KERNEL)?;
    // It may be another one by now.
    let count = module_functions(name, &mut functions)?;
    functions.truncate(count);
    functions.retain(|function| is_foreign(*function));
    if functions.is_empty() {
        return Err(ENOENT);
    }
    Ok(functions)
}

/// As many of them as there is room for. Returns how many there are.
fn module_functions(name: &CStr, to: &mut [usize]) -> Result<usize> {
    let room = c_int::try_from(to.len())?;
    // SAFETY: A NUL-terminated name, and room for so many.
    let count =
        unsafe { bindings::rtrace_module_functions(name.as_ptr().cast(), to.as_mut_ptr(), room) };
    to_result(count)?;
    Ok(usize::try_from(count)?)
}

/// The name of a function, as ftrace shows it: with its module in brackets behind it, if it is of one.
pub(crate) struct FunctionName {
    text: [u8; Self::ROOM],
    len: usize,
}

impl FunctionName {
    const ROOM: usize = bindings::rtrace_symbol_room_RTRACE_SYMBOL_ROOM as usize;

    /// That of the function at an address; an address that is of none is shown as a number.
    pub(crate) fn of(function: usize) -> Self {
        let mut text = [0; Self::ROOM];
        // SAFETY: There is as much room as the kernel asks for.
        let len = unsafe { bindings::sprint_symbol_no_offset(text.as_mut_ptr().cast(), function) };
        let len = usize::try_from(len).unwrap_or(0);
        Self { text, len }
    }

    /// All of it.
    fn as_str(&self) -> &str {
        let text = self.text.get(..self.len).unwrap_or(&[]);
        core::str::from_utf8(text).unwrap_or("")
    }

    /// Without the module.
    pub(crate) fn bare(&self) -> &str {
        let name = self.as_str();
        name.split_once(' ').map_or(name, |(name, _)| name)
    }
}

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
