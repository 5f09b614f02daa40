// SPDX-License-Identifier: GPL-2.0

//! The meaning of each argument of each call. Names of calls and arguments are those of the module's table
//! (`rust/source/syscall/table.rs`).

use super::architecture::Architecture;
use super::calls::arguments;
use super::meaning::{Meaning, Name};
use super::mounts;
use nix::libc;

/// Values, which may be negative.
macro_rules! values {
    ($($name:ident)*) => { &[$((stringify!($name), libc::$name as i64 as u64)),*] };
}

/// Bits of a 32-bit number.
macro_rules! bits {
    ($($name:ident)*) => { &[$((stringify!($name), libc::$name as u32 as u64)),*] };
}

const fn mixed(mask: u64, values: &'static [Name], flags: &'static [Name]) -> Meaning {
    Meaning::Mixed {
        mask,
        values,
        flags,
    }
}

const DIRECTORY: Meaning = Meaning::Value(values!(AT_FDCWD));
/// The bit that differs between O_TMPFILE and O_DIRECTORY.
const TMPFILE: u64 = 0o20000000;

/// Flags of a file, of a processor with these values.
macro_rules! open {
    (O_DIRECT = $direct:literal, O_LARGEFILE = $large:literal, O_NOFOLLOW = $nofollow:literal, O_DIRECTORY = $directory:literal) => {
        mixed(
            libc::O_ACCMODE as u64,
            values!(O_RDONLY O_WRONLY O_RDWR O_ACCMODE),
            &[
                ("O_CREAT", libc::O_CREAT as u64),
                ("O_EXCL", libc::O_EXCL as u64),
                ("O_NOCTTY", libc::O_NOCTTY as u64),
                ("O_TRUNC", libc::O_TRUNC as u64),
                ("O_APPEND", libc::O_APPEND as u64),
                ("O_NONBLOCK", libc::O_NONBLOCK as u64),
                ("O_SYNC", libc::O_SYNC as u64),
                ("O_DSYNC", libc::O_DSYNC as u64),
                ("O_DIRECT", $direct),
                ("O_LARGEFILE", $large),
                ("O_NOFOLLOW", $nofollow),
                ("O_NOATIME", libc::O_NOATIME as u64),
                ("O_CLOEXEC", libc::O_CLOEXEC as u64),
                ("O_PATH", libc::O_PATH as u64),
                ("O_TMPFILE", TMPFILE | $directory),
                ("O_DIRECTORY", $directory),
                ("FASYNC", libc::O_ASYNC as u64),
            ],
        )
    };
}

/// Flags of a file, on x86-64.
const OPEN_X86_64: Meaning = open!(
    O_DIRECT = 0o40000,
    O_LARGEFILE = 0o100000,
    O_NOFOLLOW = 0o400000,
    O_DIRECTORY = 0o200000
);
/// Flags of a file, on arm64.
const OPEN_ARM64: Meaning = open!(
    O_DIRECT = 0o200000,
    O_LARGEFILE = 0o400000,
    O_NOFOLLOW = 0o100000,
    O_DIRECTORY = 0o40000
);

const fn open(architecture: Architecture) -> &'static Meaning {
    match architecture {
        Architecture::X86_64 => &OPEN_X86_64,
        Architecture::Arm64 => &OPEN_ARM64,
    }
}

/// Flags of a new descriptor, of a processor with this value.
macro_rules! descriptor {
    (O_DIRECT = $direct:literal) => {
        Meaning::Flags(&[
            ("O_NONBLOCK", libc::O_NONBLOCK as u64),
            ("O_DIRECT", $direct),
            ("O_CLOEXEC", libc::O_CLOEXEC as u64),
        ])
    };
}

fn descriptor(architecture: Architecture) -> Meaning {
    match architecture {
        Architecture::X86_64 => descriptor!(O_DIRECT = 0o40000),
        Architecture::Arm64 => descriptor!(O_DIRECT = 0o200000),
    }
}

const AT: Meaning = Meaning::Flags(bits!(AT_SYMLINK_NOFOLLOW AT_SYMLINK_FOLLOW AT_NO_AUTOMOUNT
    AT_EMPTY_PATH AT_RECURSIVE));
/// The kind of synchronisation is a value.
const AT_STATX: Meaning = mixed(
    0x6000,
    values!(AT_STATX_SYNC_AS_STAT AT_STATX_FORCE_SYNC AT_STATX_DONT_SYNC),
    bits!(AT_SYMLINK_NOFOLLOW AT_SYMLINK_FOLLOW AT_NO_AUTOMOUNT AT_EMPTY_PATH AT_RECURSIVE),
);
/// The bit 0x200 has other names in other calls.
const AT_UNLINK: Meaning = Meaning::Flags(bits!(AT_REMOVEDIR));
const AT_ACCESS: Meaning = Meaning::Flags(bits!(AT_SYMLINK_NOFOLLOW AT_EACCESS AT_EMPTY_PATH));
const STATX: Meaning = Meaning::Flags(bits!(STATX_ALL STATX_BASIC_STATS STATX_TYPE STATX_MODE
    STATX_NLINK STATX_UID STATX_GID STATX_ATIME STATX_MTIME STATX_CTIME STATX_INO STATX_SIZE
    STATX_BLOCKS STATX_BTIME STATX_MNT_ID STATX_DIOALIGN));
