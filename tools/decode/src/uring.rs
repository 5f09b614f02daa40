// SPDX-License-Identifier: GPL-2.0

//! The flags of io_uring's requests and results, as in `include/uapi/linux/io_uring.h`.

use crate::Meaning;

/// Flags of a request.
pub const REQUEST_FLAGS: Meaning = Meaning::Flags(&[
    ("IOSQE_FIXED_FILE", 0x1),
    ("IOSQE_IO_DRAIN", 0x2),
    ("IOSQE_IO_LINK", 0x4),
    ("IOSQE_IO_HARDLINK", 0x8),
    ("IOSQE_ASYNC", 0x10),
    ("IOSQE_BUFFER_SELECT", 0x20),
    ("IOSQE_CQE_SKIP_SUCCESS", 0x40),
]);

/// Flags of a result. The upper 16 bits are not flags, but the number of a buffer.
pub const RESULT_FLAGS: Meaning = Meaning::Flags(&[
    ("IORING_CQE_F_BUFFER", 0x1),
    ("IORING_CQE_F_MORE", 0x2),
    ("IORING_CQE_F_SOCK_NONEMPTY", 0x4),
    ("IORING_CQE_F_NOTIF", 0x8),
    ("IORING_CQE_F_BUF_MORE", 0x10),
    ("IORING_CQE_F_SKIP", 0x20),
    ("IORING_CQE_F_32", 0x8000),
]);
