// SPDX-License-Identifier: GPL-2.0

//! The `.symbols` file of a trace: names of functions that were saved with it. A function is found only inside
//! its range.

use symbols::Saved;
use uuid::Uuid;

pub fn check(data: &[u8]) {
    let Ok(Some(saved)) = Saved::parse(data, Uuid::from_bytes(synthetic::UUID)) else {
        return;
    };
    for address in [0, 0x10, 0xffff_ffff_8100_0000, u64::MAX] {
        if let Some(symbol) = saved.kernel.find(address) {
            assert!(symbol.address <= address);
            assert!(!symbol.name.contains(char::is_control));
        }
    }
    for (_, functions) in &saved.files {
        assert!(functions.is_sorted());
        let is_plain = |name: &str| !name.contains(char::is_control);
        assert!(functions.iter().all(|function| is_plain(&function.name)));
    }
}
