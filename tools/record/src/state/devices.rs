// SPDX-License-Identifier: GPL-2.0

//! Network interfaces, block devices, and modules.

use super::lines::Line;
use nix::ifaddrs::getifaddrs;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

/// Names of the events.
pub const INTERFACE: &str = "lttng_statedump_network_interface";
pub const BLOCK: &str = "lttng_statedump_block_device";
pub const MODULE: &str = "rtrace_statedump_module";

/// One line for each IPv4 address of each interface, and one for an interface without an address.
pub fn interfaces(_: &Path, sys: &Path) -> io::Result<Vec<Line>> {
    let mut addresses = Vec::new();
    for interface in getifaddrs().map_err(io::Error::from)? {
        let address = interface.address.as_ref();
        if let Some(address) = address.and_then(|address| address.as_sockaddr_in()) {
            addresses.push((interface.interface_name, address.ip()));
        }
    }
    let mut lines = Vec::new();
    for name in names(&sys.join("class/net"))? {
        let line = |address: Ipv4Addr| {
            Line::new(INTERFACE)
                .text("name", &name)
                .number("address_ipv4", u32::from(address))
        };
        let mut own = addresses.iter().filter(|(of, _)| *of == name).peekable();
        if own.peek().is_none() {
            lines.push(line(Ipv4Addr::UNSPECIFIED));
        }
        lines.extend(own.map(|(_, address)| line(*address)));
    }
    Ok(lines)
}

/// One line for each disk and each partition, except empty ones.
pub fn block(_: &Path, sys: &Path) -> io::Result<Vec<Line>> {
    let dir = sys.join("class/block");
    let mut lines = Vec::new();
    for name in names(&dir)? {
        let file = |file| fs::read_to_string(dir.join(&name).join(file));
        // The device may be gone meanwhile.
        let (Ok(number), Ok(sectors)) = (file("dev"), file("size")) else {
            continue;
        };
        let Some(number) = device(number.trim_end()).filter(|_| sectors.trim_end() != "0") else {
            continue;
        };
        lines.push(
            Line::new(BLOCK)
                .number("dev", number)
                .text("diskname", &name),
        );
    }
    Ok(lines)
}

/// One line for each module. The address of a module is 0 if the user may not see it.
pub fn modules(proc: &Path, _: &Path) -> io::Result<Vec<Line>> {
    let text = fs::read_to_string(proc.join("modules"))?;
    let line = |line: &str| {
        let mut words = line.split(' ');
        let (name, size) = (words.next()?, words.next()?);
        let address = words.nth(3)?;
        let line = Line::new(MODULE).number("address", address);
        Some(line.number("size", size).text("name", name))
    };
    Ok(text.lines().filter_map(line).collect())
}

/// The kernel's number of a device, from `MAJOR:MINOR`.
pub fn device(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse::<u32>().ok()? << 20) | minor.parse::<u32>().ok()?)
}

/// The sorted names of a directory's entries.
fn names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_and_modules() {
        let dir = tempfile::tempdir().unwrap();
        let disk = |name: &str, dev: &str, size: &str| {
            let disk = dir.path().join("class/block").join(name);
            fs::create_dir_all(&disk).unwrap();
            fs::write(disk.join("dev"), format!("{dev}\n")).unwrap();
            fs::write(disk.join("size"), format!("{size}\n")).unwrap();
        };
        disk("vda1", "254:1", "2048");
        disk("vda", "254:0", "4096");
        disk("loop0", "7:0", "0");
        let found = block(dir.path(), dir.path()).unwrap();
        let found: Vec<_> = found.iter().map(Line::as_str).collect();
        assert_eq!(
            found,
            [
                r#"lttng_statedump_block_device dev=266338304 diskname="vda""#,
                r#"lttng_statedump_block_device dev=266338305 diskname="vda1""#,
            ]
        );
        fs::write(
            dir.path().join("modules"),
            "rtrace 401408 2 - Live 0xffffffffc0a00000 (OE)\n\
             virtio_net 94208 0 - Live 0x0000000000000000\n",
        )
        .unwrap();
        let found = modules(dir.path(), dir.path()).unwrap();
        let found: Vec<_> = found.iter().map(Line::as_str).collect();
        assert_eq!(
            found,
            [
                r#"rtrace_statedump_module address=0xffffffffc0a00000 size=401408 name="rtrace""#,
                r#"rtrace_statedump_module address=0x0000000000000000 size=94208 name="virtio_net""#,
            ]
        );
    }
}
