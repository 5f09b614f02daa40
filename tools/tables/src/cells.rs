// SPDX-License-Identifier: GPL-2.0

//! The cells of a column that have not been written yet.

use crate::column::{Column, Kind};
use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, ListBuilder, PrimitiveBuilder, StringBuilder,
    StringDictionaryBuilder,
};
use arrow_array::types::{
    ArrowPrimitiveType, Int16Type, Int32Type, Int64Type, Int8Type, TimestampMicrosecondType,
    UInt16Type, UInt32Type, UInt64Type, UInt8Type,
};
use arrow_array::ArrayRef;
use arrow_schema::DataType;

/// Cells of one column. What a column cannot hold becomes an empty cell.
pub trait Cells {
    /// An integer as its bits: a signed one as sign-extended.
    fn integer(&mut self, _bits: u64) {
        self.null();
    }

    /// A text.
    fn text(&mut self, _text: &str) {
        self.null();
    }

    /// Integers, each as its bits.
    fn list(&mut self, _list: &mut dyn Iterator<Item = u64>) {
        self.null();
    }

    /// An empty cell.
    fn null(&mut self);

    /// All that were added, as an array.
    fn take(&mut self) -> ArrayRef;
}

/// The cells of a column: none yet.
pub fn cells(column: &Column) -> Box<dyn Cells> {
    match column.kind {
        Kind::Flag => Box::new(BooleanBuilder::new()),
        Kind::Text => Box::new(StringBuilder::new()),
        Kind::Name => Box::new(StringDictionaryBuilder::<Int32Type>::new()),
        kind => match kind.data_type() {
            DataType::List(element) => numbers(element.data_type(), true),
            other => numbers(&other, false),
        },
    }
}

fn numbers(element: &DataType, is_list: bool) -> Box<dyn Cells> {
    match element {
        DataType::Int8 => of::<Int8Type>(|bits| bits as i8, is_list),
        DataType::Int16 => of::<Int16Type>(|bits| bits as i16, is_list),
        DataType::Int32 => of::<Int32Type>(|bits| bits as i32, is_list),
        DataType::UInt8 => of::<UInt8Type>(|bits| bits as u8, is_list),
        DataType::UInt16 => of::<UInt16Type>(|bits| bits as u16, is_list),
        DataType::UInt32 => of::<UInt32Type>(|bits| bits as u32, is_list),
        DataType::UInt64 => of::<UInt64Type>(|bits| bits, is_list),
        DataType::Timestamp(..) => {
            let builder = PrimitiveBuilder::<TimestampMicrosecondType>::new();
            let builder = builder.with_data_type(Kind::Time.data_type());
            let of = |bits| bits as i64;
            Box::new(Numbers { builder, of })
        }
        _ => of::<Int64Type>(|bits| bits as i64, is_list),
    }
}

fn of<T: ArrowPrimitiveType>(of: fn(u64) -> T::Native, is_list: bool) -> Box<dyn Cells> {
    let builder = PrimitiveBuilder::<T>::new();
    if is_list {
        let builder = ListBuilder::new(builder);
        Box::new(Lists { builder, of })
    } else {
        Box::new(Numbers { builder, of })
    }
}

struct Numbers<T: ArrowPrimitiveType> {
    builder: PrimitiveBuilder<T>,
    of: fn(u64) -> T::Native,
}

impl<T: ArrowPrimitiveType> Cells for Numbers<T> {
    fn integer(&mut self, bits: u64) {
        self.builder.append_value((self.of)(bits));
    }

    fn null(&mut self) {
        self.builder.append_null();
    }

    fn take(&mut self) -> ArrayRef {
        ArrayBuilder::finish(&mut self.builder)
    }
}

struct Lists<T: ArrowPrimitiveType> {
    builder: ListBuilder<PrimitiveBuilder<T>>,
    of: fn(u64) -> T::Native,
}

impl<T: ArrowPrimitiveType> Cells for Lists<T> {
    fn list(&mut self, list: &mut dyn Iterator<Item = u64>) {
        let values = self.builder.values();
        list.for_each(|bits| values.append_value((self.of)(bits)));
        self.builder.append(true);
    }

    fn null(&mut self) {
        self.builder.append(false);
    }

    fn take(&mut self) -> ArrayRef {
        ArrayBuilder::finish(&mut self.builder)
    }
}

impl Cells for BooleanBuilder {
    fn integer(&mut self, bits: u64) {
        self.append_value(bits != 0);
    }

    fn null(&mut self) {
        self.append_null();
    }

    fn take(&mut self) -> ArrayRef {
        ArrayBuilder::finish(self)
    }
}

impl Cells for StringBuilder {
    fn text(&mut self, text: &str) {
        self.append_value(text);
    }

    fn null(&mut self) {
        self.append_null();
    }

    fn take(&mut self) -> ArrayRef {
        ArrayBuilder::finish(self)
    }
}

impl Cells for StringDictionaryBuilder<Int32Type> {
    fn text(&mut self, text: &str) {
        self.append_value(text);
    }

    fn null(&mut self) {
        self.append_null();
    }

    fn take(&mut self) -> ArrayRef {
        ArrayBuilder::finish(self)
    }
}
