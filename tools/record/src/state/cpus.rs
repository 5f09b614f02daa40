// SPDX-License-Identifier: GPL-2.0

//! The CPUs that are online.

use super::lines::Line;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

/// Name of the event.
pub const EVENT: &str = "lttng_statedump_cpu_topology";

/// One line for each CPU, from /proc/cpuinfo. A missing number is 0, as on a machine with one CPU. The kernel for arm64
/// has other names there: the implementer is the vendor, and the part is the model.
pub fn find(proc: &Path, _: &Path) -> io::Result<Vec<Line>> {
    let text = fs::read_to_string(proc.join("cpuinfo"))?;
    let cpus = text.split("\n\n").filter_map(|cpu| {
        let values: HashMap<_, _> = cpu
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim_end(), value.trim()))
            .collect();
        let either = |name, on_arm64| values.get(name).or_else(|| values.get(on_arm64)).copied();
        let text = |name, on_arm64| either(name, on_arm64).unwrap_or("unknown");
        let number = |name, on_arm64| either(name, on_arm64).unwrap_or("0");
        let is_arm64 = values.contains_key("CPU implementer");
        let line = Line::new(EVENT)
            .text("architecture", if is_arm64 { "arm64" } else { "x86" })
            .number("cpu_id", values.get("processor")?)
            .text("vendor", text("vendor_id", "CPU implementer"))
            .number("family", number("cpu family", "CPU architecture"))
            .number("model", number("model", "CPU part"))
            .text("model_name", text("model name", ""))
            .number("physical_id", number("physical id", ""))
            .number("core_id", number("core id", ""))
            .number("cores", number("cpu cores", ""));
        Some(line)
    });
    Ok(cpus.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_says() {
        let dir = tempfile::tempdir().unwrap();
        let text = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n\
                    model name\t: A CPU: fast\nphysical id\t: 1\ncore id\t\t: 3\ncpu cores\t: 8\n\
                    power management:\n\nprocessor\t: 5\nvendor_id\t: AuthenticAMD\n\n\
                    processor\t: 6\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n\n";
        fs::write(dir.path().join("cpuinfo"), text).unwrap();
        let found = find(dir.path(), dir.path()).unwrap();
        let found: Vec<_> = found.iter().map(Line::as_str).collect();
        assert_eq!(
            found,
            [
                "lttng_statedump_cpu_topology architecture=\"x86\" cpu_id=0 vendor=\"GenuineIntel\" family=6 \
                 model=85 model_name=\"A CPU: fast\" physical_id=1 core_id=3 cores=8",
                "lttng_statedump_cpu_topology architecture=\"x86\" cpu_id=5 vendor=\"AuthenticAMD\" family=0 \
                 model=0 model_name=\"unknown\" physical_id=0 core_id=0 cores=0",
                "lttng_statedump_cpu_topology architecture=\"arm64\" cpu_id=6 vendor=\"0x41\" family=8 \
                 model=0xd0c model_name=\"unknown\" physical_id=0 core_id=0 cores=0",
            ]
        );
    }
}
