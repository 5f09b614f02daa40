// SPDX-License-Identifier: GPL-2.0

//! A set of functions.

use crate::sys::sort::sort_by;
use core::ops::Deref;
use kernel::prelude::*;

/// Functions by their addresses, in ascending order, without duplicates.
#[derive(PartialEq)]
pub(crate) struct FunctionSet(KVVec<usize>);

impl FunctionSet {
    /// The empty set.
    pub(crate) const NONE: Self = Self(KVVec::new());

    /// The set of these functions, which can be in any order and contain duplicates.
    pub(crate) fn new(mut functions: KVVec<usize>) -> Result<Self> {
        sort_by(&mut functions, usize::cmp);
        let mut set = KVVec::with_capacity(functions.len(), GFP_KERNEL)?;
        for function in &functions {
            if set.last() != Some(function) {
                set.push(*function, GFP_KERNEL)?;
            }
        }
        Ok(Self(set))
    }

    /// Copies the set.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        Self::of(self)
    }

    /// The set of these functions, which must be ascending and without duplicates.
    pub(super) fn of(functions: &[usize]) -> Result<Self> {
        let mut set = KVVec::new();
        set.extend_from_slice(functions, GFP_KERNEL)?;
        Ok(Self(set))
    }

    /// The union of this set and `more`.
    pub(crate) fn with(&self, more: &Self) -> Result<Self> {
        let mut functions = KVVec::with_capacity(self.len() + more.len(), GFP_KERNEL)?;
        functions.extend_from_slice(&self.0, GFP_KERNEL)?;
        functions.extend_from_slice(&more.0, GFP_KERNEL)?;
        Self::new(functions)
    }

    /// This set without `others`.
    pub(crate) fn without(&self, others: &Self) -> Result<Self> {
        let mut functions = self.try_clone()?;
        functions.drop_if(|function| others.binary_search(&function).is_ok());
        Ok(functions)
    }

    /// Removes the functions for which `goes` is true.
    pub(super) fn drop_if(&mut self, goes: impl Fn(usize) -> bool) {
        self.0.retain(|function| !goes(*function));
    }
}

impl Deref for FunctionSet {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}
