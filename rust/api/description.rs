// SPDX-License-Identifier: GPL-2.0

//! How C code of other modules describes an event: the structures of `rtrace.h`.

use crate::abi::schema::FieldType;
use crate::event::provided::Description;
use crate::sys::foreign::{ForeignSlice, ForeignStr};
use kernel::prelude::*;

/// `struct rtrace_field`.
#[repr(C)]
struct FieldDescription<'a> {
    name: ForeignStr<'a>,
    ty: u8,
    size: u8,
}

/// `struct rtrace_event_desc`.
#[repr(C)]
pub(super) struct EventDescription<'a> {
    subsystem: ForeignStr<'a>,
    name: ForeignStr<'a>,
    fields: ForeignSlice<'a, FieldDescription<'a>>,
}

impl EventDescription<'_> {
    /// What it says. `EINVAL`: that cannot be an event.
    pub(super) fn read(&self) -> Result<Description> {
        let mut description = Description::new(self.subsystem.bytes(), self.name.bytes())?;
        for field in self.fields.items() {
            description.add_field(field.name.bytes(), field.ty()?)?;
        }
        Ok(description)
    }
}

impl FieldDescription<'_> {
    /// `enum rtrace_field_type`, with the size that goes with it.
    fn ty(&self) -> Result<FieldType<'static>> {
        let bits = || match self.size {
            1 | 2 | 4 | 8 => Ok(self.size * 8),
            _ => Err(EINVAL),
        };
        Ok(match (self.ty, self.size) {
            (0, _) => FieldType::unsigned(bits()?),
            (1, _) => FieldType::signed(bits()?),
            (2, _) => FieldType::hex(bits()?),
            (3, 1..) => FieldType::text(self.size.into()),
            (4, 0) => FieldType::String,
            (5, 8) => FieldType::address(),
            _ => return Err(EINVAL),
        })
    }
}
