// SPDX-License-Identifier: GPL-2.0

//! Advice about lost events.

use consumer::stats::{Counters, TraceStats};
use control::{BufferSize, Mode, Session, FIRST_CHANNEL};
use system::Result;

/// One line for each reason for which a session lost events. If the session has several channels, the line names the
/// channel.
pub fn on_loss(session: &Session, stats: &TraceStats) -> Result<Vec<String>> {
    let channels = session.channels()?;
    let mut lines = Vec::new();
    for counted in &stats.channels {
        let name = &counted.channel;
        let Some(channel) = channels.iter().find(|channel| channel.name() == name) else {
            continue;
        };
        let settings = channel.settings()?;
        let overwrite = settings.mode == Mode::Overwrite;
        let option = match name.as_str() {
            FIRST_CHANNEL => "-b ".to_owned(),
            name => format!("--channel {name}:"),
        };
        let takes_rings = channel.text("source")? == "rings";
        let total = &counted.stats.total;
        let said = lines_of(total, settings.size, overwrite, &option, takes_rings);
        lines.extend(said.into_iter().map(|line| match channels.len() {
            1 => line,
            _ => format!("channel {name}: {line}"),
        }));
    }
    let areas = session.aux_losses()?;
    if areas.any() {
        lines.push(format!("{areas}; a larger --aux-size helps"));
    }
    Ok(lines)
}

/// Advice for these counters. `option` is the option that sets the size of the buffers. `takes_rings`: the channel takes
/// records from rings of programs.
fn lines_of(
    total: &Counters,
    size: BufferSize,
    overwrite: bool,
    option: &str,
    takes_rings: bool,
) -> Vec<String> {
    let larger = size.doubled();
    let mut lines = Vec::new();
    if total.overwritten > 0 && overwrite {
        lines.push(format!(
            "{} events were overwritten by newer ones, as --overwrite asks; \
             `{option}{larger}` keeps about twice as many",
            total.overwritten
        ));
    } else if total.overwritten > 0 {
        lines.push(format!(
            "{} events were overwritten before they were read; a larger buffer helps: {option}{larger}",
            total.overwritten
        ));
    }
    if total.full > 0 && takes_rings {
        lines.push(format!(
            "{} events were discarded because a program's ring or a buffer was full; larger rings (the module's parameter \
             program_ring_size), a call for each event (--source probes), or a larger buffer helps: {option}{larger}",
            total.full
        ));
    } else if total.full > 0 {
        lines.push(format!(
            "{} events were discarded because a buffer was full; record fewer events \
             (-e, -x), or use a larger buffer: {option}{larger}",
            total.full
        ));
    }
    if total.wrapped > 0 {
        lines.push(format!(
            "{} events were discarded because interrupts filled a buffer; \
             more sub-buffers help: {option}{}",
            total.wrapped,
            BufferSize {
                subbuf_count: size.subbuf_count * 2,
                ..size
            }
        ));
    }
    if total.too_large > 0 {
        lines.push(format!(
            "{} events were larger than a sub-buffer; larger sub-buffers help: {option}{}",
            total.too_large,
            BufferSize {
                subbuf_size: size.subbuf_size * 2,
                ..size
            }
        ));
    }
    if total.nested > 0 {
        lines.push(format!(
            "{} events were discarded because they fired while rtrace recorded another event in the same context",
            total.nested
        ));
    }
    if total.no_buffer > 0 {
        lines.push(format!(
            "{} events were discarded on CPUs without memory for a buffer; smaller buffers help",
            total.no_buffer
        ));
    }
    if total.busy > 0 {
        lines.push(format!(
            "{} events of isolated CPUs were discarded during a flush or a snapshot; fewer of these help",
            total.busy
        ));
    }
    if total.missed > 0 {
        lines.push(format!(
            "{} events were missed because too many calls had not returned, or another probe ran on the CPU; \
             fewer functions help (a graph: --graph-depth, -N)",
            total.missed
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_line() {
        let total = Counters {
            overwritten: 1,
            full: 2,
            wrapped: 3,
            too_large: 4,
            nested: 5,
            no_buffer: 6,
            busy: 7,
            missed: 8,
            ..Counters::default()
        };
        for takes_rings in [false, true] {
            let size = "64Kx4".parse().unwrap();
            let lines = lines_of(&total, size, false, "-b ", takes_rings);
            assert_eq!(lines.len(), 8);
            assert!(lines[1].contains("-b 128Kx4"), "{}", lines[1]);
            assert_eq!(lines[1].contains("program_ring_size"), takes_rings);
            let nothing = Counters::default();
            assert!(lines_of(&nothing, size, true, "-b ", takes_rings).is_empty());
        }
    }
}