/// `include/uapi/linux/stat.h`.
const STATX_ATTRIBUTES: Meaning = Meaning::Flags(&[
    ("STATX_ATTR_COMPRESSED", 0x4),
    ("STATX_ATTR_IMMUTABLE", 0x10),
    ("STATX_ATTR_APPEND", 0x20),
    ("STATX_ATTR_NODUMP", 0x40),
    ("STATX_ATTR_ENCRYPTED", 0x800),
    ("STATX_ATTR_AUTOMOUNT", 0x1000),
    ("STATX_ATTR_MOUNT_ROOT", 0x2000),
    ("STATX_ATTR_VERITY", 0x0010_0000),
    ("STATX_ATTR_DAX", 0x0020_0000),
    ("STATX_ATTR_WRITE_ATOMIC", 0x0040_0000),
]);
const ACCESS: Meaning = Meaning::Flags(bits!(F_OK R_OK W_OK X_OK));
const WHENCE: Meaning = Meaning::Value(values!(SEEK_SET SEEK_CUR SEEK_END SEEK_DATA SEEK_HOLE));
const FCNTL: Meaning = Meaning::Value(
    values!(F_DUPFD F_GETFD F_SETFD F_GETFL F_SETFL F_GETLK F_SETLK
    F_SETLKW F_SETOWN F_GETOWN F_OFD_GETLK F_OFD_SETLK
    F_OFD_SETLKW F_SETLEASE F_GETLEASE F_NOTIFY F_DUPFD_CLOEXEC F_SETPIPE_SZ F_GETPIPE_SZ F_ADD_SEALS
    F_GET_SEALS),
);
const FLOCK: Meaning = mixed(
    0xf & !(libc::LOCK_NB as u64),
    values!(LOCK_SH LOCK_EX LOCK_UN),
    bits!(LOCK_NB),
);
/// Flags of a descriptor.
const FD: Meaning = Meaning::Flags(bits!(FD_CLOEXEC));
/// `include/uapi/linux/fcntl.h`.
const SEALS: Meaning = Meaning::Flags(&[
    ("F_SEAL_SEAL", 0x1),
    ("F_SEAL_SHRINK", 0x2),
    ("F_SEAL_GROW", 0x4),
    ("F_SEAL_WRITE", 0x8),
    ("F_SEAL_FUTURE_WRITE", 0x10),
    ("F_SEAL_EXEC", 0x20),
]);
const IOCTL: Meaning = Meaning::Request(
    values!(TCGETS TCSETS TCSETSW TCSETSF TCSBRK TCFLSH TIOCGPGRP
    TIOCSPGRP TIOCGWINSZ TIOCSWINSZ TIOCSCTTY TIOCNOTTY TIOCGPTN TIOCSPTLCK FIONREAD FIONBIO FIOCLEX
    FIONCLEX FICLONE FICLONERANGE),
);
/// The two names before the last one are those of arm64 (`arch/arm64/include/uapi/asm/mman.h`).
const PROTECTION: &[Name] = &[
    ("PROT_NONE", 0),
    ("PROT_READ", 1),
    ("PROT_WRITE", 2),
    ("PROT_EXEC", 4),
    ("PROT_SEM", 8),
    ("PROT_GROWSDOWN", libc::PROT_GROWSDOWN as u64),
    ("PROT_GROWSUP", libc::PROT_GROWSUP as u64),
    ("PROT_BTI", 0x10),
    ("PROT_MTE", 0x20),
];

fn protection(architecture: Architecture) -> Meaning {
    let (common, _) = PROTECTION.split_at(7);
    Meaning::Flags(match architecture {
        Architecture::X86_64 => common,
        Architecture::Arm64 => PROTECTION,
    })
}

/// Flags of a mapping, with those of one processor.
macro_rules! map {
    ($($own:tt)*) => {
        mixed(
            libc::MAP_TYPE as u64,
            values!(MAP_FILE MAP_SHARED MAP_PRIVATE MAP_SHARED_VALIDATE),
            &[
                ("MAP_FIXED", libc::MAP_FIXED as u64),
                ("MAP_ANONYMOUS", libc::MAP_ANONYMOUS as u64),
                $($own)*
                ("MAP_NORESERVE", libc::MAP_NORESERVE as u64),
                ("MAP_POPULATE", libc::MAP_POPULATE as u64),
                ("MAP_NONBLOCK", libc::MAP_NONBLOCK as u64),
                ("MAP_GROWSDOWN", libc::MAP_GROWSDOWN as u64),
                ("MAP_DENYWRITE", libc::MAP_DENYWRITE as u64),
                ("MAP_EXECUTABLE", libc::MAP_EXECUTABLE as u64),
                ("MAP_LOCKED", libc::MAP_LOCKED as u64),
                ("MAP_STACK", libc::MAP_STACK as u64),
                ("MAP_HUGETLB", libc::MAP_HUGETLB as u64),
                ("MAP_SYNC", libc::MAP_SYNC as u64),
                ("MAP_FIXED_NOREPLACE", libc::MAP_FIXED_NOREPLACE as u64),
            ],
        )
    };
}

fn map(architecture: Architecture) -> Meaning {
    match architecture {
        Architecture::X86_64 => map!(("MAP_32BIT", 0x40),),
        Architecture::Arm64 => map!(),
    }
}

const REMAP: Meaning = Meaning::Flags(bits!(MREMAP_MAYMOVE MREMAP_FIXED MREMAP_DONTUNMAP));
const MSYNC: Meaning = Meaning::Flags(bits!(MS_SYNC MS_ASYNC MS_INVALIDATE));
const MLOCK: Meaning = Meaning::Flags(bits!(MCL_CURRENT MCL_FUTURE MCL_ONFAULT));
const ADVICE: Meaning = Meaning::Value(
    values!(MADV_NORMAL MADV_RANDOM MADV_SEQUENTIAL MADV_WILLNEED
    MADV_DONTNEED MADV_FREE MADV_REMOVE MADV_DONTFORK MADV_DOFORK MADV_MERGEABLE MADV_UNMERGEABLE
    MADV_HUGEPAGE MADV_NOHUGEPAGE MADV_DONTDUMP MADV_DODUMP MADV_WIPEONFORK MADV_KEEPONFORK MADV_COLD
    MADV_PAGEOUT MADV_POPULATE_READ MADV_POPULATE_WRITE MADV_COLLAPSE MADV_HWPOISON),
);
const FADVISE: Meaning = Meaning::Value(values!(POSIX_FADV_NORMAL POSIX_FADV_RANDOM
    POSIX_FADV_SEQUENTIAL POSIX_FADV_WILLNEED POSIX_FADV_DONTNEED POSIX_FADV_NOREUSE));
