// SPDX-License-Identifier: GPL-2.0

//! An event's filter: an expression, and its compiled program.

use crate::abi::schema::{Field, FieldType};
use crate::context::{Context, Moment, ThreadContexts};
use crate::filter::compile::{self, compile, FilterNames, ProgramMemory};
use crate::filter::evaluate::Contexts;
use crate::filter::program::{Decision, First, Program, Step, MAX_STEPS, MAX_TEXTS};
use crate::input::filter::error::Error as Wrong;
use crate::record::memory::Captured;
use crate::sys::cpu;
use crate::sys::privilege::Rights;
use kernel::alloc::AllocError;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;

/// The filter of one event in one channel.
pub(crate) struct Filter {
    first: First,
    expression: CString,
    steps: KVec<Step>,
    texts: KVec<u8>,
}

/// Reason why a filter is refused.
pub(crate) enum Refusal {
    /// The expression is wrong.
    Wrong(Wrong),
    /// The event's records are too long.
    TooLong,
    /// There is not enough memory.
    Memory,
}

impl From<AllocError> for Refusal {
    fn from(_: AllocError) -> Self {
        Self::Memory
    }
}

impl Filter {
    /// Creates a filter of records whose values have these names. The expression is at position `at` of a line. May
    /// sleep.
    pub(crate) fn new<'a>(
        names: FilterNames<'_, impl Iterator<Item = Field<'a>> + Clone>,
        expression: &str,
        at: usize,
    ) -> Result<Arc<Self>, Refusal> {
        let mut steps = KVec::from_elem(Step::NONE, MAX_STEPS, GFP_KERNEL)?;
        let mut texts = KVec::from_elem(0, MAX_TEXTS, GFP_KERNEL)?;
        let memory = ProgramMemory {
            steps: &mut steps,
            texts: &mut texts,
        };
        let program = compile(expression, names, memory).map_err(|wrong| {
            let at = wrong.at + at;
            Refusal::Wrong(Wrong { at, ..wrong })
        })?;
        let expression =
            CString::try_from_fmt(fmt!("{expression}")).map_err(|_| Refusal::Memory)?;
        let filter = Self {
            first: program.first(),
            expression,
            steps: kept(program.steps())?,
            texts: kept(program.texts())?,
        };
        Ok(Arc::new(filter, GFP_KERNEL)?)
    }

    /// The expression, as the user wrote it.
    pub(crate) fn expression(&self) -> &str {
        self.expression.to_str().unwrap_or("")
    }

    /// Whether a record with these fields is wanted now. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn wants(&self, fields: Captured<'_>, now: Moment<'_>) -> bool {
        let program = Program::new(&self.steps, &self.texts);
        program.wants(fields.fields(), &Now(now))
    }

    /// Whether the filter compares only contexts that [`ThreadContexts`] has.
    pub(crate) fn is_of_thread(&self) -> bool {
        let mut contexts = Program::new(&self.steps, &self.texts).contexts();
        contexts.all(|id| {
            let context = Context::ALL.get(usize::from(id));
            context.is_some_and(|context| context.is_of_thread())
        })
    }

    /// Whether a record of a thread with these fields is wanted.
    pub(crate) fn wants_of(&self, fields: &[u8], thread: &ThreadContexts) -> bool {
        Program::new(&self.steps, &self.texts).wants(fields, &thread)
    }

    /// As [`wants`](Self::wants), as far as one number of the record decides it. `number` returns the number at an
    /// offset.
    #[inline(always)]
    pub(crate) fn decides(&self, number: impl FnOnce(usize) -> Option<u64>) -> Decision {
        self.first.decides(number)
    }
}

/// Names for an event with these fields and for a file with these rights, which may not use values that it may not see.
pub(crate) fn names<'a, F: Iterator<Item = Field<'a>> + Clone>(
    fields: F,
    rights: Rights,
) -> FilterNames<'static, F> {
    FilterNames {
        fields,
        contexts: &CONTEXTS,
        cpus: cpu::count(),
        hides_addresses: !rights.sees_addresses,
    }
}

fn kept<T: Copy>(items: &[T]) -> Result<KVec<T>, AllocError> {
    let mut kept = KVec::new();
    kept.extend_from_slice(items, GFP_KERNEL)?;
    Ok(kept)
}

/// All contexts, in the form for the compiler.
static CONTEXTS: [compile::FilterContext<'static>; Context::ALL.len()] = {
    let mut contexts = [compile::FilterContext {
        name: "",
        id: 0,
        ty: FieldType::String,
    }; Context::ALL.len()];
    let mut id = 0;
    while id < contexts.len() {
        let context = Context::ALL[id];
        contexts[id] = compile::FilterContext {
            name: context.name(),
            id: context as u8,
            ty: context.ty(),
        };
        id += 1;
    }
    contexts
};

/// The moment in which a program runs.
pub(super) struct Now<'a>(pub(super) Moment<'a>);

impl Contexts for Now<'_> {
    type Text = [u8; 16];

    #[inline(always)]
    fn number(&self, id: u8) -> Option<u64> {
        Context::ALL.get(usize::from(id))?.number(&self.0)
    }

    #[inline(always)]
    fn text(&self, id: u8) -> Option<[u8; 16]> {
        Context::ALL.get(usize::from(id))?.text()
    }
}
