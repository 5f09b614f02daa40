// SPDX-License-Identifier: GPL-2.0

//! The functions that a session traces.

use super::set::FunctionSet;
use kernel::prelude::*;

/// The functions to trace.
pub(crate) struct TracedFunctions {
    /// The chosen functions; no others are traced.
    pub(crate) only: FunctionSet,
    /// The functions among `only` that are not traced.
    pub(crate) not: FunctionSet,
}

impl TracedFunctions {
    /// Traces no function.
    pub(super) const NONE: Self = Self {
        only: FunctionSet::NONE,
        not: FunctionSet::NONE,
    };

    /// Copies the choice.
    pub(super) fn try_clone(&self) -> Result<Self> {
        Ok(Self {
            only: self.only.try_clone()?,
            not: self.not.try_clone()?,
        })
    }

    /// Removes the functions for which `goes` is true. Returns whether there were any.
    pub(super) fn drop_if(&mut self, goes: impl Fn(usize) -> bool) -> bool {
        let before = self.only.len() + self.not.len();
        self.only.drop_if(&goes);
        self.not.drop_if(&goes);
        self.only.len() + self.not.len() != before
    }
}
