// SPDX-License-Identifier: GPL-2.0

//! The kernel's events in the CTF that `perf data convert --to-ctf` writes, under rtrace's names. perf calls an event
//! `SYSTEM:NAME`.

use super::model::{Description, EventClass, Type};
use crate::ftrace::{event_name, field_name};

/// Gives the events of a trace of perf rtrace's names.
pub fn translate(this: &mut Description) {
    if this
        .env
        .get("tracer_name")
        .is_none_or(|name| name != "perf")
    {
        return;
    }
    let events = this
        .streams
        .iter_mut()
        .flat_map(|stream| &mut stream.events);
    for EventClass { name, payload, .. } in events {
        let Some((system, kernels)) = name.split_once(':') else {
            continue;
        };
        if let Some(Type::Structure(fields, _)) = payload {
            for field in fields {
                let plain = field.name.trim_start_matches('_');
                let own = field_name(system, kernels, plain);
                // The name of a length stays as a later field has it.
                if own != plain {
                    field.name = own.to_owned();
                }
            }
        }
        *name = event_name(system, kernels);
    }
}
