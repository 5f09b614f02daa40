// SPDX-License-Identifier: GPL-2.0

//! Which functions a session traces.

use super::set::FunctionSet;
use kernel::prelude::*;

/// Which functions are traced.
pub(crate) struct TracedFunctions {
    /// These alone.
    pub(crate) only: FunctionSet,
    /// Of these, not these.
    pub(crate) not: FunctionSet,
}

impl TracedFunctions {
    /// None.
    pub(super) const NONE: Self = Self {
        only: FunctionSet::NONE,
        not: FunctionSet::NONE,
    };

    /// The same.
    pub(super) fn try_clone(&self) -> Result<Self> {
        Ok(Self {
            only: self.only.try_clone()?,
            not: self.not.try_clone()?,
        })
    }

    /// Puts out functions that `goes` picks. Whether there were any.
    pub(super) fn drop_if(&mut self, goes: impl Fn(usize) -> bool) -> bool {
        let before = self.only.len() + self.not.len();
        self.only.drop_if(&goes);
        self.not.drop_if(&goes);
        self.only.len() + self.not.len() != before
    }
}
