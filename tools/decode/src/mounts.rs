// SPDX-License-Identifier: GPL-2.0

//! The flags of the calls that make mounts step by step, as in `include/uapi/linux/mount.h`.

use super::meaning::Meaning;
use nix::libc;

/// Flags of fsopen(2).
pub const FSOPEN: Meaning = Meaning::Flags(&[("FSOPEN_CLOEXEC", 0x1)]);
/// Flags of fsmount(2).
pub const FSMOUNT: Meaning = Meaning::Flags(&[("FSMOUNT_CLOEXEC", 0x1)]);
/// Attributes of a mount. The kind of access times is a value.
pub const ATTRIBUTES: Meaning = Meaning::Mixed {
    mask: 0x70,
    values: &[
        ("MOUNT_ATTR_RELATIME", 0x0),
        ("MOUNT_ATTR_NOATIME", 0x10),
        ("MOUNT_ATTR_STRICTATIME", 0x20),
    ],
    flags: &[
        ("MOUNT_ATTR_RDONLY", 0x1),
        ("MOUNT_ATTR_NOSUID", 0x2),
        ("MOUNT_ATTR_NODEV", 0x4),
        ("MOUNT_ATTR_NOEXEC", 0x8),
        ("MOUNT_ATTR_NODIRATIME", 0x80),
        ("MOUNT_ATTR_IDMAP", 0x0010_0000),
        ("MOUNT_ATTR_NOSYMFOLLOW", 0x0020_0000),
    ],
};
/// Flags of fspick(2).
pub const FSPICK: Meaning = Meaning::Flags(&[
    ("FSPICK_CLOEXEC", 0x1),
    ("FSPICK_SYMLINK_NOFOLLOW", 0x2),
    ("FSPICK_NO_AUTOMOUNT", 0x4),
    ("FSPICK_EMPTY_PATH", 0x8),
]);
/// Commands of fsconfig(2).
pub const FSCONFIG: Meaning = Meaning::Value(&[
    ("FSCONFIG_SET_FLAG", 0),
    ("FSCONFIG_SET_STRING", 1),
    ("FSCONFIG_SET_BINARY", 2),
    ("FSCONFIG_SET_PATH", 3),
    ("FSCONFIG_SET_PATH_EMPTY", 4),
    ("FSCONFIG_SET_FD", 5),
    ("FSCONFIG_CMD_CREATE", 6),
    ("FSCONFIG_CMD_RECONFIGURE", 7),
    ("FSCONFIG_CMD_CREATE_EXCL", 8),
]);
/// Flags of open_tree(2). Some are those of all calls with a path.
pub const OPEN_TREE: Meaning = Meaning::Flags(&[
    ("OPEN_TREE_CLONE", 0x1),
    ("OPEN_TREE_CLOEXEC", libc::O_CLOEXEC as u64),
    ("AT_SYMLINK_NOFOLLOW", libc::AT_SYMLINK_NOFOLLOW as u64),
    ("AT_NO_AUTOMOUNT", libc::AT_NO_AUTOMOUNT as u64),
    ("AT_EMPTY_PATH", libc::AT_EMPTY_PATH as u64),
    ("AT_RECURSIVE", libc::AT_RECURSIVE as u64),
]);
/// Flags of move_mount(2).
pub const MOVE_MOUNT: Meaning = Meaning::Flags(&[
    ("MOVE_MOUNT_F_SYMLINKS", 0x1),
    ("MOVE_MOUNT_F_AUTOMOUNTS", 0x2),
    ("MOVE_MOUNT_F_EMPTY_PATH", 0x4),
    ("MOVE_MOUNT_T_SYMLINKS", 0x10),
    ("MOVE_MOUNT_T_AUTOMOUNTS", 0x20),
    ("MOVE_MOUNT_T_EMPTY_PATH", 0x40),
    ("MOVE_MOUNT_SET_GROUP", 0x100),
    ("MOVE_MOUNT_BENEATH", 0x200),
]);
