// SPDX-License-Identifier: GPL-2.0

//! Error numbers that the kernel crate has no name for.

use crate::sys::bindings;
use kernel::error::Error;

/// No data available: there is no trace, or it is over.
pub(crate) fn enodata() -> Error {
    Error::from_errno(-(bindings::ENODATA as i32))
}

/// Not where an instruction begins.
pub(crate) fn eilseq() -> Error {
    Error::from_errno(-(bindings::EILSEQ as i32))
}

/// The operation is not supported by its object.
pub(crate) fn eopnotsupp() -> Error {
    Error::from_errno(-(bindings::EOPNOTSUPP as i32))
}

/// This kernel cannot do that.
pub(crate) fn enosys() -> Error {
    Error::from_errno(-(bindings::ENOSYS as i32))
}

/// Somebody else has what only one can have.
pub(crate) fn eusers() -> Error {
    Error::from_errno(-(bindings::EUSERS as i32))
}
