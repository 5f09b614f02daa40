// SPDX-License-Identifier: GPL-2.0

//! Lists of CPUs.

use rtrace_input::cpulist::{CpuList, CpuListReason, Error};

fn cpus(list: &str) -> Result<Vec<u32>, Error> {
    let mut all = Vec::new();
    for item in CpuList::new(list, 16) {
        all.extend(item?.cpus());
    }
    Ok(all)
}

/// Cases for which the kernel's `cpulist_parse()` gives the same results.
#[test]
fn lists_are_those_of_the_kernel() {
    for (list, expected) in [
        ("", &[][..]),
        (" ,\n", &[]),
        ("3", &[3]),
        ("0-3,5", &[0, 1, 2, 3, 5]),
        (" 1 , 2\t3\n", &[1, 2, 3]),
        ("5,1-1,,5", &[5, 1, 5]),
        ("N", &[15]),
        ("14-N", &[14, 15]),
        ("0-6:1/2", &[0, 2, 4, 6]),
        ("1-10:2/4", &[1, 2, 5, 6, 9, 10]),
        ("0-3:0/2", &[]),
        ("All:1/8", &[0, 8]),
        ("12-N:N/N", &[12, 13, 14, 15]),
    ] {
        assert_eq!(cpus(list).as_deref(), Ok(expected), "{list}");
    }
    assert_eq!(cpus("all").map(|all| all.len()), Ok(16));
}

#[test]
fn what_is_no_list_is_refused() {
    for (list, at, reason) in [
        ("x", 0, CpuListReason::NoList),
        ("1,2,x", 4, CpuListReason::NoList),
        ("1-", 2, CpuListReason::NoList),
        ("1-x", 2, CpuListReason::NoList),
        ("-1", 0, CpuListReason::NoList),
        ("1:1/1", 1, CpuListReason::NoList),
        ("3-1", 0, CpuListReason::NoList),
        ("0-3:2", 5, CpuListReason::NoList),
        ("0-3:/2", 4, CpuListReason::NoList),
        ("0-3:2/0", 0, CpuListReason::NoList),
        ("0-3:3/2", 0, CpuListReason::NoList),
        ("1;2", 1, CpuListReason::NoList),
        ("0x1", 1, CpuListReason::NoList),
        ("allx", 3, CpuListReason::NoList),
        ("16", 0, CpuListReason::NoCpu),
        ("0,3-16", 2, CpuListReason::NoCpu),
        ("4294967296", 0, CpuListReason::NoCpu),
        ("0-99999999999999999999", 2, CpuListReason::NoCpu),
    ] {
        assert_eq!(cpus(list), Err(Error { at, reason }), "{list}");
    }
}

#[test]
fn a_list_ends_at_an_error() {
    let mut list = CpuList::new("1,x,2", 16);
    assert!(matches!(list.next(), Some(Ok(_))));
    assert!(matches!(list.next(), Some(Err(_))));
    assert!(list.next().is_none());
}
