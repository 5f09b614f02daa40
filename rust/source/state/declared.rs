// SPDX-License-Identifier: GPL-2.0

//! The events of the state, and their fields.

use crate::abi::schema::{Field, FieldType};
use crate::record::memory::Payload;
use crate::source::field::{record, Hex, Hex32};

/// An event of the state.
pub(crate) struct StateDeclaration {
    /// Name, as viewers of traces know it.
    pub(crate) name: &'static str,
    /// Fields, in the order of the record.
    pub(crate) fields: &'static [Field<'static>],
    /// Whether the kernel records the event; otherwise it comes as a line from user space.
    pub(super) by_kernel: bool,
}

/// All events of the state, in the order of their ids.
pub(super) static DECLARED: &[&StateDeclaration] = &[
    &START,
    &END,
    &PROCESS_STATE,
    &CGROUP_NS,
    &IPC_NS,
    &MNT_NS,
    &NET_NS,
    &PID_NS,
    &TIME_NS,
    &USER_NS,
    &UTS_NS,
    &FILE_DESCRIPTOR,
    &INTERRUPT,
    &NETWORK_INTERFACE,
    &BLOCK_DEVICE,
    &CPU_TOPOLOGY,
    &MODULE,
    &MOUNT,
    &CGROUP,
];

const fn text(name: &'static str) -> Field<'static> {
    Field::new(name, FieldType::String)
}

/// An event that comes as a line from user space.
const fn of_user(name: &'static str, fields: &'static [Field<'static>]) -> StateDeclaration {
    StateDeclaration {
        name,
        fields,
        by_kernel: false,
    }
}

/// Begins the events of the state.
pub(super) static START: StateDeclaration = of_user("lttng_statedump_start", &[]);
/// Ends the events of the state.
pub(super) static END: StateDeclaration = of_user("lttng_statedump_end", &[]);

/// An event that the kernel records.
const fn by_kernel(name: &'static str, fields: &'static [Field<'static>]) -> StateDeclaration {
    StateDeclaration {
        name,
        fields,
        by_kernel: true,
    }
}

record! {
    /// A thread. All ids are those of the initial namespace.
    ProcessState {
        tid: i32,
        pid: i32,
        ppid: i32,
        name: [u8; 16],
        kind as "type": i32,
        mode: i32,
        submode: i32,
        status: i32,
        cpu: u32,
        file_table_address: Hex,
    }
}

record! {
    /// The namespace of one kind to which a thread belongs.
    InNamespace {
        tid: i32,
        ns_inum: u32,
    }
}

record! {
    /// The ids of a thread in a PID namespace.
    InPidNamespace {
        tid: i32,
        vtid: i32,
        vpid: i32,
        vppid: i32,
        ns_level: i32,
        ns_inum: u32,
    }
}

record! {
    /// The ids of a thread in a user namespace.
    InUserNamespace {
        tid: i32,
        vuid: u32,
        vgid: u32,
        ns_level: i32,
        ns_inum: u32,
    }
}

record! {
    /// An open file of a file table, to which the records of threads refer. LTTng named the process up to
    /// version 2.9, and names the table since then; lttng-analyses looks for the process.
    FileDescriptor {
        pid: i32,
        file_table_address: Hex,
        fd: i32,
        flags: Hex32,
        fmode: Hex32,
    }
    string filename
}

/// A thread.
pub(super) static PROCESS_STATE: StateDeclaration =
    by_kernel("lttng_statedump_process_state", ProcessState::FIELDS);
/// The thread's namespaces.
pub(super) static CGROUP_NS: StateDeclaration =
    by_kernel("lttng_statedump_process_cgroup_ns", InNamespace::FIELDS);
pub(super) static IPC_NS: StateDeclaration =
    by_kernel("lttng_statedump_process_ipc_ns", InNamespace::FIELDS);
pub(super) static MNT_NS: StateDeclaration =
    by_kernel("lttng_statedump_process_mnt_ns", InNamespace::FIELDS);
pub(super) static NET_NS: StateDeclaration =
    by_kernel("lttng_statedump_process_net_ns", InNamespace::FIELDS);
pub(super) static PID_NS: StateDeclaration =
    by_kernel("lttng_statedump_process_pid_ns", InPidNamespace::FIELDS);
pub(super) static TIME_NS: StateDeclaration =
    by_kernel("lttng_statedump_process_time_ns", InNamespace::FIELDS);
pub(super) static USER_NS: StateDeclaration =
    by_kernel("lttng_statedump_process_user_ns", InUserNamespace::FIELDS);
pub(super) static UTS_NS: StateDeclaration =
    by_kernel("lttng_statedump_process_uts_ns", InNamespace::FIELDS);
/// An open file.
pub(super) static FILE_DESCRIPTOR: StateDeclaration =
    by_kernel("lttng_statedump_file_descriptor", FileDescriptor::FIELDS);

/// An interrupt and its handler.
static INTERRUPT: StateDeclaration = of_user(
    "lttng_statedump_interrupt",
    &[
        Field::new("irq", FieldType::unsigned(32)),
        text("name"),
        text("action"),
        Field::new("tid", FieldType::signed(32)),
    ],
);

/// A network interface, with one of its addresses.
static NETWORK_INTERFACE: StateDeclaration = of_user(
    "lttng_statedump_network_interface",
    &[text("name"), Field::new("address_ipv4", FieldType::hex(32))],
);

/// A disk, or a partition.
static BLOCK_DEVICE: StateDeclaration = of_user(
    "lttng_statedump_block_device",
    &[Field::new("dev", FieldType::unsigned(32)), text("diskname")],
);

/// A CPU.
static CPU_TOPOLOGY: StateDeclaration = of_user(
    "lttng_statedump_cpu_topology",
    &[
        text("architecture"),
        Field::new("cpu_id", FieldType::unsigned(16)),
        text("vendor"),
        Field::new("family", FieldType::unsigned(8)),
        Field::new("model", FieldType::unsigned(8)),
        text("model_name"),
        Field::new("physical_id", FieldType::unsigned(16)),
        Field::new("core_id", FieldType::unsigned(16)),
        Field::new("cores", FieldType::unsigned(16)),
    ],
);

/// A module that is loaded.
static MODULE: StateDeclaration = of_user(
    "rtrace_statedump_module",
    &[
        Field::new("address", FieldType::address()),
        Field::new("size", FieldType::unsigned(64)),
        text("name"),
    ],
);

/// A mount in a mount namespace.
static MOUNT: StateDeclaration = of_user(
    "rtrace_statedump_mount",
    &[
        Field::new("ns_inum", FieldType::unsigned(32)),
        Field::new("mnt_id", FieldType::signed(32)),
        Field::new("parent_id", FieldType::signed(32)),
        Field::new("dev", FieldType::unsigned(32)),
        text("fstype"),
        text("source"),
        text("mountpoint"),
    ],
);

/// A cgroup (v2).
static CGROUP: StateDeclaration = of_user(
    "rtrace_statedump_cgroup",
    &[
        Field::new("cgroup_id", FieldType::unsigned(64)),
        text("path"),
    ],
);
