// SPDX-License-Identifier: GPL-2.0

//! A stream file: the first byte selects the event headers, the rest is the file.

use crate::walk;
use ctf::Metadata;
use rtrace_abi::header::Layout;
use std::sync::LazyLock;
use synthetic::UUID;

static LARGE: LazyLock<Metadata> = LazyLock::new(|| parsed(Layout::Large));
static COMPACT: LazyLock<Metadata> = LazyLock::new(|| parsed(Layout::Compact));

fn parsed(layout: Layout) -> Metadata {
    Metadata::parse(&synthetic::metadata(UUID, layout)).expect("a sound description")
}

/// The description of a synthetic trace.
pub(super) fn metadata(layout: Layout) -> &'static Metadata {
    match layout {
        Layout::Large => &LARGE,
        Layout::Compact => &COMPACT,
    }
}

/// The layout that a byte selects.
pub(super) fn layout(byte: u8) -> Layout {
    if byte & 1 == 0 {
        Layout::Compact
    } else {
        Layout::Large
    }
}

pub fn check(data: &[u8]) {
    if let Some((&first, file)) = data.split_first() {
        let _ = walk::stream(metadata(layout(first)), file);
    }
}