const FALLOCATE: Meaning = Meaning::Flags(bits!(FALLOC_FL_KEEP_SIZE FALLOC_FL_PUNCH_HOLE
    FALLOC_FL_COLLAPSE_RANGE FALLOC_FL_ZERO_RANGE FALLOC_FL_INSERT_RANGE FALLOC_FL_UNSHARE_RANGE));
const SIGNAL_MASK: Meaning = Meaning::Value(values!(SIG_BLOCK SIG_UNBLOCK SIG_SETMASK));
const CLONE: Meaning = Meaning::CloneFlags(
    bits!(CLONE_VM CLONE_FS CLONE_FILES CLONE_SIGHAND CLONE_PIDFD
    CLONE_PTRACE CLONE_VFORK CLONE_PARENT CLONE_THREAD CLONE_NEWNS CLONE_SYSVSEM CLONE_SETTLS
    CLONE_PARENT_SETTID CLONE_CHILD_CLEARTID CLONE_DETACHED CLONE_UNTRACED CLONE_CHILD_SETTID
    CLONE_NEWCGROUP CLONE_NEWUTS CLONE_NEWIPC CLONE_NEWUSER CLONE_NEWPID CLONE_NEWNET CLONE_IO),
);
/// Without a signal, its bits have another meaning.
const NAMESPACES: Meaning = Meaning::Flags(bits!(CLONE_NEWTIME CLONE_FS CLONE_FILES CLONE_NEWNS
    CLONE_SYSVSEM CLONE_NEWCGROUP CLONE_NEWUTS CLONE_NEWIPC CLONE_NEWUSER CLONE_NEWPID CLONE_NEWNET));
const FAMILY: Meaning = Meaning::Value(
    values!(AF_UNSPEC AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET
    AF_BLUETOOTH AF_CAN AF_ALG AF_VSOCK AF_XDP AF_KEY AF_TIPC),
);
const SOCKET_TYPE: Meaning = mixed(
    0xf,
    values!(SOCK_STREAM SOCK_DGRAM SOCK_RAW SOCK_RDM SOCK_SEQPACKET SOCK_DCCP),
    bits!(SOCK_CLOEXEC SOCK_NONBLOCK),
);
const SOCKET_FLAGS: Meaning = Meaning::Flags(bits!(SOCK_CLOEXEC SOCK_NONBLOCK));
const SOCKET_LEVEL: Meaning = Meaning::Value(values!(SOL_SOCKET SOL_TCP SOL_UDP SOL_IPV6 SOL_RAW
    SOL_PACKET SOL_NETLINK SOL_IP SOL_ALG));
const SOCKET_OPTION: Meaning = Meaning::Value(
    values!(SO_DEBUG SO_REUSEADDR SO_TYPE SO_ERROR SO_DONTROUTE
    SO_BROADCAST SO_SNDBUF SO_RCVBUF SO_SNDBUFFORCE SO_RCVBUFFORCE SO_KEEPALIVE SO_OOBINLINE SO_PRIORITY
    SO_LINGER SO_REUSEPORT SO_PASSCRED SO_PEERCRED SO_RCVLOWAT SO_SNDLOWAT SO_BINDTODEVICE
    SO_ATTACH_FILTER SO_DETACH_FILTER SO_TIMESTAMP SO_ACCEPTCONN SO_PEERSEC SO_MARK SO_PROTOCOL SO_DOMAIN
    SO_RXQ_OVFL SO_PEEK_OFF SO_BUSY_POLL SO_INCOMING_CPU SO_ZEROCOPY),
);
const TCP_OPTION: Meaning = Meaning::Value(
    values!(TCP_NODELAY TCP_MAXSEG TCP_CORK TCP_KEEPIDLE TCP_KEEPINTVL
    TCP_KEEPCNT TCP_SYNCNT TCP_LINGER2 TCP_DEFER_ACCEPT TCP_WINDOW_CLAMP TCP_INFO TCP_QUICKACK
    TCP_CONGESTION TCP_USER_TIMEOUT TCP_FASTOPEN),
);
const PROTOCOL: Meaning = Meaning::Value(values!(IPPROTO_IP IPPROTO_ICMP IPPROTO_TCP IPPROTO_UDP
    IPPROTO_IPV6 IPPROTO_ICMPV6 IPPROTO_SCTP IPPROTO_RAW));
const SHUTDOWN: Meaning = Meaning::Value(values!(SHUT_RD SHUT_WR SHUT_RDWR));
const MESSAGE: Meaning = Meaning::Flags(bits!(MSG_OOB MSG_PEEK MSG_DONTROUTE MSG_CTRUNC MSG_TRUNC
    MSG_DONTWAIT MSG_EOR MSG_WAITALL MSG_CONFIRM MSG_ERRQUEUE MSG_NOSIGNAL MSG_MORE MSG_WAITFORONE
    MSG_FASTOPEN MSG_CMSG_CLOEXEC));
