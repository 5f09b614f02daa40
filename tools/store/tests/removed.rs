// SPDX-License-Identifier: GPL-2.0

//! A trace that is removed, renamed or unlinked while it is written.

use consumer::{End, State, Written};
use rustix::pipe::{pipe_with, PipeFlags};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;
use store::{Every, OutputOptions, Rotate};
use synthetic::fake::{open_as, packet, Channel};
use system::Error;
use tempfile::TempDir;

/// Writes a packet of each of two CPUs to DIR/trace, calls `change` with DIR while the trace is still recorded, and
/// returns the error, and what is left and removed then.
fn changed(options: OutputOptions, change: impl FnOnce(&Path)) -> (Error, Written, Written) {
    let (dir, channel) = (TempDir::new().unwrap(), Channel::new(2));
    let (stop, _keep) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    for cpu in 0..2 {
        channel.with(cpu, |mut buffer| buffer.push(packet(cpu, 0, 8000)));
    }
    let path = dir.path().join("trace");
    let mut consumer = open_as(&channel, &path, options).unwrap();
    let (result, consumer) = thread::scope(|scope| {
        let running = scope.spawn(move || (consumer.run(&stop), consumer));
        while [0, 1].map(|cpu| channel.with(cpu, |buffer| buffer.put.len())) != [1, 1] {
            thread::sleep(Duration::from_millis(1));
        }
        change(dir.path());
        running.join().unwrap()
    });
    let (written, removed) = (consumer.written(), consumer.removed());
    let ended = consumer.into_sink().end(State::Failed, 0, "");
    assert!(matches!(ended, Err(Error::Removed { .. })), "{ended:?}");
    (result.unwrap_err(), written, removed)
}

#[test]
fn a_removed_directory_is_noticed_while_the_trace_continues() {
    let rotate = Rotate {
        every: Every::Size(1 << 20),
        keep: None,
    };
    let chunks = OutputOptions {
        rotate: Some(rotate),
        ..OutputOptions::default()
    };
    for options in [OutputOptions::default(), chunks] {
        let (error, written, removed) = changed(options, |dir| {
            fs::remove_dir_all(dir.join("trace")).unwrap();
        });
        let said = error.to_string();
        assert!(
            said.contains("was removed, or its file system unmounted,"),
            "{said}"
        );
        assert_eq!((written, removed.packets), (Written::default(), 2));
    }
}

#[test]
fn a_renamed_directory_is_named() {
    let (error, written, removed) = changed(OutputOptions::default(), |dir| {
        fs::rename(dir.join("trace"), dir.join("moved")).unwrap();
    });
    let said = error.to_string();
    assert!(
        said.contains("trace: the directory was renamed to /") && said.contains("/moved while"),
        "{said}"
    );
    assert_eq!((written.packets, removed), (2, Written::default()));
}

#[test]
fn only_the_events_of_a_removed_file_are_lost() {
    let (error, written, removed) = changed(OutputOptions::default(), |dir| {
        fs::remove_file(dir.join("trace/channel0_cpu1")).unwrap();
    });
    let said = error.to_string();
    assert!(
        said.contains("trace/channel0_cpu1: the file was removed while"),
        "{said}"
    );
    assert_eq!((written.packets, removed.packets), (1, 1));
}

#[test]
fn an_end_in_time_needs_no_second_look() {
    let (dir, channel) = (TempDir::new().unwrap(), Channel::new(1));
    let (stop, _keep) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    channel.with(0, |mut buffer| buffer.push(packet(0, 0, 8000)));
    channel.end();
    let mut consumer = open_as(&channel, dir.path(), OutputOptions::default()).unwrap();
    assert_eq!(consumer.run(&stop).unwrap(), End::Over);
    assert_eq!(consumer.removed(), Written::default());
}
