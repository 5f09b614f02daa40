// SPDX-License-Identifier: GPL-2.0

//! Event patterns, as `set_event` takes them.

/// Whether `pattern` (`sys:event`, `sys:*`, `event`, with `*` and `?`) means `event`, which
/// is `sys:name`. A pattern without a colon stands for the event's name, or the system's.
pub fn means(pattern: &str, event: &str) -> bool {
    let (system, name) = event.split_once(':').unwrap_or(("", event));
    let matches = |pattern: &str, text: &str| matches(pattern.as_bytes(), text.as_bytes());
    match pattern.split_once(':') {
        Some((systems, names)) => matches(systems, system) && matches(names, name),
        None => matches(pattern, name) || matches(pattern, system),
    }
}

/// Glob match with `*` and `?`, in time linear in pattern times text.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on when a character does not match: just after the last star, with that
    // star taking one character more.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(&c) if c == b'?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match retry {
                Some((after, from)) => {
                    retry = Some((after, from + 1));
                    p = after;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_set_event_takes_them() {
        for (pattern, event, expected) in [
            ("sched:sched_switch", "sched:sched_switch", true),
            ("sched:*", "sched:sched_switch", true),
            ("sched:*", "irq:softirq_entry", false),
            ("sched_switch", "sched:sched_switch", true),
            ("sched", "sched:sched_switch", true),
            ("*:*", "irq:softirq_entry", true),
            ("*entry*", "syscalls:syscall_entry_read", true),
            ("*_re?d", "syscalls:syscall_entry_read", true),
            ("*_re?d", "syscalls:syscall_entry_ready", false),
            ("s*entry", "sched:sched_entry", true),
            ("s*:*:*", "sched:sched_entry", false),
            ("", "a:b", false),
        ] {
            assert_eq!(means(pattern, event), expected, "{pattern} {event}");
        }
    }
}
