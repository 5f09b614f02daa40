// SPDX-License-Identifier: GPL-2.0

//! Contexts of a thread that is not the current one.

use super::{Context, ContextChoice, ContextSet};
use crate::filter::evaluate::Contexts;

/// The contexts that are known of a thread which made a record earlier.
#[derive(Clone, Copy)]
pub(crate) struct ThreadContexts {
    /// Thread and process, in the initial namespace.
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    /// Thread and process, in their own namespace.
    pub(crate) vtid: i32,
    pub(crate) vpid: i32,
    /// The thread's name.
    pub(crate) comm: [u8; 16],
    /// The CPU of the record.
    pub(crate) cpu: u32,
}

impl Context {
    /// Whether [`ThreadContexts`] has the context.
    pub(crate) fn is_of_thread(self) -> bool {
        matches!(
            self,
            Self::Tid | Self::Pid | Self::Vtid | Self::Vpid | Self::Cpu | Self::Comm
        )
    }
}

impl ThreadContexts {
    /// The value of a context that is a number, if it is known.
    fn value(&self, context: Context) -> Option<u32> {
        Some(match context {
            Context::Tid => self.tid as u32,
            Context::Pid => self.pid as u32,
            Context::Vtid => self.vtid as u32,
            Context::Vpid => self.vpid as u32,
            Context::Cpu => self.cpu,
            _ => return None,
        })
    }
}

/// For filters.
impl Contexts for &ThreadContexts {
    type Text = [u8; 16];

    fn number(&self, id: u8) -> Option<u64> {
        let value = self.value(*Context::ALL.get(usize::from(id))?)?;
        Some(value.into())
    }

    fn text(&self, id: u8) -> Option<[u8; 16]> {
        let context = *Context::ALL.get(usize::from(id))?;
        (context == Context::Comm).then_some(self.comm)
    }
}

impl ContextSet {
    /// Whether [`ThreadContexts`] has all contexts of the set.
    pub(crate) fn is_of_thread(&self) -> bool {
        self.iter().all(|choice| match choice {
            ContextChoice::Context(context) => context.is_of_thread(),
            _ => false,
        })
    }

    /// Writes the contexts to the beginning of `out`, and returns their size. [`None`]: one is not known, or the room is
    /// too small.
    pub(crate) fn write_of(&self, thread: &ThreadContexts, out: &mut [u8]) -> Option<usize> {
        let mut at = 0;
        for choice in self.iter() {
            let ContextChoice::Context(context) = choice else {
                return None;
            };
            let value = thread.value(context).map(u32::to_le_bytes);
            let bytes = match &value {
                Some(number) => number.as_slice(),
                None if context == Context::Comm => thread.comm.as_slice(),
                None => return None,
            };
            out.get_mut(at..at + bytes.len())?.copy_from_slice(bytes);
            at += bytes.len();
        }
        Some(at)
    }
}
