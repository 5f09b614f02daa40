// SPDX-License-Identifier: GPL-2.0

//! Names of the functions that can be traced. A function is identified by its address: the place where it calls
//! ftrace.

use crate::sys::bindings;
use core::fmt;
use kernel::error::to_result;
use kernel::prelude::*;

/// Calls back for each of some functions: by a pattern of names, or by addresses if there are any.
type Search = unsafe extern "C" fn(
    *const c_char,
    *mut c_ulong,
    c_uint,
    Option<unsafe extern "C" fn(c_ulong, *mut c_void) -> c_int>,
    *mut c_void,
) -> c_int;

/// The functions that have a name which matches a shell pattern, in any order. A function with several matching
/// names may be there twice. `ENOENT`: no function matches. May sleep, and takes long.
pub(crate) fn matching(pattern: &CStr) -> Result<KVVec<usize>> {
    found(bindings::rtrace_each_matching, pattern, &[])
}

/// All functions that can be traced, in any order, with the names by which ftrace knows them. `EOPNOTSUPP`:
/// this kernel does not give the list. May sleep.
pub(crate) fn all() -> Result<KVVec<usize>> {
    found(bindings::rtrace_each_function, c"*", &[])
}

/// The functions that begin at these addresses. `ENOENT`: there is no function at one of them. Context as for
/// [`matching`].
pub(crate) fn at(addresses: &[usize]) -> Result<KVVec<usize>> {
    found(bindings::rtrace_each_matching, c"", addresses)
}

/// The functions that `search` finds outside of this module: at these addresses, or all functions whose names match the
/// pattern if there are no addresses. Errors are those of `search`.
fn found(search: Search, pattern: &CStr, addresses: &[usize]) -> Result<KVVec<usize>> {
    /// Appends a function.
    ///
    /// # Safety
    ///
    /// `functions` must point to the vector of [`found`].
    unsafe extern "C" fn see(function: c_ulong, functions: *mut c_void) -> c_int {
        // SAFETY: By the contract.
        let functions = unsafe { &mut *functions.cast::<KVVec<usize>>() };
        match functions.push(function, GFP_KERNEL) {
            Ok(()) => 0,
            Err(_) => ENOMEM.to_errno(),
        }
    }
    let count = c_uint::try_from(addresses.len())?;
    let mut functions = KVVec::new();
    let list = match addresses {
        [] => core::ptr::null_mut(),
        _ => addresses.as_ptr().cast_mut(),
    };
    // SAFETY: The pattern is NUL-terminated. `list` is NULL or has `count` items, which are only read. `see` gets
    // `functions`, and is not called after this returns.
    to_result(unsafe {
        let functions = (&raw mut functions).cast();
        search(pattern.as_ptr().cast(), list, count, Some(see), functions)
    })?;
    functions.retain(|function| is_foreign(*function));
    Ok(functions)
}

/// Whether a function is outside of this module. Functions of this module are never traced: probes may use
/// them.
fn is_foreign(function: usize) -> bool {
    // SAFETY: The function compares with the addresses of this module.
    unsafe { !bindings::rtrace_is_own_code(function) }
}

/// The functions of a loaded module, in any order. `ENOENT`: no such module is loaded, or it has no function
/// that can be traced. May sleep.
pub(crate) fn of_module(name: &CStr) -> Result<KVVec<usize>> {
    let count = module_functions(name, &mut [])?;
    let mut functions = KVVec::from_elem(0, count, GFP_KERNEL)?;
    // Another module with this name may have been loaded since.
    let count = module_functions(name, &mut functions)?;
    functions.truncate(count);
    functions.retain(|function| is_foreign(*function));
    if functions.is_empty() {
        return Err(ENOENT);
    }
    Ok(functions)
}

/// Stores as many functions of a module as `to` has room for. Returns the number of all its functions.
fn module_functions(name: &CStr, to: &mut [usize]) -> Result<usize> {
    let room = c_int::try_from(to.len())?;
    // SAFETY: The name is NUL-terminated. `to` has room for `room` items.
    let count =
        unsafe { bindings::rtrace_module_functions(name.as_ptr().cast(), to.as_mut_ptr(), room) };
    to_result(count)?;
    Ok(usize::try_from(count)?)
}

/// Name of a function as ftrace shows it. If a module has the function, the module's name follows in brackets.
pub(crate) struct FunctionName {
    text: [u8; Self::ROOM],
    len: usize,
}

impl FunctionName {
    const ROOM: usize = bindings::rtrace_symbol_room_RTRACE_SYMBOL_ROOM as usize;

    /// The name of the function at an address. If no function is there, the address as a number.
    pub(crate) fn of(function: usize) -> Self {
        let mut text = [0; Self::ROOM];
        // SAFETY: The buffer has the size that the kernel requires.
        let len = unsafe { bindings::sprint_symbol_no_offset(text.as_mut_ptr().cast(), function) };
        let len = usize::try_from(len).unwrap_or(0);
        Self { text, len }
    }

    /// The name of the function that contains an address, with the distance from its begin and its size:
    /// `vfs_read+0x4/0x150`. If no function is there, the address as a number.
    pub(crate) fn with_distance(address: usize) -> Self {
        let mut text = [0; Self::ROOM];
        // SAFETY: The buffer has the size that the kernel requires.
        let len = unsafe { bindings::sprint_symbol(text.as_mut_ptr().cast(), address) };
        let len = usize::try_from(len).unwrap_or(0);
        Self { text, len }
    }

    /// The size of the function, if the name [has](Self::with_distance) it.
    pub(crate) fn size(&self) -> Option<u64> {
        let (_, size) = self.bare().rsplit_once("/0x")?;
        u64::from_str_radix(size, 16).ok()
    }

    /// The name, with the module.
    fn as_str(&self) -> &str {
        let text = self.text.get(..self.len).unwrap_or(&[]);
        core::str::from_utf8(text).unwrap_or("")
    }

    /// The name without the module.
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
