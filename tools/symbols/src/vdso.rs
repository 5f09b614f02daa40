// SPDX-License-Identifier: GPL-2.0

//! The vDSO: functions that the kernel maps into each program, such as `clock_gettime`. It is an image of an ELF file
//! without a file, and the same in all programs until the next boot.

use super::elf::{self, Function};
use super::mappings::MappedFile;
use super::running;
use rustix::fs::{memfd_create, MemfdFlags};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use system::code::VDSO;

/// The largest image that is read.
const MOST: u64 = 1 << 20;

/// The functions of the vDSO of the running kernel, for programs with 64 bits.
pub fn functions(file: &MappedFile) -> Vec<Function> {
    let image = image().ok().flatten();
    let program = image.and_then(|image| elf::program(image, file, None));
    program.unwrap_or_default().functions
}

/// Whether the vDSO at an address may be the one for programs with 64 bits.
pub fn is_wide(address: u64) -> bool {
    address > u32::MAX.into()
}

/// A copy of the image that this program has mapped.
fn image() -> io::Result<Option<File>> {
    let Some((begin, end)) = running::own(VDSO)? else {
        return Ok(None);
    };
    let size = end.saturating_sub(begin);
    if !is_wide(begin) || size > MOST {
        return Ok(None);
    }
    let mut bytes = vec![0; size as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, begin)?;
    let mut copy = File::from(memfd_create("vdso", MemfdFlags::CLOEXEC)?);
    copy.write_all(&bytes)?;
    Ok(Some(copy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_in_the_vdso() {
        let file = MappedFile {
            path: VDSO.to_owned(),
            id: None,
        };
        let functions = functions(&file);
        if functions.is_empty() {
            // The machine that runs the test may have none.
            assert!(running::own(VDSO).unwrap().is_none());
            return;
        }
        let clock = functions.iter().find(|f| f.name.ends_with("clock_gettime"));
        assert!(clock.unwrap().size > 0, "{functions:?}");
    }
}