/// Operations of futex(2), also those of a futex of one process.
macro_rules! futex {
    ($($name:literal = $operation:ident)*) => {
        &[
            $((concat!("FUTEX_", $name), libc::$operation as u64),)*
            $((
                concat!("FUTEX_", $name, "_PRIVATE"),
                libc::$operation as u64 | libc::FUTEX_PRIVATE_FLAG as u64,
            ),)*
        ]
    };
}
const FUTEX: Meaning = mixed(
    0xff,
    futex!("WAIT" = FUTEX_WAIT "WAKE" = FUTEX_WAKE "FD" = FUTEX_FD "REQUEUE" = FUTEX_REQUEUE "CMP_REQUEUE" = FUTEX_CMP_REQUEUE "WAKE_OP" = FUTEX_WAKE_OP "LOCK_PI" = FUTEX_LOCK_PI "UNLOCK_PI" = FUTEX_UNLOCK_PI "TRYLOCK_PI" = FUTEX_TRYLOCK_PI "WAIT_BITSET" = FUTEX_WAIT_BITSET "WAKE_BITSET" = FUTEX_WAKE_BITSET "WAIT_REQUEUE_PI" = FUTEX_WAIT_REQUEUE_PI "CMP_REQUEUE_PI" = FUTEX_CMP_REQUEUE_PI "LOCK_PI2" = FUTEX_LOCK_PI2),
    bits!(FUTEX_CLOCK_REALTIME),
);
const FUTEX_BITS: Meaning = Meaning::Value(&[("FUTEX_BITSET_MATCH_ANY", 0xffff_ffff)]);
const EPOLL: Meaning = Meaning::Value(values!(EPOLL_CTL_ADD EPOLL_CTL_DEL EPOLL_CTL_MOD));
const CLOCK: Meaning = Meaning::Value(
    values!(CLOCK_REALTIME CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID
    CLOCK_THREAD_CPUTIME_ID CLOCK_MONOTONIC_RAW CLOCK_REALTIME_COARSE CLOCK_MONOTONIC_COARSE
    CLOCK_BOOTTIME CLOCK_REALTIME_ALARM CLOCK_BOOTTIME_ALARM CLOCK_TAI),
);
const TIMER: Meaning = Meaning::Flags(bits!(TIMER_ABSTIME));
const TIMERFD_CREATE: Meaning = Meaning::Flags(bits!(TFD_CLOEXEC TFD_NONBLOCK));
const EPOLL_CREATE: Meaning = Meaning::Flags(bits!(EPOLL_CLOEXEC));
const SIGNALFD: Meaning = Meaning::Flags(bits!(SFD_CLOEXEC SFD_NONBLOCK));
const INOTIFY_INIT: Meaning = Meaning::Flags(bits!(IN_NONBLOCK IN_CLOEXEC));
const TIMERFD: Meaning = Meaning::Flags(bits!(TFD_TIMER_ABSTIME TFD_TIMER_CANCEL_ON_SET));
const ITIMER: Meaning = Meaning::Value(values!(ITIMER_REAL ITIMER_VIRTUAL ITIMER_PROF));
const EVENTFD: Meaning = Meaning::Flags(bits!(EFD_SEMAPHORE EFD_CLOEXEC EFD_NONBLOCK));
const MEMFD: Meaning = Meaning::Flags(
    bits!(MFD_CLOEXEC MFD_ALLOW_SEALING MFD_HUGETLB MFD_NOEXEC_SEAL
    MFD_EXEC),
);
const RANDOM: Meaning = Meaning::Flags(bits!(GRND_NONBLOCK GRND_RANDOM GRND_INSECURE));
const WAIT: Meaning = Meaning::Flags(bits!(WNOHANG WEXITED WSTOPPED WCONTINUED WNOWAIT __WCLONE
    __WALL __WNOTHREAD));
const WAITID: Meaning = Meaning::Value(values!(P_ALL P_PID P_PGID P_PIDFD));
const RESOURCE: Meaning = Meaning::Value(values!(RLIMIT_CPU RLIMIT_FSIZE RLIMIT_DATA RLIMIT_STACK
    RLIMIT_CORE RLIMIT_RSS RLIMIT_NPROC RLIMIT_NOFILE RLIMIT_MEMLOCK RLIMIT_AS RLIMIT_LOCKS
    RLIMIT_SIGPENDING RLIMIT_MSGQUEUE RLIMIT_NICE RLIMIT_RTPRIO RLIMIT_RTTIME));
const USAGE: Meaning = Meaning::Value(values!(RUSAGE_SELF RUSAGE_CHILDREN RUSAGE_THREAD));
const PRIORITY: Meaning = Meaning::Value(values!(PRIO_PROCESS PRIO_PGRP PRIO_USER));
const POLICY: Meaning = mixed(
    !(libc::SCHED_RESET_ON_FORK as u64),
    values!(SCHED_OTHER SCHED_FIFO SCHED_RR SCHED_BATCH SCHED_IDLE SCHED_DEADLINE),
    bits!(SCHED_RESET_ON_FORK),
);
const PRCTL: Meaning = Meaning::Value(values!(PR_SET_PDEATHSIG PR_GET_PDEATHSIG PR_GET_DUMPABLE
    PR_SET_DUMPABLE PR_GET_KEEPCAPS PR_SET_KEEPCAPS PR_SET_NAME PR_GET_NAME PR_GET_SECCOMP PR_SET_SECCOMP
    PR_CAPBSET_READ PR_CAPBSET_DROP PR_GET_SECUREBITS PR_SET_SECUREBITS PR_SET_TIMERSLACK
    PR_GET_TIMERSLACK PR_SET_MM PR_SET_CHILD_SUBREAPER PR_GET_CHILD_SUBREAPER PR_SET_NO_NEW_PRIVS
    PR_GET_NO_NEW_PRIVS PR_SET_THP_DISABLE PR_GET_THP_DISABLE PR_CAP_AMBIENT PR_SET_VMA));
/// `arch/x86/include/uapi/asm/prctl.h`.
const ARCH_PRCTL: Meaning = Meaning::Value(&[
    ("ARCH_SET_GS", 0x1001),
    ("ARCH_SET_FS", 0x1002),
    ("ARCH_GET_FS", 0x1003),
    ("ARCH_GET_GS", 0x1004),
]);
const RENAME: Meaning = Meaning::Flags(bits!(RENAME_NOREPLACE RENAME_EXCHANGE RENAME_WHITEOUT));
const SPLICE: Meaning = Meaning::Flags(bits!(SPLICE_F_MOVE SPLICE_F_NONBLOCK SPLICE_F_MORE
    SPLICE_F_GIFT));
