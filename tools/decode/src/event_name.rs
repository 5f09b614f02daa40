// SPDX-License-Identifier: GPL-2.0

//! Names of events that differ between the kernel and rtrace, whose names are LTTng's.

use std::borrow::Cow;

/// Beginnings of the kernel's names, and the word that rtrace has before them.
const PREFIXES: [(&str, &str); 3] = [
    ("softirq_", "irq_"),
    ("hrtimer_", "timer_"),
    ("itimer_", "timer_"),
];

/// An event that the kernel has renamed: its name there, and rtrace's.
const RENAMED: (&str, &str) = ("hrtimer_setup", "timer_hrtimer_init");

/// Returns rtrace's name of an event of the kernel.
pub fn event_of_kernel(name: &str) -> Cow<'_, str> {
    if name == RENAMED.0 {
        return RENAMED.1.into();
    }
    match PREFIXES.iter().find(|(begin, _)| name.starts_with(begin)) {
        Some((_, before)) => format!("{before}{name}").into(),
        None => name.into(),
    }
}

/// Returns the kernel's name of an event of rtrace.
pub fn event_in_kernel(name: &str) -> &str {
    if name == RENAMED.1 {
        return RENAMED.0;
    }
    let of_kernel = PREFIXES.iter().find_map(|(begin, before)| {
        let rest = name.strip_prefix(before)?;
        rest.starts_with(begin).then_some(rest)
    });
    of_kernel.unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_translated_in_both_directions() {
        for (kernel, own) in [
            ("softirq_entry", "irq_softirq_entry"),
            ("irq_handler_entry", "irq_handler_entry"),
            ("hrtimer_start", "timer_hrtimer_start"),
            ("hrtimer_setup", "timer_hrtimer_init"),
            ("itimer_state", "timer_itimer_state"),
            ("timer_start", "timer_start"),
            ("sched_switch", "sched_switch"),
        ] {
            assert_eq!(event_of_kernel(kernel), own);
            assert_eq!(event_in_kernel(own), kernel);
        }
    }
}
