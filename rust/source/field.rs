// SPDX-License-Identifier: GPL-2.0

//! Types that a field of an event can have, and records of such fields.

use crate::abi::schema::FieldType;
use crate::probe::map::words_of;
use crate::record::memory::{payload, Payload};

/// A fixed-size field: how it lies in the record is its own type, how it is shown is `TYPE`.
pub(crate) trait FieldValue: Payload {
    /// As the schema says it.
    const TYPE: FieldType<'static>;

    /// The words of a map's key: of a number, the number, sign-extended if it is signed, and 0; of a text of 16
    /// bytes, its words.
    #[inline(always)]
    fn words(self) -> Option<[u64; 2]> {
        None
    }

    /// Itself, if it is of the type that ids of tasks have.
    #[inline(always)]
    fn task_id(self) -> Option<i32> {
        None
    }
}

/// Whether the field of this name is the id of the task that its event is about, as ftrace's
/// `set_event_pid` has it: who is woken, made, or switched to.
pub(super) const fn is_about(name: &str) -> bool {
    matches!(name.as_bytes(), b"tid" | b"next_tid")
}

macro_rules! integer_fields {
    ($($t:ty => $shown:ident $(as $id:ident)?;)*) => { $(
        impl FieldValue for $t {
            const TYPE: FieldType<'static> = FieldType::$shown(<$t>::BITS as u8);
            #[inline(always)]
            #[allow(clippy::cast_lossless)] // Not all conversions are lossless.
            fn words(self) -> Option<[u64; 2]> {
                Some([self as u64, 0])
            }
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
    /// A number that is shown in hexadecimal: flags, an address in user space.
    pub(crate) struct Hex { value: u64 }
}

payload! {
    /// A number of half the size that is shown in hexadecimal.
    pub(crate) struct Hex32 { value: u32 }
}

payload! {
    /// An address of the kernel.
    pub(crate) struct KernelAddress { value: u64 }
}

impl Hex {
    /// Shows `value`.
    #[inline(always)]
    pub(super) fn new(value: u64) -> Self {
        Self { value }
    }
}

impl FieldValue for Hex {
    const TYPE: FieldType<'static> = FieldType::hex(64);
    #[inline(always)]
    fn words(self) -> Option<[u64; 2]> {
        Some([self.value, 0])
    }
}

impl Hex32 {
    /// Shows `value`.
    #[inline(always)]
    pub(super) fn new(value: u32) -> Self {
        Self { value }
    }
}

impl FieldValue for Hex32 {
    const TYPE: FieldType<'static> = FieldType::hex(32);
    #[inline(always)]
    fn words(self) -> Option<[u64; 2]> {
        Some([self.value.into(), 0])
    }
}

impl KernelAddress {
    /// That is `value`.
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
    #[inline(always)]
    fn words(self) -> Option<[u64; 2]> {
        let text = *self.first_chunk::<16>()?;
        (N == 16).then(|| words_of(text))
    }
}

/// Defines the record of an event as a struct: the type of each field says how the field is shown, and `FIELDS` is their
/// description. `as` gives a field a name that is no identifier. After the fields can come `string NAME`: a field whose
/// length varies, which is not in the struct.
macro_rules! record {
    (
        $(#[$doc:meta])*
        $record:ident { $($field:ident $(as $name:literal)?: $ty:ty),* $(,)? }
        $(string $tail:ident)?
    ) => {
        $crate::record::memory::payload! {
            $(#[$doc])*
            pub(super) struct $record { $(pub(super) $field: $ty),* }
        }

        impl $record {
            /// Fields, in the order of the record.
            pub(super) const FIELDS: &'static [$crate::abi::schema::Field<'static>] = &[
                $($crate::abi::schema::Field::new(
                    $crate::source::field::record!(@name $field $($name)?),
                    <$ty as $crate::source::field::FieldValue>::TYPE,
                ),)*
                $($crate::abi::schema::Field::new(
                    stringify!($tail),
                    $crate::abi::schema::FieldType::String,
                ),)?
            ];
        }

        impl $crate::probe::listed::FixedFields for $record {
            #[inline(always)]
            fn number(&self, at: usize) -> Option<u64> {
                let place = 0_usize;
                $(
                    if at == place {
                        return $crate::record::memory::word::<$ty>(self.$field);
                    }
                    let place = place.wrapping_add(size_of::<$ty>());
                )*
                let _ = (place, at);
                None
            }
        }

        impl $crate::record::memory::Tail for $record {
            #[inline(always)]
            fn len(&self) -> usize {
                size_of::<Self>()
            }

            #[inline(always)]
            fn write(&self, mut space: $crate::record::memory::Space<'_>) {
                space.put(*self);
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
}
pub(super) use record;