/// `include/uapi/linux/openat2.h`.
const RESOLVE: Meaning = Meaning::Flags(&[
    ("RESOLVE_NO_XDEV", 0x1),
    ("RESOLVE_NO_MAGICLINKS", 0x2),
    ("RESOLVE_NO_SYMLINKS", 0x4),
    ("RESOLVE_BENEATH", 0x8),
    ("RESOLVE_IN_ROOT", 0x10),
    ("RESOLVE_CACHED", 0x20),
]);
/// `include/uapi/asm-generic/signal-defs.h`. The first one is in the header of each processor that has it.
const SIGNAL_ACTION: Meaning = Meaning::Flags(&[
    ("SA_RESTORER", SA_RESTORER),
    ("SA_ONSTACK", 0x0800_0000),
    ("SA_RESTART", 0x1000_0000),
    ("SA_NODEFER", 0x4000_0000),
    ("SA_RESETHAND", 0x8000_0000),
    ("SA_SIGINFO", 0x4),
    ("SA_NOCLDSTOP", 0x1),
    ("SA_NOCLDWAIT", 0x2),
    ("SA_UNSUPPORTED", 0x400),
    ("SA_EXPOSE_TAGBITS", 0x800),
]);
/// The flag of a signal action that has a restorer, on x86-64 and arm64.
pub const SA_RESTORER: u64 = 0x0400_0000;
const MOUNT: Meaning = Meaning::Flags(bits!(MS_RDONLY MS_NOSUID MS_NODEV MS_NOEXEC MS_SYNCHRONOUS
    MS_REMOUNT MS_MANDLOCK MS_DIRSYNC MS_NOSYMFOLLOW MS_NOATIME MS_NODIRATIME MS_BIND MS_MOVE MS_REC MS_SILENT
    MS_POSIXACL MS_UNBINDABLE MS_PRIVATE MS_SLAVE MS_SHARED MS_RELATIME MS_STRICTATIME MS_LAZYTIME));
const UMOUNT: Meaning = Meaning::Flags(bits!(MNT_FORCE MNT_DETACH MNT_EXPIRE UMOUNT_NOFOLLOW));
const INOTIFY: Meaning = Meaning::Flags(bits!(IN_ACCESS IN_MODIFY IN_ATTRIB IN_CLOSE_WRITE
    IN_CLOSE_NOWRITE IN_OPEN IN_MOVED_FROM IN_MOVED_TO IN_CREATE IN_DELETE IN_DELETE_SELF IN_MOVE_SELF
    IN_ONLYDIR IN_DONT_FOLLOW IN_EXCL_UNLINK IN_MASK_ADD IN_ISDIR IN_ONESHOT));
const XATTR: Meaning = Meaning::Flags(bits!(XATTR_CREATE XATTR_REPLACE));
const RWF: Meaning = Meaning::Flags(bits!(RWF_HIPRI RWF_DSYNC RWF_SYNC RWF_NOWAIT RWF_APPEND));
const CLOSE_RANGE: Meaning = Meaning::Flags(bits!(CLOSE_RANGE_UNSHARE CLOSE_RANGE_CLOEXEC));

/// The events of an epoll instance.
pub const EPOLL_EVENTS: Meaning = Meaning::Flags(
    bits!(EPOLLIN EPOLLPRI EPOLLOUT EPOLLERR EPOLLHUP EPOLLRDNORM EPOLLRDBAND
    EPOLLWRNORM EPOLLWRBAND EPOLLMSG EPOLLRDHUP EPOLLEXCLUSIVE EPOLLWAKEUP EPOLLONESHOT EPOLLET),
);
/// The events of poll(2).
pub const POLL_EVENTS: Meaning = Meaning::Flags(
    bits!(POLLIN POLLPRI POLLOUT POLLERR POLLHUP POLLNVAL POLLRDNORM POLLRDBAND
    POLLWRNORM POLLWRBAND POLLRDHUP),
);

