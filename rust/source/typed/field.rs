// SPDX-License-Identifier: GPL-2.0

//! The types of fields of events.

use crate::abi::schema::FieldType;
use crate::record::memory::{payload, Payload};

/// The value of a fixed-size field: the Rust type is its layout in the record, and `TYPE` describes how it is
/// shown.
pub(crate) trait FieldValue: Payload {
    /// The field's type in the schema.
    const TYPE: FieldType<'static>;

    /// The value as a task id, if its type is that of task ids.
    #[inline(always)]
    fn task_id(self) -> Option<i32> {
        None
    }
}

/// Whether the field of this name is the id of the task that its event is about, as for ftrace's
/// `set_event_pid`: the task that is woken, created, or switched to.
pub(super) const fn is_about(name: &str) -> bool {
    matches!(name.as_bytes(), b"tid" | b"next_tid")
}

macro_rules! integer_fields {
    ($($t:ty => $shown:ident $(as $id:ident)?;)*) => { $(
        impl FieldValue for $t {
            const TYPE: FieldType<'static> = FieldType::$shown(<$t>::BITS as u8);
            $(
                #[inline(always)]
                fn $id(self) -> Option<i32> {
                    Some(self)
                }
            )?
        }
    )* };
}

integer_fields! {
    u8 => unsigned;
    u16 => unsigned;
    u32 => unsigned;
    u64 => unsigned;
    i8 => signed;
    i16 => signed;
    i32 => signed as task_id;
    i64 => signed;
}

payload! {
    /// A number that is shown in hexadecimal, such as flags or an address in user space.
    pub(crate) struct Hex { value: u64 }
}

payload! {
    /// An address of the kernel.
    pub(crate) struct KernelAddress { value: u64 }
}

impl Hex {
    /// Makes a number that is shown in hexadecimal.
    #[inline(always)]
    pub(super) fn new(value: u64) -> Self {
        Self { value }
    }
}

impl FieldValue for Hex {
    const TYPE: FieldType<'static> = FieldType::hex(64);
}

impl KernelAddress {
    /// Makes an address of the kernel.
    #[inline(always)]
    pub(super) fn new(value: u64) -> Self {
        Self { value }
    }
}

impl FieldValue for KernelAddress {
    const TYPE: FieldType<'static> = FieldType::address();
}

/// Text, padded with NUL.
impl<const N: usize> FieldValue for [u8; N] {
    const TYPE: FieldType<'static> = FieldType::text(N as u32);
}
