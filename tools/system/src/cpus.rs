// SPDX-License-Identifier: GPL-2.0

//! CPUs of this machine.

use rtrace_input::cpulist::CpuList;
use std::collections::BTreeSet;
use std::fs;
use std::io;

/// The CPUs that are online now, as a list.
pub const ONLINE: &str = "/sys/devices/system/cpu/online";

/// The CPUs that can ever be online.
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// The CPUs in these lists that are offline now. The kernel has accepted the lists.
pub fn offline<'a>(lists: impl Iterator<Item = &'a str>) -> io::Result<BTreeSet<u32>> {
    let mut lists = lists.peekable();
    if lists.peek().is_none() {
        return Ok(BTreeSet::new());
    }
    let online = parse(&fs::read_to_string(ONLINE)?, u32::MAX);
    let possible = parse(&fs::read_to_string(POSSIBLE)?, u32::MAX);
    let count = possible.last().map_or(0, |last| last + 1);
    let chosen: BTreeSet<_> = lists.flat_map(|list| parse(list, count)).collect();
    Ok(chosen.difference(&online).copied().collect())
}

/// The CPUs of a list, on a machine with CPUs 0 to `count` - 1. A wrong list has no CPU.
pub fn parse(list: &str, count: u32) -> BTreeSet<u32> {
    let items: Result<Vec<_>, _> = CpuList::new(list, count).collect();
    let items = items.into_iter().flatten();
    items.flat_map(|item| item.cpus()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed() {
        assert_eq!(parse("0-2,5\n", u32::MAX), BTreeSet::from([0, 1, 2, 5]));
        assert_eq!(parse("1-N", 4), BTreeSet::from([1, 2, 3]));
        assert_eq!(parse("7", 4), BTreeSet::new());
        assert_eq!(parse("", 4), BTreeSet::new());
    }
}