/// The meaning of a call's argument in a trace of this architecture. [`None`]: it is a plain number.
pub fn argument(architecture: Architecture, call: &str, name: &str) -> Option<Meaning> {
    Some(match (call, name) {
        (_, "dfd" | "olddfd" | "newdfd" | "from_dfd" | "to_dfd" | "mountdirfd") => DIRECTORY,
        ("open" | "openat" | "open_by_handle_at", "flags")
        | ("mq_open", "oflag")
        | ("fanotify_init", "event_f_flags")
        | ("openat2", "how_flags") => *open(architecture),
        ("openat2", "how_resolve") => RESOLVE,
        ("access" | "faccessat" | "faccessat2", "mode") => ACCESS,
        ("fallocate", "mode") => FALLOCATE,
        ("set_mempolicy" | "mbind", "mode") => return None,
        (_, "mode") | ("umask", "mask") => Meaning::Mode,
        ("dup3" | "pipe2", "flags") => descriptor(architecture),
        ("inotify_init1", "flags") => INOTIFY_INIT,
        ("epoll_create1", "flags") => EPOLL_CREATE,
        ("timerfd_create", "flags") => TIMERFD_CREATE,
        ("signalfd4", "flags") => SIGNALFD,
        ("eventfd2", "flags") => EVENTFD,
        ("memfd_create", "flags") => MEMFD,
        ("unlinkat", "flag") => AT_UNLINK,
        ("faccessat2", "flags") => AT_ACCESS,
        ("newfstatat" | "fchownat" | "name_to_handle_at", "flag")
        | ("linkat" | "utimensat" | "execveat" | "fchmodat2" | "mount_setattr", "flags")
        | (_, "at_flags") => AT,
        ("statx", "flags") => AT_STATX,
        ("statx", "mask" | "stx_mask") => STATX,
        ("statx", "stx_attributes") => STATX_ATTRIBUTES,
        (_, "st_mode" | "stx_mode") => Meaning::FileMode,
        (_, "st_rdev") => Meaning::Device,
        ("mmap", "offset") | ("rseq", "rseq_len" | "sig") => Meaning::Hex,
        ("lseek", "whence") => WHENCE,
        ("fcntl", "cmd") => FCNTL,
        ("flock", "cmd") => FLOCK,
        ("ioctl", "cmd") => IOCTL,
        ("mmap" | "mprotect" | "pkey_mprotect", "prot") => protection(architecture),
        ("mmap", "flags") => map(architecture),
        ("mremap", "flags") => REMAP,
        ("msync", "flags") => MSYNC,
        ("mlockall", "flags") => MLOCK,
        ("madvise" | "process_madvise", "behavior") => ADVICE,
        ("fadvise64" | "fadvise64_64", "advice") => FADVISE,
        (_, "sig") | ("clone3", "uargs_exit_signal") => Meaning::Signal,
        ("rt_sigprocmask", "how") => SIGNAL_MASK,
        ("clone", "clone_flags") | ("clone3", "uargs_flags") => CLONE,
        ("unshare", "unshare_flags") | ("setns", "flags") => NAMESPACES,
        ("socket" | "socketpair", "family") => FAMILY,
        ("socket" | "socketpair", "type") => SOCKET_TYPE,
        ("accept4", "flags") => SOCKET_FLAGS,
        ("setsockopt" | "getsockopt", "level") => SOCKET_LEVEL,
        ("shutdown", "how") => SHUTDOWN,
        ("sendto" | "recvfrom" | "sendmsg" | "recvmsg" | "sendmmsg" | "recvmmsg", "flags") => {
            MESSAGE
        }
        ("futex", "op") => FUTEX,
        ("epoll_ctl", "op") => EPOLL,
        (_, "which_clock" | "clockid") => CLOCK,
        ("clock_nanosleep" | "timer_settime", "flags") => TIMER,
        ("timerfd_settime", "flags") => TIMERFD,
        ("getitimer" | "setitimer", "which") => ITIMER,
        ("getrandom", "flags") => RANDOM,
        ("wait4" | "waitid", "options") => WAIT,
        ("waitid", "which") => WAITID,
        ("getrlimit" | "setrlimit" | "prlimit64", "resource") => RESOURCE,
        ("getrusage", "who") => USAGE,
        ("getpriority" | "setpriority", "which") => PRIORITY,
        ("sched_setscheduler" | "sched_get_priority_max" | "sched_get_priority_min", "policy") => {
            POLICY
        }
        ("prctl", "option") => PRCTL,
        ("arch_prctl", "option") => ARCH_PRCTL,
        ("renameat2", "flags") => RENAME,
        ("splice" | "tee" | "vmsplice", "flags") => SPLICE,
        ("mount", "flags") => MOUNT,
        ("umount", "flags") => UMOUNT,
        ("fsopen", "flags") => mounts::FSOPEN,
        ("fsmount", "flags") => mounts::FSMOUNT,
        ("fsmount", "attr_flags") => mounts::ATTRIBUTES,
        ("fspick", "flags") => mounts::FSPICK,
        ("fsconfig", "cmd") => mounts::FSCONFIG,
        ("open_tree" | "open_tree_attr", "flags") => mounts::OPEN_TREE,
        ("move_mount", "flags") => mounts::MOVE_MOUNT,
        ("inotify_add_watch", "mask") => INOTIFY,
        ("setxattr" | "lsetxattr" | "fsetxattr", "flags") => XATTR,
        ("preadv2" | "pwritev2", "flags") => RWF,
        ("close_range", "flags") => CLOSE_RANGE,
        ("rt_sigaction", "act_flags" | "oact_flags") => SIGNAL_ACTION,
        _ => return of_kind(call, name),
    })
}

/// The meaning that follows from the kind of an argument alone.
fn of_kind(call: &str, name: &str) -> Option<Meaning> {
    /// Kinds of arguments that are no addresses.
    const NUMBERS: [&str; 12] = [
        "int", "uint", "long", "ulong", "fd", "pid", "mode", "size", "off", "flags", "bits",
        "string",
    ];
    let mut arguments = arguments(call).iter();
    let (_, kind) = arguments.find(|(argument, _)| *argument == name)?;
    match *kind {
        "uid" => Some(Meaning::Value(&[("-1", 0xffff_ffff)])),
        kind if NUMBERS.contains(&kind) => None,
        _ => Some(Meaning::Pointer),
    }
}

/// The argument of a call that decides the meaning of others, and which of them the call uses.
pub fn decider(call: &str) -> &'static str {
    match call {
        "futex" => "op",
        "fcntl" => "cmd",
        "prctl" => "option",
        "setsockopt" | "getsockopt" => "level",
        "socket" | "socketpair" => "family",
        _ => "flags",
    }
}

/// The meaning of an argument in a call whose [`decider`] has this value, if it depends on that.
pub fn decided(
    architecture: Architecture,
    call: &str,
    name: &str,
    decider: u64,
) -> Option<Meaning> {
    let decider = decider as i32;
    match (call, name) {
        ("fcntl", "arg") => match decider {
            libc::F_SETFL => Some(*open(architecture)),
            libc::F_SETFD => Some(FD),
            libc::F_ADD_SEALS => Some(SEALS),
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC | libc::F_SETPIPE_SZ => Some(Meaning::Value(&[])),
            _ => None,
        },
        ("prctl", "arg2") if decider == libc::PR_SET_PDEATHSIG => Some(Meaning::Signal),
        ("futex", "val3") if matches!(decider & 0x7f, 9 | 10) => Some(FUTEX_BITS),
        ("setsockopt" | "getsockopt", "optname") => match decider {
            libc::SOL_SOCKET => Some(SOCKET_OPTION),
            libc::SOL_TCP => Some(TCP_OPTION),
            _ => None,
        },
        ("socket" | "socketpair", "protocol") => {
            matches!(decider, libc::AF_INET | libc::AF_INET6).then_some(PROTOCOL)
        }
        _ => None,
    }
}

