// SPDX-License-Identifier: GPL-2.0

//! A table on a terminal, until a key or a signal ends it.

use super::page::Page;
use super::seconds::Receiver;
use crate::args::TopArgs;
use anyhow::Context;
use record::run::live::Recording;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::termios::{tcgetattr, tcgetwinsize, tcsetattr, LocalModes, OptionalActions, Termios};
use std::io::{self, stdin, stdout, Write};

/// Control sequences: switch to the terminal's other page and hide the cursor; and undo both.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// The terminal in use. Dropping it restores the terminal's modes.
pub struct Screen {
    before: Termios,
    page: Page,
}

impl Screen {
    /// Takes over the terminal.
    pub fn open(args: &TopArgs) -> anyhow::Result<Self> {
        let before = tcgetattr(stdin()).context("cannot set up the terminal")?;
        let mut modes = before.clone();
        // Read single keys without echo. Ctrl-C remains a signal.
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        tcsetattr(stdin(), OptionalActions::Now, &modes).context("cannot set up the terminal")?;
        let screen = Self {
            before,
            page: Page::new(args.sort, args.count),
        };
        put(ENTER)?;
        Ok(screen)
    }

    /// Shows tables until their number is reached, or a key or a signal ends it.
    pub fn run(mut self, recording: Recording<'_>, receiver: &Receiver) -> anyhow::Result<()> {
        loop {
            self.draw()?;
            let keys = stdin();
            let mut fds = [
                PollFd::new(receiver, PollFlags::IN),
                PollFd::new(&keys, PollFlags::IN),
                PollFd::new(&recording.signals, PollFlags::IN),
                PollFd::new(&recording.over, PollFlags::IN),
            ];
            rustix::io::retry_on_intr(|| poll(&mut fds, None))
                .context("cannot wait for the next table")?;
            let is_over = fds[2..].iter().any(|fd| !fd.revents().is_empty());
            let is_key = !fds[1].revents().is_empty();
            if is_over || (is_key && self.keys()?) || !self.page.take(receiver.tables()) {
                return Ok(());
            }
        }
    }

    /// Executes the typed keys. Returns whether one of them ends the program.
    fn keys(&mut self) -> anyhow::Result<bool> {
        let mut bytes = [0; 64];
        let read = rustix::io::read(stdin(), &mut bytes).context("cannot read the terminal")?;
        // No bytes: the terminal is gone.
        Ok(read == 0 || bytes[..read].iter().any(|byte| self.page.key(*byte)))
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        let size = tcgetwinsize(stdout()).context("cannot read the terminal's size")?;
        // If the terminal does not report its size, use the traditional one.
        let or = |value, usual| {
            if value == 0 {
                usual
            } else {
                usize::from(value)
            }
        };
        Ok(put(&self
            .page
            .text(or(size.ws_row, 24), or(size.ws_col, 80)))?)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Drop cannot report an error.
        let _ = put(LEAVE);
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

fn put(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
