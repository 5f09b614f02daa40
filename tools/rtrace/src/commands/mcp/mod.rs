// SPDX-License-Identifier: GPL-2.0

//! `rtrace mcp`: serves tools over standard input and output, in the Model Context Protocol.
//!
//! - [`lines`]: requests, a line each, from standard input.
//! - [`protocol`]: the answers to requests.
//! - [`tools`]: the tools, their arguments, and the command line of each call.
//! - [`place`]: the directory that the tools cannot leave.
//! - [`call`]: a call. A child process of the same program answers it, so a call can be ended, has limits, and its memory
//!   is free afterwards.
//!
//! The main thread reads requests. Another thread answers calls, one after the other.

mod call;
mod lines;
mod place;
mod protocol;
mod tools;

use crate::args::McpArgs;
use anyhow::Context;
use call::{Limits, Running};
use lines::{Line, Lines};
use place::Root;
use protocol::{Reply, Server};
use record::exit::{Code, DONE};
use record::place::Place;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TrySendError};
use std::thread;
use system::signals::Signals;
use terminal::harmless_json;

/// Number of calls that may wait for another one.
const WAITING: usize = 16;

/// A call of a tool.
struct Request {
    id: Value,
    params: Value,
}

/// Serves until standard input ends, or until a signal arrives. Returns the exit code.
pub fn serve(place: &Place, is_utc: bool, args: &McpArgs) -> anyhow::Result<Code> {
    let root = Root::open(&args.dir).with_context(|| args.dir.display().to_string())?;
    let limits = Limits {
        time: args.most_time,
        bytes: args.most_bytes,
        may_record: args.allow_record,
        may_run: args.allow_commands,
    };
    let mut options: Vec<OsString> = vec!["--color=never".into(), "--debugfs".into()];
    // The calls have another current directory.
    options.push(std::path::absolute(&place.debugfs)?.into());
    if let Some(session) = &place.session {
        options.extend(["--session".into(), session.into()]);
    }
    options.extend(is_utc.then(|| "--utc".into()));
    let server = &Server::new(options, root, limits);
    let running = &Running::default();
    let mut signals = Signals::catch()?;
    thread::scope(|scope| {
        let (to, requests) = sync_channel(WAITING);
        let worker = scope.spawn(move || work(server, running, &requests));
        let outcome = read(server, running, &mut signals, to);
        if !matches!(outcome, Ok(DONE)) {
            running.end();
        }
        // After the end of the input, a signal still ends the calls.
        while !worker.is_finished() {
            let mut fds = [PollFd::new(&signals, PollFlags::IN)];
            let pause = Timespec {
                tv_sec: 0,
                tv_nsec: 20_000_000,
            };
            let _ = poll(&mut fds, Some(&pause));
            if let Some(signal) = signals.pending().first() {
                running.end();
                return Ok(code(*signal));
            }
        }
        outcome
    })
}

/// The exit code of a program that a signal ends.
fn code(signal: i32) -> Code {
    u8::try_from(128 + signal).unwrap_or(record::exit::FAILED)
}

/// Reads requests until the input ends. Returns the exit code.
fn read(
    server: &Server,
    running: &Running,
    signals: &mut Signals,
    to: SyncSender<Request>,
) -> anyhow::Result<Code> {
    let stdin = io::stdin();
    let mut lines = Lines::default();
    loop {
        let mut fds = [
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(&*signals, PollFlags::IN),
        ];
        rustix::io::retry_on_intr(|| poll(&mut fds, None)).context("cannot wait for requests")?;
        let is_readable = !fds[0].revents().is_empty();
        if let Some(signal) = signals.pending().first() {
            return Ok(code(*signal));
        }
        if !is_readable {
            continue;
        }
        let mut bytes = [0; 1 << 16];
        let count = rustix::io::retry_on_intr(|| rustix::io::read(&stdin, &mut bytes));
        let count = count.context("cannot read standard input")?;
        for line in lines.add(&bytes[..count]) {
            let reply = match line {
                Line::Whole(line) => server.reply(&line),
                Line::TooLong => Reply::Now(protocol::too_long()),
            };
            let is_open = match reply {
                Reply::None => true,
                Reply::Now(message) => write(&message)?,
                Reply::Cancel(id) => {
                    running.cancel(&id);
                    true
                }
                Reply::Call(id, params) => match to.try_send(Request { id, params }) {
                    Ok(()) => true,
                    Err(TrySendError::Full(request)) => write(&protocol::busy(&request.id))?,
                    Err(TrySendError::Disconnected(_)) => false,
                },
            };
            if !is_open {
                return Ok(DONE);
            }
        }
        if count == 0 {
            return Ok(DONE);
        }
    }
}

/// Answers calls until there are no more, or nobody reads the answers.
fn work(server: &Server, running: &Running, requests: &Receiver<Request>) -> anyhow::Result<()> {
    for Request { id, params } in requests {
        if running.has_ended() {
            return Ok(());
        }
        running.begin(id.clone());
        let result = server.call(running, &params);
        // A cancelled call has no answer.
        if !running.was_cancelled() && !write(&protocol::result(&id, result))? {
            return Ok(());
        }
    }
    Ok(())
}

/// Writes a message as a line. Returns whether there is still a reader.
fn write(message: &Value) -> anyhow::Result<bool> {
    let mut out = io::stdout().lock();
    let line = harmless_json(format!("{message}\n"));
    match out.write_all(line.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("cannot write standard output"),
    }
}