/// The meaning of the result of a call whose [`decider`] has this value. [`None`]: it is a plain number.
pub fn result(architecture: Architecture, call: &str, decider: Option<u64>) -> Option<Meaning> {
    const TIMEOUT: Meaning = Meaning::Value(&[("0 (Timeout)", 0)]);
    match call {
        "mmap" | "brk" | "mremap" | "shmat" => Some(Meaning::Address),
        "umask" => Some(Meaning::Mode),
        "sched_getscheduler" => Some(POLICY),
        "poll" | "ppoll" | "select" | "pselect6" => Some(TIMEOUT),
        "fcntl" => match decider? as i32 {
            libc::F_GETFL => Some(Meaning::Annotated(open(architecture))),
            libc::F_GETFD => Some(Meaning::Annotated(&FD)),
            libc::F_GET_SEALS => Some(Meaning::Annotated(&SEALS)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an argument is used by a call whose [`decider`] has this value. The fields of the structure of clone3(2) count
/// as its arguments, and its flags decide.
pub fn is_given(call: &str, name: &str, decider: u64) -> bool {
    match (call, name) {
        ("clone3", "pidfd") => decider & libc::CLONE_PIDFD as u64 != 0,
        ("clone3", "child_tid") => {
            decider & (libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID) as u64 != 0
        }
        ("clone3", "parent_tid") => decider & libc::CLONE_PARENT_SETTID as u64 != 0,
        ("clone3", "tls") => decider & libc::CLONE_SETTLS as u64 != 0,
        ("mremap", "new_addr") => {
            decider & (libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP) as u64 != 0
        }
        ("open" | "openat", "mode") => decider & (libc::O_CREAT as u64 | TMPFILE) != 0,
        ("fcntl", "arg") => !matches!(
            decider as i32,
            libc::F_GETFD
                | libc::F_GETFL
                | libc::F_GETOWN
                | libc::F_GETLEASE
                | libc::F_GETPIPE_SZ
                | libc::F_GET_SEALS
        ),
        ("futex", name) => {
            // (`FUTEX_FD` has had no meaning since 2.6.26.)
            let used: &[&str] = match decider as i32 & 0x7f {
                libc::FUTEX_WAIT => &["val", "utime"],
                libc::FUTEX_WAKE => &["val"],
                libc::FUTEX_REQUEUE => &["val", "utime", "uaddr2"],
                libc::FUTEX_LOCK_PI | libc::FUTEX_LOCK_PI2 => &["utime"],
                libc::FUTEX_UNLOCK_PI | libc::FUTEX_TRYLOCK_PI => &[],
                libc::FUTEX_WAIT_BITSET => &["val", "utime", "val3"],
                libc::FUTEX_WAKE_BITSET => &["val", "val3"],
                libc::FUTEX_WAIT_REQUEUE_PI => &["val", "utime", "uaddr2"],
                _ => return true,
            };
            matches!(name, "uaddr" | "op") || used.contains(&name)
        }
        ("prctl", "arg2" | "arg3" | "arg4" | "arg5") => {
            let used = match decider as i32 {
                libc::PR_GET_DUMPABLE
                | libc::PR_GET_KEEPCAPS
                | libc::PR_GET_SECCOMP
                | libc::PR_GET_SECUREBITS
                | libc::PR_GET_TIMERSLACK => "",
                libc::PR_SET_NAME
                | libc::PR_GET_NAME
                | libc::PR_SET_PDEATHSIG
                | libc::PR_GET_PDEATHSIG
                | libc::PR_SET_DUMPABLE
                | libc::PR_SET_KEEPCAPS
                | libc::PR_CAPBSET_READ
                | libc::PR_CAPBSET_DROP
                | libc::PR_SET_TIMERSLACK
                | libc::PR_SET_CHILD_SUBREAPER
                | libc::PR_GET_CHILD_SUBREAPER => "arg2",
                _ => return true,
            };
            name == used
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::position;
    use super::*;

    fn text(call: &str, name: &str, number: i64) -> String {
        let mut out = String::new();
        let meaning = argument(Architecture::X86_64, call, name).unwrap();
        meaning.write(&mut out, number as u64);
        out
    }

    /// The values that differ from those of x86-64, whichever machine runs this.
    #[test]
    fn arguments_on_arm64() {
        for (call, name, number, expected) in [
            (
                "openat",
                "flags",
                0o2040000,
                "O_RDONLY|O_CLOEXEC|O_DIRECTORY",
            ),
            ("openat", "flags", 0o20040002, "O_RDWR|O_TMPFILE"),
            ("openat", "flags", 0o300000, "O_RDONLY|O_DIRECT|O_NOFOLLOW"),
            ("pipe2", "flags", 0o200000, "O_DIRECT"),
            ("mmap", "prot", 0x15, "PROT_READ|PROT_EXEC|PROT_BTI"),
            ("mmap", "flags", 0x62, "MAP_PRIVATE|MAP_ANONYMOUS|0x40"),
        ] {
            let mut out = String::new();
            let meaning = argument(Architecture::Arm64, call, name).unwrap();
            meaning.write(&mut out, number);
            assert_eq!(out, expected, "{call} {name}");
        }
    }

    /// Values as `strace` prints them.
    #[test]
    fn arguments_by_name() {
        for (call, name, number, expected) in [
            ("openat", "dfd", -100, "AT_FDCWD"),
            ("openat", "dfd", 5, "5"),
            ("openat", "flags", 0o2000000, "O_RDONLY|O_CLOEXEC"),
            ("openat", "flags", 0o1101, "O_WRONLY|O_CREAT|O_TRUNC"),
            ("openat", "flags", 0o20200000, "O_RDONLY|O_TMPFILE"),
            ("openat", "flags", 0o4010002, "O_RDWR|O_SYNC"),
            ("openat", "mode", 0o666, "0666"),
            ("mmap", "prot", 3, "PROT_READ|PROT_WRITE"),
            ("mmap", "prot", 0, "PROT_NONE"),
            ("mmap", "flags", 0x22, "MAP_PRIVATE|MAP_ANONYMOUS"),
            (
                "mmap",
                "flags",
                0x812,
                "MAP_PRIVATE|MAP_FIXED|MAP_DENYWRITE",
            ),
            ("access", "mode", 4, "R_OK"),
            ("access", "mode", 0, "F_OK"),
            ("newfstatat", "flag", 0x1000, "AT_EMPTY_PATH"),
            ("unlinkat", "flag", 0x200, "AT_REMOVEDIR"),
            ("lseek", "whence", 2, "SEEK_END"),
            ("kill", "sig", 15, "SIGTERM"),
            (
                "clone",
                "clone_flags",
                0x0120_0011,
                "CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD",
            ),
            ("clone", "clone_flags", 0x8000_0011, "CLONE_IO|SIGCHLD"),
            ("socket", "family", 1, "AF_UNIX"),
            (
                "socket",
                "type",
                0o2004001,
                "SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK",
            ),
            ("madvise", "behavior", 4, "MADV_DONTNEED"),
            ("futex", "op", 0x80, "FUTEX_WAIT_PRIVATE"),
            (
                "futex",
                "op",
                0x189,
                "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME",
            ),
            ("epoll_ctl", "op", 1, "EPOLL_CTL_ADD"),
            ("fcntl", "cmd", 3, "F_GETFL"),
            ("fcntl", "cmd", 1030, "F_DUPFD_CLOEXEC"),
            ("clock_gettime", "which_clock", 1, "CLOCK_MONOTONIC"),
            ("prlimit64", "resource", 7, "RLIMIT_NOFILE"),
            ("wait4", "options", 1, "WNOHANG"),
            ("rt_sigprocmask", "how", 2, "SIG_SETMASK"),
            ("flock", "cmd", 6, "LOCK_EX|LOCK_NB"),
            ("sched_setscheduler", "policy", 1, "SCHED_FIFO"),
            ("ioctl", "cmd", 0x5401, "TCGETS"),
            ("mount", "flags", 0x1000, "MS_BIND"),
            ("fsopen", "flags", 1, "FSOPEN_CLOEXEC"),
            (
                "fsmount",
                "attr_flags",
                0x13,
                "MOUNT_ATTR_NOATIME|MOUNT_ATTR_RDONLY|MOUNT_ATTR_NOSUID",
            ),
            ("fsconfig", "cmd", 6, "FSCONFIG_CMD_CREATE"),
            (
                "open_tree",
                "flags",
                0o2000001,
                "OPEN_TREE_CLONE|OPEN_TREE_CLOEXEC",
            ),
            ("move_mount", "flags", 4, "MOVE_MOUNT_F_EMPTY_PATH"),
            ("read", "buf", 0, "NULL"),
            ("fchown", "user", 0xffff_ffff, "-1"),
            ("mmap", "offset", 0x1000, "0x1000"),
            (
                "statx",
                "flags",
                0x800,
                "AT_STATX_SYNC_AS_STAT|AT_NO_AUTOMOUNT",
            ),
            ("epoll_create1", "flags", 0o2000000, "EPOLL_CLOEXEC"),
            ("wait4", "options", 2, "WSTOPPED"),
        ] {
            assert_eq!(text(call, name, number), expected, "{call} {name}");
            assert!(position(call, name).is_some(), "{call} {name}");
        }
    }

    #[test]
    fn meanings_that_another_argument_decides() {
        for (call, decider, name, number, expected) in [
            ("fcntl", 4, "arg", 0o4002, "O_RDWR|O_NONBLOCK"),
            ("fcntl", 2, "arg", 1, "FD_CLOEXEC"),
            ("prctl", 1, "arg2", 15, "SIGTERM"),
            ("setsockopt", 1, "optname", 2, "SO_REUSEADDR"),
            ("setsockopt", 6, "optname", 1, "TCP_NODELAY"),
            ("socket", 2, "protocol", 6, "IPPROTO_TCP"),
            ("futex", 9, "val3", 0xffff_ffff, "FUTEX_BITSET_MATCH_ANY"),
        ] {
            assert!(position(call, super::decider(call)).is_some(), "{call}");
            let mut out = String::new();
            let meaning = decided(Architecture::X86_64, call, name, decider).unwrap();
            meaning.write(&mut out, number);
            assert_eq!(out, expected, "{call} {name}");
        }
        let mut out = String::new();
        let meaning = result(Architecture::X86_64, "fcntl", Some(3)).unwrap();
        meaning.write(&mut out, 0o102002);
        assert_eq!(out, "0x8402 (flags O_RDWR|O_APPEND|O_LARGEFILE)");
        assert!(result(Architecture::X86_64, "fcntl", None).is_none());
        for (call, decider, given) in [
            ("fcntl", 3, "fd cmd"),
            ("fcntl", 0, "fd cmd arg"),
            ("futex", 0x81, "uaddr op val"),
            ("futex", 0x80, "uaddr op val utime"),
            ("futex", 0x109, "uaddr op val utime val3"),
            ("prctl", 1, "option arg2"),
        ] {
            let names = arguments(call).iter().map(|(name, _)| *name);
            let found: Vec<_> = names.filter(|name| is_given(call, name, decider)).collect();
            assert_eq!(found.join(" "), given, "{call} {decider}");
        }
    }

    #[test]
    fn a_mode_counts_where_something_is_created() {
        let (creat, tmpfile) = (libc::O_CREAT as u64, TMPFILE);
        for (flags, expected) in [
            (0, false),
            (creat, true),
            (tmpfile, true),
            (0o200000, false),
        ] {
            assert_eq!(is_given("openat", "mode", flags), expected);
        }
        assert!(is_given("mkdir", "mode", 0));
    }
}
