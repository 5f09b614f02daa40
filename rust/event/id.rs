// SPDX-License-Identifier: GPL-2.0

//! The ids of events.

use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The ids in use. Its lock is the innermost one.
#[pin_data]
pub(super) struct Ids {
    /// One bit for each id.
    #[pin]
    used: Mutex<KVVec<u64>>,
}

/// An id in use: of an event, and in each [selection](crate::session::Selection) that has the event. It is free for
/// another event when its last reference is dropped.
pub(crate) struct Id {
    number: u32,
    ids: Arc<Ids>,
}

impl Ids {
    /// Without used ids. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                used <- new_mutex!(KVVec::new()),
            }),
            GFP_KERNEL,
        )
    }
}

impl Id {
    /// Takes the lowest free id. May sleep.
    pub(super) fn take(ids: &Arc<Ids>) -> Result<Arc<Self>> {
        let mut used = ids.used.lock();
        let at = match used.iter().position(|word| *word != u64::MAX) {
            Some(at) => at,
            None => {
                used.push(0, GFP_KERNEL)?;
                used.len() - 1
            }
        };
        let word = used.get_mut(at).ok_or(ENOMEM)?;
        let bit = word.trailing_ones();
        *word |= 1 << bit;
        drop(used);
        let id = Self {
            number: at as u32 * u64::BITS + bit,
            ids: ids.clone(),
        };
        Ok(Arc::new(id, GFP_KERNEL)?)
    }

    /// The id.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        let (at, bit) = (self.number / u64::BITS, self.number % u64::BITS);
        if let Some(word) = self.ids.used.lock().get_mut(at as usize) {
            *word &= !(1 << bit);
        }
    }
}
