// SPDX-License-Identifier: GPL-2.0

//! The system calls that a word of the command line chooses: a name, a pattern, or a set with strace's name.

use super::architecture::Architecture;
use super::calls::{arguments, calls, is_call, number};
use rtrace_input::glob;

/// Names of sets, as in strace, for error messages.
pub const SETS: [&str; 9] = [
    "file", "desc", "process", "net", "signal", "ipc", "memory", "creds", "clock",
];

/// Kinds of arguments that are a socket's, by the module's table.
const OF_SOCKETS: [&str; 7] = [
    "peer",
    "own",
    "connected",
    "sender",
    "name",
    "message",
    "received",
];

/// Calls with a text that is not the path of a file.
const NO_FILE: [&str; 16] = [
    "sethostname",
    "setdomainname",
    "init_module",
    "delete_module",
    "finit_module",
    "add_key",
    "request_key",
    "memfd_create",
    "mq_open",
    "mq_unlink",
    "fsopen",
    "fsconfig",
    "fsetxattr",
    "fgetxattr",
    "fremovexattr",
    "quotactl",
];

/// Returns the system calls of this machine that a word chooses; none, if it chooses none.
///
/// - `%SET` chooses a set of calls: see [`SETS`].
/// - A name chooses the call. The C library's name works where the kernel's is another: `stat` is `newstat`,
///   `sendfile` is `sendfile64`.
/// - A pattern with `*`, `?` or `[...]`, and without a colon, chooses all calls whose names match. A pattern
///   that begins with `*` chooses none here, because it picks the calls' events by itself.
pub fn chosen(word: &str) -> Vec<&'static str> {
    if let Some(set) = word.strip_prefix('%') {
        return here().filter(|call| is_in(set, call)).collect();
    }
    if word.contains(':') || word.starts_with('*') {
        return Vec::new();
    }
    let matches = |call: &&str| names(call).any(|name| glob::matches(word, name));
    let exact = !word.contains(['*', '?', '[', '\\']);
    here()
        .filter(|call| match exact && is_call(word) {
            true => *call == word,
            false => matches(call),
        })
        .collect()
}

/// The calls of the architecture of this machine.
fn here() -> impl Iterator<Item = &'static str> {
    calls().filter(|call| number(Architecture::HERE, call).is_some())
}

/// The kernel's name of a call, and those that the C library may have for it.
fn names(call: &str) -> impl Iterator<Item = &str> {
    let other = match call {
        "umount" => Some("umount2"),
        _ => call.strip_prefix("new").or(call.strip_suffix("64")),
    };
    // The library's name must not be another call of the kernel.
    let other = other.filter(|other| !is_call(other));
    std::iter::once(call).chain(other)
}

/// Returns the argument of a call that is the path of a file: the first one, if there are two.
pub fn path_of(call: &str) -> Option<&'static str> {
    let mut arguments = arguments(call).iter();
    let path = arguments.find(|(_, kind)| *kind == "string");
    path.filter(|_| !NO_FILE.contains(&call))
        .map(|(name, _)| *name)
}

