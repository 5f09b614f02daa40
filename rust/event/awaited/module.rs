// SPDX-License-Identifier: GPL-2.0

//! The probes of a module, and their reaction to the loading and unloading of other modules.

use super::table::{AwaitedTable, Made};
use super::{FollowModules, ModuleProbes};
use crate::event::registry::Registry;
use crate::event::Event;
use crate::source::external::External;
use crate::source::{perf, FullName};
use crate::sys::foreign::ForeignModule;
use crate::sys::modules::{FoundTracepoint, Module, OnModules};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The probes of one module.
#[pin_data]
pub(super) struct Awaited {
    owner: ForeignModule,
    registry: Arc<Registry>,
    follow: Arc<dyn FollowModules>,
    #[pin]
    table: Mutex<AwaitedTable>,
}

impl Awaited {
    /// Without events.
    pub(super) fn new(
        owner: ForeignModule,
        probes: KBox<dyn ModuleProbes>,
        registry: &Arc<Registry>,
        follow: Arc<dyn FollowModules>,
    ) -> Result<Arc<Self>> {
        let table = AwaitedTable::new(probes)?;
        let registry = registry.clone();
        Arc::pin_init(
            pin_init!(Self {
                owner,
                registry,
                follow,
                table <- new_mutex!(table),
            }),
            GFP_KERNEL,
        )
    }

    /// The module that has the probes.
    pub(super) fn owner(&self) -> ForeignModule {
        self.owner
    }

    /// See [`AllAwaited::ask_for`](super::AllAwaited::ask_for).
    pub(super) fn ask_for(&self, picks: &impl Fn(FullName<'_>) -> bool) -> Result {
        let mut table = self.table.lock();
        let mut places = KVec::new();
        if let Some(probes) = table.probes() {
            for place in 0..probes.count() {
                if picks(probes.name(place)) {
                    places.push(place as u32, GFP_KERNEL)?;
                }
            }
        }
        table.make(&places, &self.registry)
    }

    /// See [`AllAwaited::is_own`](super::AllAwaited::is_own).
    pub(super) fn is_own(&self, name: FullName<'_>) -> bool {
        let table = self.table.lock();
        let (_, tracepoint) = name;
        let mut places = table.places(tracepoint.as_bytes()).iter();
        places.any(|place| table.is_own(*place, name))
    }

    /// See [`AllAwaited::each_name`](super::AllAwaited::each_name).
    pub(super) fn each_name(&self, each: &mut impl FnMut(FullName<'_>) -> Result) -> Result {
        let table = self.table.lock();
        let Some(probes) = table.probes() else {
            return Ok(());
        };
        for place in 0..probes.count() {
            let made = table.made(place as u32);
            if !made.is_some_and(|made| made.tracepoint.is_there()) {
                each(probes.name(place))?;
            }
        }
        Ok(())
    }

    /// See [`AllAwaited::next_change`](super::AllAwaited::next_change).
    pub(super) fn next_change(&self) -> Option<Arc<Event>> {
        self.table.lock().next_change()
    }

    /// See [`AllAwaited::take_new`](super::AllAwaited::take_new).
    pub(super) fn take_new(&self) -> bool {
        self.table.lock().take_new()
    }

    /// Removes the probes. Returns the events that were created from them.
    pub(super) fn give_back(&self) -> KVVec<Option<Made>> {
        self.table.lock().give_back()
    }

    /// Makes the events of a loaded module present.
    fn meet(&self, module: &Module<'_>) -> Result<Met> {
        let mut table = self.table.lock();
        let mut met = Met {
            any: false,
            changed: 0,
        };
        let (mut places, mut mismatched) = (KVec::new(), KVec::new());
        for found in module.tracepoints() {
            for &place in table.places(found.name()) {
                let is_for = |probes: &dyn ModuleProbes| probes.is_for(place as usize, module);
                if table.probes().is_some_and(is_for) {
                    places.push(place, GFP_KERNEL)?;
                } else {
                    mismatched.push(place, GFP_KERNEL)?;
                }
            }
        }
        table.make(&places, &self.registry)?;
        let mut result = Ok(());
        for found in module.tracepoints() {
            for &place in table.places(found.name()) {
                let Some(made) = table.made(place).filter(|_| places.contains(&place)) else {
                    continue;
                };
                match compare(&found, &made.event)? {
                    Likeness::Same => {
                        met.any = true;
                        // The other events are made present nevertheless.
                        result = result.and(made.tracepoint.comes(&found));
                    }
                    Likeness::Changed => {
                        met.changed += 1;
                        mismatched.push(place, GFP_KERNEL)?;
                    }
                    Likeness::Other => mismatched.push(place, GFP_KERNEL)?,
                }
            }
        }
        for place in mismatched {
            table.add_mismatch(place, module.id())?;
        }
        result.map(|()| met)
    }
}

/// Tracepoints that a module has, as far as handlers wait for them.
struct Met {
    any: bool,
    /// Number of events that have the name of a known event and other fields.
    changed: usize,
}

/// Comparison of a module's event with the known event of the same name.
enum Likeness {
    Same,
    /// The fields differ.
    Changed,
    /// The events only have the same name, in different subsystems.
    Other,
}

/// Compares a module's description of a tracepoint's event with the known event.
fn compare(found: &FoundTracepoint<'_>, event: &Event) -> Result<Likeness> {
    let (Some(own), Some(known)) = (found.event(), event.source_as::<External>()) else {
        return Ok(Likeness::Other);
    };
    let (subsystem, name) = known.description.full_name();
    if own.subsystem() != subsystem.as_bytes() {
        return Ok(Likeness::Other);
    }
    match perf::describe(&own, subsystem, name) {
        Ok(own) if known.description.is_outlined_as(&own) => Ok(Likeness::Same),
        Err(ENOMEM) => Err(ENOMEM),
        _ => Ok(Likeness::Changed),
    }
}

impl OnModules for Awaited {
    fn comes(&self, module: &Module<'_>) {
        match self.meet(module) {
            Ok(met) => {
                if met.changed != 0 {
                    let changed = met.changed;
                    let name = module.name();
                    pr_info!("module {name}: {changed} events have other fields than rtrace knows: perf can record them\n");
                }
                if !met.any {
                    return;
                }
            }
            Err(_) => {
                let name = module.name();
                pr_warn!(
                    "no memory for all events of the module {name}: load it again to record them\n"
                );
            }
        }
        self.follow.follow();
    }

    fn goes(&self, module: &Module<'_>) -> bool {
        let (mut any, mut was_called) = (false, false);
        let mut table = self.table.lock();
        table.forget_mismatches(module.id());
        for made in table.events() {
            let was_there = made.tracepoint.is_there();
            was_called |= made.tracepoint.goes(module);
            any |= was_there && !made.tracepoint.is_there();
        }
        drop(table);
        if any {
            self.follow.follow();
        }
        was_called
    }
}
