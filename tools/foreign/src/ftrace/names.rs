// SPDX-License-Identifier: GPL-2.0

//! rtrace's names of the kernel's events and of their fields. They are LTTng's: a thread's id is `tid`.

/// Prefixes of names that rtrace has with another prefix before them.
const PREFIXES: [(&str, &str); 3] = [
    ("softirq_", "irq_"),
    ("hrtimer_", "timer_"),
    ("itimer_", "timer_"),
];

/// Returns rtrace's name of an event of the kernel.
pub fn event(system: &str, name: &str) -> String {
    match (system, name) {
        ("timer", "hrtimer_setup") => return "timer_hrtimer_init".to_owned(),
        ("ftrace", "kernel_stack") => return "rtrace_stack".to_owned(),
        ("irq" | "timer", _) => {}
        _ => return name.to_owned(),
    }
    let prefix = PREFIXES.iter().find(|(own, _)| name.starts_with(own));
    let prefix = prefix.map_or("", |(_, prefix)| prefix);
    format!("{prefix}{name}")
}

/// Returns rtrace's name of a field.
pub fn field<'a>(system: &str, event: &str, name: &'a str) -> &'a str {
    let is_thread = match system {
        "sched" => true,
        "task" => event == "task_rename",
        _ => false,
    };
    match name {
        "caller" if event == "kernel_stack" => "stack",
        "pid" if is_thread => "tid",
        "prev_pid" if is_thread => "prev_tid",
        "next_pid" if is_thread => "next_tid",
        "old_pid" if is_thread => "old_tid",
        "parent_pid" if is_thread => "parent_tid",
        "child_pid" if is_thread => "child_tid",
        name => name,
    }
}

/// Whether a field with this name is an address of the kernel's code or data, if it is as long as a pointer.
pub fn is_address(name: &str) -> bool {
    const NAMES: [&str; 8] = [
        "ip",
        "parent_ip",
        "func",
        "retaddr",
        "call_site",
        "function",
        "caller",
        "stack",
    ];
    NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_rtraces() {
        for (system, name, own) in [
            ("irq", "softirq_entry", "irq_softirq_entry"),
            ("irq", "irq_handler_entry", "irq_handler_entry"),
            ("timer", "hrtimer_start", "timer_hrtimer_start"),
            ("timer", "hrtimer_setup", "timer_hrtimer_init"),
            ("timer", "timer_start", "timer_start"),
            ("sched", "sched_switch", "sched_switch"),
        ] {
            assert_eq!(event(system, name), own);
        }
        assert_eq!(field("sched", "sched_switch", "prev_pid"), "prev_tid");
        assert_eq!(field("signal", "signal_generate", "pid"), "pid");
    }
}