/// Returns whether a call is in the set with this name.
fn is_in(set: &str, call: &str) -> bool {
    let has = |wanted: &[&str]| {
        let mut arguments = arguments(call).iter();
        arguments.any(|(_, kind)| wanted.contains(kind))
    };
    let is_one_of = |names: &[&str]| names.iter().any(|name| glob::matches(name, call));
    match set {
        "file" => path_of(call).is_some() || call == "getcwd",
        "desc" => {
            has(&["fd"])
                || is_one_of(&[
                    "open",
                    "creat",
                    "epoll_create*",
                    "eventfd*",
                    "timerfd_create",
                    "pipe*",
                    "select",
                    "pselect6",
                    "poll",
                    "ppoll",
                    "inotify_init*",
                    "memfd_*",
                    "pidfd_open",
                    "userfaultfd",
                    "socket",
                    "socketpair",
                    "fanotify_init",
                ])
        }
        "process" => is_one_of(&[
            "fork",
            "vfork",
            "clone*",
            "execve*",
            "exit",
            "exit_group",
            "wait*",
            "kill",
            "tkill",
            "tgkill",
            "rt_sigqueueinfo",
            "rt_tgsigqueueinfo",
            "pidfd_send_signal",
            "unshare",
        ]),
        "net" | "network" => {
            has(&OF_SOCKETS)
                || is_one_of(&[
                    "socket",
                    "socketpair",
                    "listen",
                    "shutdown",
                    "*sockopt",
                    "sendmmsg",
                    "recvmmsg",
                ])
        }
        "signal" => is_one_of(&["*sig*", "kill", "tkill", "tgkill", "pause"]),
        "ipc" => is_one_of(&["msg*", "sem*", "shm*"]),
        "memory" => is_one_of(&[
            "mmap",
            "munmap",
            "mremap",
            "mprotect",
            "pkey_mprotect",
            "brk",
            "madvise",
            "process_madvise",
            "mlock*",
            "munlock*",
            "mincore",
            "msync",
            "mbind",
            "*_mempolicy*",
            "migrate_pages",
            "move_pages",
            "mseal",
            "remap_file_pages",
            "map_shadow_stack",
        ]),
        "creds" => {
            is_one_of(&[
                "get*uid",
                "get*gid",
                "set*uid",
                "set*gid",
                "getgroups",
                "setgroups",
                "capget",
                "capset",
                "prctl",
            ]) && !is_one_of(&["getpgid", "setpgid", "getsid"])
        }
        "clock" => is_one_of(&[
            "clock_*",
            "gettimeofday",
            "settimeofday",
            "time",
            "adjtimex",
        ]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns() {
        for (word, expected) in [
            ("open", "open"),
            ("openat*", "openat openat2"),
            ("stat", "newstat"),
            ("stat?", "statx"),
            ("sendfile", "sendfile64"),
            ("umount2", "umount"),
            // Another processor has fadvise64_64, too.
            #[cfg(target_arch = "x86_64")]
            ("fadvise64*", "fadvise64"),
            ("write", "write"),
            ("epoll_wai[t]", "epoll_wait"),
            ("syscalls", ""),
            ("sched", ""),
            ("sched_switch", ""),
            ("*open*", ""),
            ("mmap:*", ""),
            ("%nowhere", ""),
        ] {
            assert_eq!(chosen(word).join(" "), expected, "{word}");
        }
    }

    #[test]
    fn sets() {
        for (set, has, lacks) in [
            (
                "file",
                "openat newstat execve unlink getcwd rename mount",
                "read close socket",
            ),
            (
                "desc",
                "read close mmap openat epoll_wait socket accept4 dup2",
                "unlink getpid",
            ),
            (
                "process",
                "fork clone3 execveat exit_group wait4",
                "open kexec_load",
            ),
            (
                "net",
                "socket connect sendto recvmsg getsockopt bind accept4 listen",
                "read prctl",
            ),
            ("network", "socket", "open"),
            ("signal", "rt_sigaction kill signalfd4 sigaltstack", "open"),
            ("ipc", "semop shmat msgget", "open"),
            ("memory", "mmap brk mlock2 set_mempolicy", "open"),
            ("creds", "getuid setresgid capset", "getpgid open"),
            ("clock", "clock_gettime gettimeofday time", "nanosleep"),
        ] {
            let found = chosen(&format!("%{set}"));
            for call in has.split(' ') {
                assert!(found.contains(&call), "{set} lacks {call}");
            }
            for call in lacks.split(' ') {
                assert!(is_call(call) && !found.contains(&call), "{set} has {call}");
            }
        }
        assert!(SETS
            .iter()
            .all(|set| !chosen(&format!("%{set}")).is_empty()));
    }
}
