// SPDX-License-Identifier: GPL-2.0

//! Error numbers for which the kernel crate has no name.

use crate::sys::bindings;
use kernel::error::Error;

/// No data available: no trace was recorded, or the trace has been read to its end.
pub(crate) fn enodata() -> Error {
    Error::from_errno(-(bindings::ENODATA as i32))
}

/// The address is not the beginning of an instruction.
pub(crate) fn eilseq() -> Error {
    Error::from_errno(-(bindings::EILSEQ as i32))
}

/// The object does not support the operation.
pub(crate) fn eopnotsupp() -> Error {
    Error::from_errno(-(bindings::EOPNOTSUPP as i32))
}

/// This kernel lacks the operation.
pub(crate) fn enosys() -> Error {
    Error::from_errno(-(bindings::ENOSYS as i32))
}

/// Another user holds an object that has one user at a time.
pub(crate) fn eusers() -> Error {
    Error::from_errno(-(bindings::EUSERS as i32))
}

/// A user may not have more of this.
pub(crate) fn edquot() -> Error {
    Error::from_errno(-(bindings::EDQUOT as i32))
}
