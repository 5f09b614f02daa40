// SPDX-License-Identifier: GPL-2.0

//! rtrace's names of the kernel's events and of their fields. They are LTTng's: a thread's id is `tid`.

/// Returns rtrace's name of an event of the kernel.
pub fn event(system: &str, name: &str) -> String {
    match (system, name) {
        ("ftrace", "kernel_stack") => "rtrace_stack".to_owned(),
        ("irq" | "timer", _) => decode::event_of_kernel(name).into_owned(),
        _ => name.to_owned(),
    }
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
            ("timer", "hrtimer_setup", "timer_hrtimer_init"),
            ("kvm", "hrtimer_setup", "hrtimer_setup"),
            ("sched", "sched_switch", "sched_switch"),
        ] {
            assert_eq!(event(system, name), own);
        }
        assert_eq!(field("sched", "sched_switch", "prev_pid"), "prev_tid");
        assert_eq!(field("signal", "signal_generate", "pid"), "pid");
    }
}
