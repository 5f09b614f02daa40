// SPDX-License-Identifier: GPL-2.0

//! A session's trace as text, while it is recorded and after: all its streams, merged by time.
//!
//! This goes by rounds. One begins with a moment, `until`; then each CPU puts what it has recorded into
//! packets. So all that happened before that moment is there, and comes in its order; the rest waits for
//! the next round. Only a record that was still being written then, under the interrupt that asked
//! for it, comes a round later.

mod pending;
mod source;

use super::{Session, Trace};
use crate::channel::clock::{ClockKind, Missed};
use crate::sys::cpu;
use crate::sys::errno::enodata;
use crate::sys::wait::{sleep, PollTable};
use core::num::NonZeroU64;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};
use kernel::uaccess::UserSliceWriter;
use pending::PendingText;
use source::LineSource;

/// So much text is made at a time, in bytes, and what belongs to its last line.
const PORTION: usize = 16 << 10;

/// Milliseconds between two rounds.
const PAUSE_MS: u32 = 100;

/// The reader of all streams of a trace, as text.
#[pin_data(PinnedDrop)]
pub(crate) struct Lines {
    trace: Arc<Trace>,
    clock: ClockKind,
    missed: Arc<Missed>,
    /// Whether addresses of the kernel are hidden.
    hides: bool,
    #[pin]
    reading: Mutex<Reading>,
}

/// How far it has come.
struct Reading {
    sources: KVec<LineSource>,
    /// What happened until then is in packets. 0: no round has begun.
    until: u64,
    text: PendingText,
}

/// What there is to read.
enum Progress {
    /// Text.
    Text,
    /// Nothing, until another round.
    Nothing,
    /// Nothing any more.
    End,
}

impl Lines {
    /// Becomes the reader of all streams of the session's trace, who sees no addresses of the kernel if
    /// they are `hidden`.
    ///
    /// Fails with `ENODATA` if there is no trace, or its buffers were freed, `EBUSY` if a stream has
    /// a reader. May sleep.
    pub(crate) fn open(session: &Session, hides: bool) -> Result<Pin<KBox<Self>>> {
        let trace = session.trace()?;
        let mut reading = Reading {
            sources: KVec::new(),
            until: 0,
            text: PendingText::new(),
        };
        reading.open_streams(&trace, hides)?;
        let buffers = trace.channels().find_map(|channel| channel.buffers().ok());
        let buffers = buffers.ok_or_else(enodata)?;
        let (clock, missed) = (buffers.setup().clock, buffers.setup().missed.clone());
        KBox::pin_init(
            pin_init!(Self {
                trace,
                clock,
                missed,
                hides,
                reading <- new_mutex!(reading),
            }),
            GFP_KERNEL,
        )
    }

    /// read(2): copies text. 0: the trace is over, and all was read. With `nonblock`, `EAGAIN` instead of
    /// waiting. May sleep.
    pub(crate) fn read(&self, out: &mut UserSliceWriter, nonblock: bool) -> Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        // The first round begins at once. Those that follow do not, so that who reads what its own
        // reading has brought about does not do so all the time.
        let mut begins = nonblock || self.reading.lock().until == 0;
        loop {
            let mut reading = self.reading.lock();
            match self.advance(&mut reading, begins)? {
                Progress::Text => return reading.text.take(out),
                Progress::End => return Ok(0),
                Progress::Nothing if nonblock => return Err(EAGAIN),
                Progress::Nothing => {}
            }
            drop(reading);
            sleep(PAUSE_MS)?;
            begins = true;
        }
    }

    /// What poll(2) answers.
    pub(crate) fn poll(&self, file: &File, table: &PollTable<'_>) -> u32 {
        use crate::sys::bindings::{POLLERR, POLLHUP, POLLIN, POLLRDNORM};
        let reading = self.reading.lock();
        let (mut readable, mut ended, mut failed) = (!reading.text.is_empty(), true, 0);
        for source in &reading.sources {
            let answer = source.poll(file, table);
            readable |= answer & POLLIN != 0;
            ended &= answer & POLLHUP != 0;
            failed |= answer & POLLERR;
        }
        match (readable, ended) {
            (true, _) => POLLIN | POLLRDNORM | failed,
            (false, true) => POLLHUP,
            (false, false) => failed,
        }
    }

    /// Makes text, if there is none, beginning a round if this one is over and it may.
    fn advance(&self, reading: &mut Reading, begins: bool) -> Result<Progress> {
        let mut begins = begins;
        loop {
            reading.merge(self.clock.frequency())?;
            if !reading.text.is_empty() {
                return Ok(Progress::Text);
            }
            if reading.sources.iter().all(LineSource::is_ended) {
                return Ok(Progress::End);
            }
            if !begins {
                return Ok(Progress::Nothing);
            }
            begins = false;
            match reading.open_streams(&self.trace, self.hides) {
                // Of a CPU that has come. Somebody else may have been faster.
                Ok(()) | Err(EBUSY) => {}
                Err(error) if error == enodata() => {}
                Err(error) => return Err(error),
            }
            // Before the flush: what happens later is for the next round.
            reading.until = self.missed.now();
            for source in &mut reading.sources {
                source.flush()?;
            }
        }
    }
}

impl Reading {
    /// Opens the streams that there are, and are not open yet. `ENODATA`: there are none.
    fn open_streams(&mut self, trace: &Trace, hides: bool) -> Result {
        for channel in trace.channels() {
            for cpu in cpu::possible() {
                if self.sources.iter().any(|known| known.is_of(channel, cpu)) {
                    continue;
                }
                match LineSource::open(channel, cpu, hides) {
                    Ok(source) => self.sources.push(source, GFP_KERNEL)?,
                    Err(error) if error == enodata() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if self.sources.is_empty() {
            return Err(enodata());
        }
        Ok(())
    }

    /// Makes a portion of text, of what happened in this round.
    fn merge(&mut self, frequency: NonZeroU64) -> Result {
        while self.text.len() < PORTION {
            let mut first: Option<(u64, &mut LineSource)> = None;
            for source in &mut self.sources {
                let Some(time) = source.time()? else {
                    continue;
                };
                if time <= self.until && first.as_ref().is_none_or(|(least, _)| time < *least) {
                    first = Some((time, source));
                }
            }
            let Some((_, source)) = first else {
                break;
            };
            let whole = self.text.len();
            source
                .write(&mut self.text, frequency)
                .inspect_err(|_| self.text.truncate(whole))?;
        }
        Ok(())
    }
}

#[pinned_drop]
impl PinnedDrop for Lines {
    fn drop(self: Pin<&mut Self>) {
        // Who looks whether all was read finds these readers gone.
        self.reading.lock().sources.clear();
        for channel in self.trace.channels() {
            channel.free_if_read();
        }
    }
}
